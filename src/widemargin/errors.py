"""Exceptions and warnings of the package.

ValueError
 ├── FormatError          a data or model file violates its format
 └── InfeasibleNuError    nu-SVC: nu is larger than the smaller class allows
RuntimeError
 └── ClusterError         a Dask cluster cannot go on with a fit
UserWarning
 └── ConvergenceWarning   (scikit-learn's) a solver stopped before it reached the requested tolerance
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.exceptions import ConvergenceWarning

__all__ = ["ClusterError", "ConvergenceWarning", "FormatError", "InfeasibleNuError"]


def __getattr__(name: str) -> Any:
    """Return scikit-learn's ConvergenceWarning when it is first asked for: scikit-learn takes a second to import."""
    if name != "ConvergenceWarning":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import ConvergenceWarning

    return ConvergenceWarning


class ClusterError(RuntimeError):
    """A Dask cluster cannot go on with a fit; the estimator has the best model so far, if the fit had come to one."""


class InfeasibleNuError(ValueError):
    """nu of a nu-SVC is larger than 2 min(n₊, n₋) / (n₊ + n₋), the largest value that the two classes allow."""


class FormatError(ValueError):
    """A file violates its format.

    The parameters are attributes, too.

    Parameters
    ----------
    path : str
        Path of the file, or `<stream>` for a file object without a name.
    rule : str
        The rule that is broken, with the text that breaks it.
    line, column : int or None, default=None
        Position of the error, counted from 1, the column in bytes. None if the error has no single position.

    Examples
    --------
    >>> from io import BytesIO
    >>> from widemargin import FormatError, read_svmlight
    >>> try:
    ...     read_svmlight(BytesIO(b"1 1:0.5\\n-1 2:x\\n"))
    ... except FormatError as error:
    ...     print(error.line, error.column)
    2 4
    """

    def __init__(self, path: object, rule: str, line: int | None = None, column: int | None = None) -> None:
        self.path, self.line, self.column, self.rule = str(path), line, column, rule
        place = ":".join(str(part) for part in (path, line, column) if part is not None)
        super().__init__(f"{place}: {rule}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.path, self.rule, self.line, self.column))
