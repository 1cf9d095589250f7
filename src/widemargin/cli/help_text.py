"""Help texts wrapped to the width of the terminal; they are written for 120 columns."""

import argparse
import re
import shutil
import textwrap

_MARGIN = 2  # columns that are left free at the right, as argparse does
_MIN_WIDTH = 40
_ENTRY = re.compile(r"(?P<head> +\S+(?: \S+)* {2,})(?P<words>\S.*)")


def width():
    """Return the columns that a help text may have."""
    return max(_MIN_WIDTH, shutil.get_terminal_size().columns - _MARGIN)


def wrapped(text, columns):
    """Return a text whose paragraphs, and the words beside commands and options, are no wider than `columns`.

    Lines of paragraphs are joined first. Lines that begin with a space stay lines: if words stand beside what they
    explain, behind two or more spaces, these are wrapped in their column; a command without words is never broken.
    """
    return "\n\n".join(_wrapped_part(part, columns) for part in text.split("\n\n"))


def _wrapped_part(part, columns):
    lines = part.split("\n")
    if any(line.startswith(" ") or line.endswith(":") for line in lines) or lines[0].startswith("usage:"):
        return "\n".join(_wrapped_line(line, columns) for line in lines)
    return textwrap.fill(" ".join(lines), columns)


def _wrapped_line(line, columns):
    entry = _ENTRY.fullmatch(line)
    if len(line) <= columns or entry is None:
        return line
    indent = min(len(entry["head"]), columns // 2)
    return textwrap.fill(
        entry["words"], columns, initial_indent=entry["head"], subsequent_indent=" " * indent, break_on_hyphens=False
    )


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps the description and the examples of a command, too."""

    def _fill_text(self, text, width, indent):
        return wrapped(text, width)
