"""A page of results, which is one run: units that are measured once and kept, tables made from all of them.

A page is written over the one in `benchmarks/results` only if all its units are of one state of the code, and were
measured while others left the machine alone. Otherwise it is written into the build folder, and says why.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

from benchmarks.machinery.figures import HOW
from benchmarks.machinery.load import QUIET_CORES, MachineBusyError, OtherWork, wait_until_quiet
from benchmarks.machinery.records import BUILD, Records
from benchmarks.machinery.state import ROOT

RESULTS, DOCS = ROOT / "benchmarks" / "results", ROOT / "docs"
_ATTEMPTS = 3  # at a unit in which others are busy
_NOT_TOLD = ("quick", "folder")  # options that a page does not show; a folder is of this machine only


@dataclass(frozen=True)
class Table:
    """A part of a page that is measured unit by unit: `run(page, cases, options)`, which iterates over `page.each`.

    `quick` are the cases of a quick run; `share` says how much of the page's minutes it may take. `full` are further
    cases that only `--full` measures, however long they take.
    """

    run: Callable
    cases: list
    quick: list
    share: float = 1.0
    full: list = field(default_factory=list)

    def chosen(self, how):
        """Return the cases of a run."""
        return self.quick if how.quick else [*self.cases, *self.full]


@dataclass(frozen=True)
class Frame:
    """What a page is: its words, its tables, and its limits. A module of a page has one, `PAGE`.

    `sections` are (heading, text) by name; `finish(page)` adds what is made from all rows, and pictures.
    """

    introduction: str
    sections: dict
    tables: dict[str, Table]
    options: dict = field(default_factory=dict)
    quick_options: dict = field(default_factory=dict)
    finish: Callable | None = None
    quiet_cores: float = QUIET_CORES


@dataclass(frozen=True)
class How:
    """How a page is run: the minutes it may take, and what the command line asks for."""

    minutes: float
    quick: bool = False
    force: bool = False
    only: tuple = ()  # parts of the names of units
    patience: float = 120.0  # seconds of waiting for a quiet machine
    full: bool = False


class Page:
    """The page that a run makes. `options` are the frame's, or those of a quick run."""

    def __init__(self, name, frame, how, build=BUILD, results=RESULTS, docs=DOCS):
        self.name, self.frame, self.how = name, frame, how
        self._build = build / "quick" if how.quick else build
        self._results, self._docs = results, docs
        self.options = SimpleNamespace(**frame.options | (frame.quick_options if how.quick else {}), quick=how.quick)
        self.records = Records(self._build / name)
        self.facts, self._sections, self._units = {}, {}, []
        self.left_out, self.left_to_full, self.missing = [], [], []
        self._unit = None
        self._lost = {}  # seconds of units that had to be repeated, by table

    # --- Measuring ----------------------------------------------------------------------------------------------------

    def each(self, table, cases, name=str):
        """Yield the cases that have still to be measured; what is put before the next one is asked for is a unit."""
        for case in cases:
            unit = f"{table}: {name(case)}"
            self._units.append(unit)
            if self._is_there(unit):
                self.facts |= self.records.units[unit]["facts"]
            elif self.how.only and not any(text in unit for text in self.how.only):
                self.missing.append(unit)
            elif case in self.frame.tables[table].full and not self.how.full:
                self.left_to_full.append(unit)
            elif self._spent(table) >= self._budget(table) and not self.how.full:
                self.left_out.append(unit)
            else:
                yield from self._attempts(table, unit, case)
        self._replay()

    def _is_there(self, unit):
        record = self.records.units.get(unit)
        return record is not None and (self.how.force or not record["busy"])

    def _attempts(self, table, unit, case):
        """Yield the case until it was measured on a quiet machine; forced, once."""
        for _ in range(1 if self.how.force else _ATTEMPTS):
            if not self.how.force:
                wait_until_quiet(self.how.patience, self.frame.quiet_cores)
            print(f"{self.name}: {unit}", flush=True)
            work, load, begun = OtherWork(), os.getloadavg()[0], time.perf_counter()
            self._unit = {"unit": unit, "rows": [], "facts": {}}
            yield case
            others, seconds = work.cores(), time.perf_counter() - begun
            is_busy = others is not None and others > self.frame.quiet_cores
            self._unit |= {"seconds": seconds, "others": others, "busy": is_busy, "load": [load, os.getloadavg()[0]]}
            record, self._unit = self._unit, None
            if self.how.force or not is_busy:
                self.records.add(record)
                self.facts |= record["facts"]
                return
            self._lost[table] = self._lost.get(table, 0.0) + seconds
            print(f"{self.name}: {unit} again, since others used {others:.2f} cores meanwhile", flush=True)
        raise MachineBusyError(f"others used {others:.2f} cores during each of {_ATTEMPTS} attempts at {unit}")

    def _spent(self, table):
        units = self.records.units.values()
        measured = sum(one["seconds"] for one in units if one["unit"].partition(":")[0] == table)
        return measured + self._lost.get(table, 0.0)

    @property
    def seconds_left(self):
        """Seconds of the page's minutes that no unit of any table has taken; negative if they are used up."""
        taken = sum(one["seconds"] for one in self.records.units.values()) + sum(self._lost.values())
        return 60.0 * self.how.minutes - taken

    def _budget(self, table):
        tables = self.frame.tables
        shares = sum(one.share for one in tables.values() if one.chosen(self.how))
        return 60.0 * self.how.minutes * tables[table].share / shares

    def put(self, section, columns, cells, n_key=2):
        """Put a row into the table of a section, in place of one with the same first `n_key` cells."""
        row = [section, list(columns), [str(cell) for cell in cells], n_key]
        if self._unit is None:
            self._place(*row)
        else:
            self._unit["rows"].append(row)
        told = [f"{name} {cell}" for name, cell in zip(columns, row[2], strict=True)]
        print(f"{section}: {'; '.join(told)}", flush=True)

    def keep(self, name, value):
        """Keep a value that can be written as JSON with the unit: `facts[name]`, for pictures and later tables."""
        self._unit["facts"][name] = value

    def fact(self, name):
        """Return what was kept by that name, in this unit or before."""
        kept = {} if self._unit is None else self._unit["facts"]
        return kept[name] if name in kept else self.facts[name]

    def _replay(self):
        """Make tables and facts anew from the records, in the order of the units."""
        self._sections, self.facts = {}, {}
        for unit in self._units:
            record = self.records.units.get(unit)
            if record is not None and self._is_there(unit):
                self.facts |= record["facts"]
                for row in record["rows"]:
                    self._place(*row)

    def _place(self, section, columns, cells, n_key):
        table = self._sections.setdefault(section, {"columns": columns, "n_key": n_key, "rows": {}})
        table["rows"][tuple(cells[:n_key])] = cells

    def rows(self, section):
        """Return the rows of a section's table, lists of text."""
        return list(self._sections.get(section, {"rows": {}})["rows"].values())

    def columns(self, section):
        """Return the columns of a section's table."""
        return self._sections[section]["columns"]

    # --- Writing ------------------------------------------------------------------------------------------------------

    @property
    def is_final(self):
        """Whether the page may be written over the one in `results`."""
        return not (self.how.quick or self.missing or self.busy_units)

    @property
    def busy_units(self):
        """The units that were measured, by force, while others used the machine."""
        return [unit for unit in self._units if self.records.units.get(unit, {}).get("busy")]

    @property
    def path(self):
        """Where the page is written."""
        kind = "" if self.how.quick or self.is_final else ".partial" if self.missing else ".busy"
        return (self._results if self.is_final else self._build) / f"{self.name}{kind}.md"

    def picture(self, name):
        """Return the path of a picture: in `docs` if the page is written to `results`."""
        return (self._docs if self.is_final else self._build) / name

    def run(self):
        """Measure what is not there yet, and write the page; return its path."""
        for name, table in self.frame.tables.items():
            if cases := table.chosen(self.how):
                print(f"{self.name}, {name}: at most {self._budget(name) / 60:.1f} minutes", flush=True)
                table.run(self, cases, self.options)
        if self.frame.finish is not None:
            self.frame.finish(self)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(self.text())
        return self.path

    def text(self):
        """Return the page."""
        parts = [self.frame.introduction.strip(), f"{HOW}\n\n{self._run_words()}"]
        for name, (heading, words) in self.frame.sections.items():
            parts.append(f"## {heading}\n\n{words.strip()}\n\n<!-- {name} -->\n{self._table(name)}<!-- /{name} -->")
        return "\n\n".join(parts) + "\n"

    def _table(self, name):
        if name not in self._sections:
            return "Not measured.\n"
        table = self._sections[name]
        columns, n_key = table["columns"], table["n_key"]
        rule = ["---"] * n_key + ["--:"] * (len(columns) - n_key)
        lines = [_line(columns), "|" + "|".join(rule) + "|", *map(_line, table["rows"].values())]
        return "\n".join(lines) + "\n"

    def _run_words(self):
        """Return in words what the page rests on."""
        head, units = self.records.head, [self.records.units[unit] for unit in self._units if self._is_there(unit)]
        packages = ", ".join(f"{name} {version}" for name, version in head["state"]["versions"].items())
        minutes = sum(one["seconds"] for one in units) / 60.0
        told = {name: value for name, value in vars(self.options).items() if name not in _NOT_TOLD}
        settings = ", ".join(f"{name} {value}" for name, value in told.items())
        words = [
            f"**This run.** Commit {head['commit']}; package {head['state']['package']}, with its benchmark"
            f" {head['state']['code']}.",
            f"{head['state']['machine']}; {packages}.",
            f"{len(units)} units in {minutes:.1f} of at most {self.how.minutes:g} minutes{_times(units)};",
            f"{_load(units)}.",
            f"Options: {settings}." if settings else "",
        ]
        if self.how.quick:
            words.append("**A quick run**: few cases, small grids, short limits.")
        if self.busy_units:
            words.append(f"**Others used the machine during**: {', '.join(self.busy_units)}.")
        if self.left_out:
            words.append(f"Left out, since the minutes were used up: {', '.join(self.left_out)}.")
        if self.left_to_full:
            words.append(f"Left to `--full`: {', '.join(self.left_to_full)}.")
        if self.missing:
            words.append(f"**Not measured yet**: {', '.join(self.missing)}.")
        return "\n".join(filter(None, words))


def _times(units):
    moments = sorted(one["at"] for one in units if "at" in one)
    return f", {moments[0]} to {moments[-1]}" if moments else ""


def _load(units):
    others = [one["others"] for one in units if one["others"] is not None]
    loads = [one["load"] for one in units]
    if not others:
        return "the work of others was not measured on this system"
    before, after = loads[0][0], loads[-1][1]
    most = f"others used at most {max(others):.2f} cores during a unit"
    return f"{most}; load average {before:.1f} before, {after:.1f} after"


def _line(cells):
    return "| " + " | ".join(cells) + " |"


def sections_of(text):
    """Return the tables of a written page: for each section a list of rows, dicts by column."""
    found = {}
    for part in text.split("<!-- ")[1:]:
        name, _, content = part.partition(" -->")
        lines = [line for line in content.splitlines() if line.startswith("|")]
        if name.startswith("/") or len(lines) < 2:
            continue
        head, _, *rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
        found[name] = [dict(zip(head, row, strict=False)) for row in rows]
    return found
