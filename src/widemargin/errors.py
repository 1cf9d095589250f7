"""What can go wrong, by name.

ValueError
 ├── FormatError      a data or model file breaks a rule of its format
UserWarning
 └── ConvergenceWarning   (scikit-learn's) a solver stopped short of the tolerance asked for
"""

from sklearn.exceptions import ConvergenceWarning

__all__ = ["ConvergenceWarning", "FormatError"]


class FormatError(ValueError):
    """A file breaks a rule of its format.

    Attributes
    ----------
    path : str
        The file, or `<stream>`.
    line, column : int or None
        Where, both counted from 1 (column in bytes); None where a place makes no sense.
    rule : str
        What was broken, with the offending token.
    """

    def __init__(self, path, rule, line=None, column=None):
        self.path, self.line, self.column, self.rule = str(path), line, column, rule
        place = ":".join(str(part) for part in (path, line, column) if part is not None)
        super().__init__(f"{place}: {rule}")

    def __reduce__(self):
        return (type(self), (self.path, self.rule, self.line, self.column))
