"""The lengths of the vectors of `simd`."""

LANES = 32  # numbers in a vector
SHORT_LANES = 16  # in a short one
FEW_LANES = 4  # in the shortest
BLOCK = 8  # rows and columns of a block that is transposed in registers
