"""Rows as they arrive: matrices in memory, and the text files they come from."""
