"""The version of the package. Model files and reports record it."""

__version__ = "0.2.0"
