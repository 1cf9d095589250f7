"""The exceptions and warnings of the package.

ValueError
 ├── FormatError          a data or model file violates its format
 └── InfeasibleNuError    nu-SVC: nu is larger than the smaller class allows
UserWarning
 └── ConvergenceWarning   (scikit-learn's) a solver stopped before it reached the requested tolerance
"""

from sklearn.exceptions import ConvergenceWarning

__all__ = ["ConvergenceWarning", "FormatError", "InfeasibleNuError"]


class InfeasibleNuError(ValueError):
    """nu of a nu-SVC is larger than 2 min(n₊, n₋) / (n₊ + n₋), the largest value that the two classes allow."""


class FormatError(ValueError):
    """A file violates its format.

    Attributes
    ----------
    path : str
        The file, or `<stream>`.
    line, column : int or None
        Position of the error, both counted from 1 (column in bytes); None if there is no single position.
    rule : str
        The rule that was violated, with the offending token.
    """

    def __init__(self, path, rule, line=None, column=None):
        self.path, self.line, self.column, self.rule = str(path), line, column, rule
        place = ":".join(str(part) for part in (path, line, column) if part is not None)
        super().__init__(f"{place}: {rule}")

    def __reduce__(self):
        return (type(self), (self.path, self.rule, self.line, self.column))
