"""The words of the table of linear solvers: its columns, and seconds as they are written there."""

from typing import NamedTuple

OWN = ["dcd", "avsf", "climb", "newton", "ocas"]
EVERYBODY = ["auto", *OWN, "LIBLINEAR", "svmocas"]
PEER_RATIO, OWN_RATIO, PASSES = "LIBLINEAR / auto", "auto / best own", "auto, passes"
COLUMNS = ["set", "C", "auto", "what ran", *OWN, "LIBLINEAR", "svmocas", PEER_RATIO, OWN_RATIO, PASSES]
COLUMNS += ["LIBLINEAR's tol"]
MISSED = "missed"  # ended, but the objective is not within 1e-3


class Told(NamedTuple):
    """A number of the table; `bound` is ">" or "<" if it is only a bound, since somebody reached the limit."""

    value: float
    bound: str = ""

    def __str__(self):
        return f"{self.bound}{self.value:.3g}"


def read(cell):
    """Return the number that a cell tells, None if there is none."""
    if cell in ("", "–", MISSED):
        return None
    return Told(float(cell.lstrip("<>")), cell[0] if cell[0] in "<>" else "")


def records(page, name=None):
    """Return the rows of the grid, dictionaries by column, of all sets or of one, in the order of C."""
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in page.rows("grid") if name in (None, row[0])]
    return rows if name is None else sorted(rows, key=lambda row: float(row["C"]))


def sets_of(page):
    """Return the names of the sets in the grid."""
    return list(dict.fromkeys(row["set"] for row in records(page)))
