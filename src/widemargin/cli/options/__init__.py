"""Options of the command line, and the estimators that they describe."""
