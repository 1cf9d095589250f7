"""Help texts wrapped to the width of the terminal; they are written for 120 columns."""

import argparse
import re
import shutil
import textwrap

_MARGIN = 2  # columns that are left free at the right, as argparse does
_MIN_WIDTH = 40
_MIN_WORDS = 16  # columns for words beside what they explain; with fewer they stand below it
_DEEP_INDENT = 6
_ENTRY = re.compile(r"(?P<head> +\S+(?: \S+)* {2,})(?P<words>\S.*)")


def width():
    """Return the columns that a help text may have."""
    return max(_MIN_WIDTH, shutil.get_terminal_size().columns - _MARGIN)


def wrapped(text, columns):
    """Return a text whose paragraphs, and the words beside commands and options, are no wider than `columns`.

    Lines of a paragraph are joined first. Lines that begin with a space stay lines: if words stand beside what they
    explain, behind two or more spaces, these are wrapped in their column; a command without words is never broken.
    """
    found, paragraph = [], []
    for line in [*text.split("\n"), ""]:
        if line and line[0] != " " and not line.startswith("usage:"):
            paragraph.append(line)
            continue
        if paragraph:
            found.append(textwrap.fill(" ".join(paragraph), columns, break_on_hyphens=False))
            paragraph = []
        found.append(_wrapped_line(line, columns))
    return "\n".join(found[:-1])


def _wrapped_line(line, columns):
    entry = _ENTRY.fullmatch(line)
    if len(line) <= columns or entry is None:
        return line
    options = {"width": columns, "break_on_hyphens": False}
    if columns - len(entry["head"]) >= _MIN_WORDS:
        return textwrap.fill(
            entry["words"], initial_indent=entry["head"], subsequent_indent=" " * len(entry["head"]), **options
        )
    indent = " " * _DEEP_INDENT
    below = textwrap.fill(entry["words"], initial_indent=indent, subsequent_indent=indent, **options)
    return f"{entry['head'].rstrip()}\n{below}"


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps the description and the examples of a command, too."""

    def _fill_text(self, text, width, indent):
        return wrapped(text, width)
