"""The words of the table of linear solvers: its columns, and its rows by set."""

SETS = ["svmlight-example1", "rcv1-vw-1000", "lasvm-reuters-money-fx", "a9a", "w8a", "ijcnn1",
        "covtype.libsvm.binary.scale", "20news.bigram.binary"]  # the short ones first  # fmt: skip
GRID = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]
OWN = ["dcd", "avsf", "climb", "newton", "ocas"]
EVERYBODY = ["auto", *OWN, "LIBLINEAR", "svmocas"]
PEER_RATIO, OWN_RATIO, PASSES = "LIBLINEAR / auto", "auto / best own", "auto, passes"
COLUMNS = ["set", "C", "auto", "what ran", *OWN, "LIBLINEAR", "svmocas", PEER_RATIO, OWN_RATIO, PASSES]
COLUMNS += ["LIBLINEAR's tol"]
MISSED = "missed"  # ended, but the objective is not within 1e-3


def records(page, name=None):
    """Return the rows of the grid, dictionaries by column, of all sets or of one, in the order of C."""
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in page.rows("grid") if name in (None, row[0])]
    return rows if name is None else sorted(rows, key=lambda row: float(row["C"]))


def sets_of(page):
    """Return the names of the sets in the grid."""
    return list(dict.fromkeys(row["set"] for row in records(page)))
