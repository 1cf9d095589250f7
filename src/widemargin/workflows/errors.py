"""What can go wrong between files, by name.

ValueError
 ├── ArgumentError    arguments contradict each other, or do not apply to the file at hand
 └── FileError        a file can be read, but does not allow what is asked for
      └── DefectiveFile    a data file breaks rules of its format; what was found in it comes along
UserWarning
 ├── FileWarning      the result differs from what was probably meant
 └── FileNote         something about a file that is worth knowing
"""


class ArgumentError(ValueError):
    """Arguments contradict each other, or do not apply to the file at hand."""


class FileError(ValueError):
    """A file can be read, but does not allow what is asked for."""


class DefectiveFile(FileError):
    """A data file breaks rules of its format.

    Attributes
    ----------
    check : FileCheck
        What was found in it, with every defect.
    """

    def __init__(self, message, check):
        super().__init__(message)
        self.check = check

    def __reduce__(self):
        return (type(self), (str(self), self.check))


class FileWarning(UserWarning):
    """A file holds something that makes the result differ from what was probably meant."""


class FileNote(UserWarning):
    """Something about a file is worth knowing, and changes nothing."""
