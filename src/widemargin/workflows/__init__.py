"""The commands of the command line as functions that read and write files.

A function takes paths and keyword arguments, and returns a frozen dataclass: `str(result)` is the text that the command
prints, and `result.to_dict()` the dict that it prints with `--json`. The functions themselves print nothing. Errors are
exceptions (`FormatError`, `FileError`, `ArgumentError`, `OSError`); further messages are warnings of the categories
`FileWarning` and `FileNote`. Messages name arguments of the functions, and the command line replaces these by its
options; see `errors.spelling`.

The path "-" is standard input or output. An existing file is replaced when the new one is complete.
"""
