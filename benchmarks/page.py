"""A page of results: tables between markers, of which each run replaces the rows that it measured and no others."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


class Page:
    """A Markdown page with a table in each section.

    Parameters
    ----------
    path : Path
    introduction : str
    sections : dict of name to (heading, text)
        Written when the page does not have them; of those that it has, only what lies between the markers changes.
    dry : bool
        Print only.
    """

    def __init__(self, path, introduction, sections, dry=False):
        self.path, self.dry = path, dry
        text = path.read_text() if path.exists() and not dry else introduction
        parts = [
            f"## {heading}\n\n{words}\n\n{_marked(name, '')}"
            for name, (heading, words) in sections.items()
            if f"<!-- {name} -->" not in text
        ]
        self._text = "\n\n".join([text.rstrip("\n"), *parts]) + "\n"

    def put(self, section, columns, cells, n_key=2):
        """Write a row, in place of the one with the same first `n_key` cells if there is one."""
        cells = [str(cell) for cell in cells]
        rows = [row for row in self.rows(section) if len(row) == len(columns)]
        places = [k for k, row in enumerate(rows) if row[:n_key] == cells[:n_key]]
        rows[places[0] if places else len(rows) : places[0] + 1 if places else None] = [cells]
        rule = ["---"] * n_key + ["--:"] * (len(columns) - n_key)
        lines = [_line(columns), "|" + "|".join(rule) + "|", *map(_line, rows)]
        self._replace(section, "\n".join([*lines, "", self._note(section)]))
        told = [f"{name} {cell}" for name, cell in zip(columns, cells, strict=True)]
        print(f"{section}: {'; '.join(told)}", flush=True)

    def note(self, section, text):
        """Write the line below the table."""
        lines = self._content(section).splitlines()
        table = [line for line in lines if line.startswith("|")]
        self._replace(section, "\n".join([*table, "", f"*{text}*"] if table else [f"*{text}*"]))

    def rows(self, section):
        """Return the rows of a section's table, lists of text."""
        lines = [line for line in self._content(section).splitlines() if line.startswith("|")]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]

    def _note(self, section):
        notes = [line for line in self._content(section).splitlines() if line.startswith("*")]
        return notes[-1] if notes else ""

    def _content(self, section):
        return self._text.split(f"<!-- {section} -->")[1].split(f"<!-- /{section} -->")[0].strip("\n")

    def _replace(self, section, content):
        head, rest = self._text.split(f"<!-- {section} -->")
        tail = rest.split(f"<!-- /{section} -->")[1]
        self._text = head + _marked(section, content.strip("\n")) + tail
        if not self.dry:
            self.path.write_text(self._text)


def _marked(name, content):
    return f"<!-- {name} -->\n{content}\n<!-- /{name} -->"


def _line(cells):
    return "| " + " | ".join(cells) + " |"


def machine():
    """Return the machine and Python in words."""
    model = [line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    return f"{model[0] if model else platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _lines(path):
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def versions(*packages):
    """Return the packages with their versions in words."""
    return ", ".join(f"{package} {_version(package)}" for package in packages)


def _version(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return "(absent)"
