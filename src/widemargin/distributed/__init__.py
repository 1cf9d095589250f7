"""Rows on a Dask cluster: the same estimators, whose sums over rows are taken in the processes where the rows are."""

from importlib.util import find_spec as _find_spec

for _package in ("dask", "distributed"):
    if _find_spec(_package) is None:
        raise ImportError(
            f'widemargin.dask needs {_package}, which is not installed: pip install "widemargin[dask]"', name=_package
        )
