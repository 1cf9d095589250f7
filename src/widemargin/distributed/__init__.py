"""Rows on a Dask cluster: the same estimators, whose sums over rows are taken in the processes where the rows are."""
