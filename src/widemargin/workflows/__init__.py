"""From files to files: the work of each command of the command line as a function.

A function takes paths and keyword arguments, reads, computes, writes, and returns a frozen dataclass: `str(result)` is
what the command prints, `result.to_dict()` the facts that it prints with `--json`. Nothing here prints. What goes wrong
is an exception (`FormatError`, `FileError`, `ArgumentError`, `OSError`), what is worth knowing a `FileWarning` or a
`FileNote`. Messages name the arguments of the functions; the command line has its own names put in their place, see
`spelling`.

In all of them "-" stands for standard input or output, and a file is replaced when the new one is complete.
"""
