"""Support vector machines at the speed of memory, each model with a proof of how good it is."""

__version__ = "0.1.0"
