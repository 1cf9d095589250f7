"""The length of the vectors of `simd`."""

LANES = 32  # numbers in a vector
