"""Making docs/from/programs.md, and reading its tables."""

import re
import subprocess
import tempfile
from pathlib import Path

from benchmarks.machinery.state import ROOT
from benchmarks.programs import liblinear, libsvm, ocas, svm_light

PAGE = ROOT / "docs" / "from" / "programs.md"
SECTIONS = [*libsvm.SECTIONS, *liblinear.SECTIONS, *svm_light.SECTIONS, *ocas.SECTIONS]
_PACKAGES = ("libsvm-tools", "liblinear-tools", "libocas-tools")
_WHO, _MISSING = ("original", "here"), "–"

_TEXT = """# Programs side by side

`widemargin as svm-train ...` runs as `svm-train` does, and so do the others
([LIBSVM](libsvm.md#as-the-programs-themselves), [LIBLINEAR](liblinear.md#as-the-programs-themselves),
[SVM-light](svmlight.md#as-the-programs-themselves), [OCAS](ocas.md)). On this page each program and its original have
the same options and the same files. Of each run the first line has the figures of the original program, the second line
ours; figures that a run does not have are left out.

The page is made by `python -m benchmarks programs`, which runs the programs of Debian's packages
({packages}); outputs of SVM-light and SVM-Perf were recorded
before. Nothing is timed. A test compares every pair of lines, and runs the first line of each table again.
"""


def main():
    """Run everything and write the page; return 0."""
    parts = [_text()]
    for section in SECTIONS:
        print(f"{section.program}: {len(section.cases)} runs", flush=True)
        parts.append(f"## {section.program}\n\n{section.words}\n\n{table(section)}")
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written")
    return 0


def _text():
    versions = [_version(package) for package in _PACKAGES]
    packages = ", ".join(f"{package} {version}" for package, version in zip(_PACKAGES, versions, strict=True))
    return _TEXT.format(packages=packages)


def _version(package):
    command = ["dpkg-query", "--show", "--showformat=${Version}", package]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def table(section):
    """Return the table of a section, two lines for each run."""
    pairs = [pair_of(section, case) for case in section.cases]
    columns = [name for name in section.figures if any(name in theirs for theirs, _ in pairs)]
    lines = [f"| set | options | {' | '.join(['', *columns])} |", f"|---|---|---|{'--:|' * len(columns)}"]
    for case, pair in zip(section.cases, pairs, strict=True):
        for who, figures in zip(_WHO, pair, strict=True):
            options = f"`{case.options}`" if case.options else ""
            cells = [_shown(section, name, figures) if name in pair[0] else "" for name in columns]
            lines.append(f"| {' | '.join([case.name, options, who, *cells])} |")
    return "\n".join(lines) + "\n"


def pair_of(section, case):
    """Return the figures of the original and ours for a case."""
    with tempfile.TemporaryDirectory() as folder:
        return section.theirs(case, Path(folder)), section.ours(case, Path(folder))


def _shown(section, name, figures):
    return format(figures[name], section.figures[name].shown) if name in figures else _MISSING


def pairs_on_page(section):
    """Return ((set, options), figures of the original, ours) of each run in a table of the page."""
    text = PAGE.read_text(encoding="utf-8")
    part = re.search(rf"^## {re.escape(section.program)}\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)[1]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line[:1] == "|"]
    heading, _, *body = rows
    figures = [dict(zip(heading[3:], row[3:], strict=True)) for row in body]
    numbers = [{name: float(cell) for name, cell in one.items() if cell not in ("", _MISSING)} for one in figures]
    return [((row[0], row[1].strip("`")), *numbers[k : k + 2]) for k, row in enumerate(body) if row[2] == _WHO[0]]
