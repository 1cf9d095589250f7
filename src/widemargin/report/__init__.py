"""The report of a model on data, as one self-contained HTML page."""
