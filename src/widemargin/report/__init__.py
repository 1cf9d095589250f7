"""The report of a model: one self-contained page."""
