"""What is read off the table of linear solvers: sums over C, and how far the goals are met."""

from benchmarks.linear.words import EVERYBODY, MISSED, OWN, OWN_RATIO, PASSES, PEER_RATIO, records, sets_of
from benchmarks.machinery.figures import Told, read
from benchmarks.planes.runs import COVERTYPE, title

GOALS = dict.fromkeys(["a9a", "ijcnn1", COVERTYPE], 10.0) | {"w8a": 3.0}  # LIBLINEAR / auto, sums over C
GOALS |= dict.fromkeys(["20news.bigram.binary", "lasvm-reuters-money-fx", "svmlight-example1"], 1.5)
_NEAR, _FAIR = 1.1, 1.5  # auto against our best
_PASSES = 100


def put_sums(page):
    """Put the sums over C of the sets that are in the grid; a limit reached counts as the limit."""
    columns = ["set", *EVERYBODY, PEER_RATIO, "goal", "svmocas / auto", OWN_RATIO]
    for name in sets_of(page):
        sums = _sums(page, name)
        cells = [name, *("–" if sums[label] is None else sums[label] for label in EVERYBODY)]
        cells += [_ratio(sums["LIBLINEAR"], sums["auto"]), f"{GOALS[name]:g}" if name in GOALS else "–"]
        cells += [_ratio(sums["svmocas"], sums["auto"]), _ratio(sums["auto"], sums["best"])]
        page.put("sums", columns, cells, n_key=1)


def _sums(page, name):
    """Return everybody's sum over C, and that of our best solvers."""
    rows = records(page, name)
    sums = {label: _total([read(row[label]) for row in rows]) for label in EVERYBODY}
    best = [min(filter(None, (read(row[label]) for label in OWN))) for row in rows]
    return sums | {"best": _total(best)}


def _total(cells):
    """Return the sum, None if anything is missing."""
    if None in cells:
        return None
    return Told(sum(cell.value for cell in cells), ">" if any(cell.bound for cell in cells) else "")


def _ratio(above, below):
    """Return a ratio in words, with the mark of a bound."""
    if above is None or below is None:
        return "–"
    if above.bound and below.bound:
        return "–"
    bound = ">" if above.bound else "<" if below.bound else ""
    return f"{bound}{above.value / below.value:.2f}"


def put_summary(page):
    """Put how far the goals are met, from all sets of the grid."""
    rows = records(page)
    if not rows:
        return
    own = [(read(row[OWN_RATIO]).value, row) for row in rows if read(row[OWN_RATIO])]
    peer = [(_against_peer(row), row) for row in rows if read(row[PEER_RATIO])]
    near, fast = (sum(value <= _NEAR for value, _ in pairs) for pairs in (own, peer))
    asked = [name for name in sets_of(page) if name in GOALS]
    met = sum(_is_met(name, _sums(page, name)) for name in asked)
    lines = [
        (f"cells with auto / best own at most {_NEAR}", f"{near} of {len(own)}, {near / len(own):.0%}", "90%"),
        ("largest auto / best own", _worst(own), f"{_FAIR}"),
        (f"cells with auto / LIBLINEAR at most {_NEAR}", f"{fast} of {len(peer)}", "all"),
        ("largest auto / LIBLINEAR", _worst(peer), f"{_NEAR}"),
        ("sets whose sum over C is as much below LIBLINEAR's as asked", f"{met} of {len(asked)}", "all"),
        *_covertype_lines(records(page, COVERTYPE)),
        ("most passes of auto, all sets", _worst(_passes(rows)), f"{_PASSES}"),
        ("fits of ours that missed the goal", sum(row[who] == MISSED for row in rows for who in ("auto", *OWN)), "0"),
    ]
    for line in lines:
        page.put("summary", ["what", "measured", "goal"], line, n_key=1)


def _passes(rows):
    return [(read(row[PASSES]).value, row) for row in rows if read(row[PASSES])]


def _against_peer(row):
    return read(row["auto"]).value / read(row["LIBLINEAR"]).value


def _is_met(name, sums):
    auto, peer = sums["auto"], sums["LIBLINEAR"]
    return None not in (auto, peer) and not auto.bound and peer.value >= GOALS[name] * auto.value


def _covertype_lines(rows):
    if not rows:
        return []
    times = [read(row["auto"]).value for row in rows if read(row["auto"])]
    return [
        ("covertype: auto's longest time over C / its shortest", f"{max(times) / min(times):.1f}", "5"),
        ("covertype: most passes of auto", _worst(_passes(rows)), f"{_PASSES}"),
    ]


def _worst(pairs):
    """Return the largest value in words, and where it is."""
    if not pairs:
        return "–"
    value, row = max(pairs, key=lambda pair: pair[0])
    return f"{value:.{0 if value >= 100 else 2}f} ({title(row['set'])}, C = {row['C']})"
