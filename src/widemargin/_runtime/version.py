"""The version of the package, which model files and pages carry."""

__version__ = "0.1.0"
