"""What can go wrong, by name.

ValueError
 ├── FormatError      a data or model file breaks a rule of its format
UserWarning
 └── ConvergenceWarning   (scikit-learn's) a solver stopped short of the tolerance asked for
"""

from typing import Any

from sklearn.exceptions import ConvergenceWarning

__all__ = ["ConvergenceWarning", "FormatError"]


class FormatError(ValueError):
    """A file breaks a rule of its format.

    The parameters are attributes, too.

    Parameters
    ----------
    path : str
        The file, or `<stream>`.
    rule : str
        What was broken, with the offending token.
    line, column : int or None, default=None
        Where, both counted from 1 (column in bytes); None where there is no such place.
    """

    def __init__(self, path: object, rule: str, line: int | None = None, column: int | None = None) -> None:
        self.path, self.line, self.column, self.rule = str(path), line, column, rule
        place = ":".join(str(part) for part in (path, line, column) if part is not None)
        super().__init__(f"{place}: {rule}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.path, self.rule, self.line, self.column))
