"""Models that only cutting planes fit: rankings, ordinal regression, ROC area, multivariate measures."""
