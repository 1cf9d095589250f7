"""Kernels K(x, z): functions, blocks of kernel rows, a cache of rows, and the scores of kernel models."""
