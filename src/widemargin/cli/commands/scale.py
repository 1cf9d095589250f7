"""`widemargin scale`: feature ranges are learned from a file or restored, and its rows written scaled.

Learning is a pass over the file, writing another; both hold a block of lines at a time in memory.
"""

import os
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager

import numpy as np

from widemargin.cli.files import check_target
from widemargin.cli.messages import (
    CommandError,
    UsageError,
    explain_os_error,
    naming,
    print_facts,
    print_json,
    say,
)
from widemargin.cli.options.parsing import Parser, number
from widemargin.cli.progress import add_progress_option, reporting
from widemargin.data.precomputed_rows import KERNEL_WORDS, KernelRecogniser
from widemargin.data.scaling import NEED_MOMENTS, FeatureStatistics
from widemargin.data.svmlight.blocks import SvmlightBlocks, write_svmlight_blocks
from widemargin.data.svmlight.range_file import read_ranges, write_ranges
from widemargin.errors import FormatError

_DESCRIPTION = """\
Scale the features of DATA, each on its own, to [-1, 1], to [LOWER, UPPER], or to unit variance; "-" is standard input.
The ranges are learned from DATA, and saved with -s; or with -r those that were learned from training data are applied
to test data. Range files are those of svm-scale, both ways."""

_EXAMPLES = """\
examples:
  widemargin scale -s heart.range -o heart_scale heart
  widemargin scale -r heart.range -o heart_scale.t heart.t
  widemargin scale -l 0 -u 1 news20.xz | widemargin train - news20.model
  widemargin scale -y -1 1 -s cadata.range -o cadata_scale.zst cadata
  widemargin scale --method variance -s news20.range -o news20_scale.xz news20.xz

An entry that is not written in DATA is a zero like any other: of a feature whose entries are all positive and which
some row lacks, the least value is 0. A feature that never varies is left out. Values beyond the range of a feature, as
test data may have, are scaled beyond the limits; features without a range are left out. Zeros are not written. If zeros
become other numbers, a sparse file becomes a dense one: there is a warning if the entries grow by more than half.

Unit variance is x / s, s the standard deviation over all rows: without subtracting the mean, as zeros stay zeros then,
or with --center. Its range file maps [-s, s], or [mean - s, mean + s], to [-1, 1], which is the same straight line, so
that svm-scale -r applies it too; that of --keep-zeros is symmetric in the same way.

Order of rows, labels, queries (qid) and indices are kept, comments are dropped. Numbers are written with the fewest
digits that read back the same, where svm-scale writes 6. OUTPUT is compressed if it ends with .gz, .bz2, .xz or .zst.
Memory does not grow with the number of rows: 24 to 48 bytes per feature, and a block of lines. DATA is read twice, once
with -r; what cannot be read twice is copied to a temporary file first.

exit status:
  0  done      1  the data or the run failed      2  wrong usage"""

_GROWTH_WORTH_A_WARNING = 1.5
_ENTRIES_AT_ONCE = 1 << 21
_SHOWN_FEATURES = 5


def make_parser():
    """Return the parser of `widemargin scale`."""
    parser = Parser("scale", ["DATA"], description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("-l", "--lower", type=number, metavar="LOWER", help="lower limit of the scaled features (default: -1)")
    add("-u", "--upper", type=number, metavar="UPPER", help="upper limit of the scaled features (default: 1)")
    add("-y", "--labels", type=number, nargs=2, metavar=("LOWER", "UPPER"),
        help="scale the labels too, to these limits, for regression (default: labels are kept)")  # fmt: skip
    add("-s", "--save", metavar="RANGES", help="save the ranges to a file")
    add("-r", "--restore", metavar="RANGES", help="apply the ranges of a file; its limits too, and to labels if it "
        "was made with -y")  # fmt: skip
    add("-o", "--output", default="-", metavar="OUTPUT", help="where the rows go (default: -, standard output)")
    add("--method", choices=["range", "variance"],
        help="range: least and largest value to the limits; variance: unit variance (default: range)")  # fmt: skip
    add("--center", action="store_true", help="of --method variance: subtract the mean, which makes sparse data dense")
    add("--keep-zeros", action="store_true",
        help="of --method range: multiply only, so that the largest absolute value becomes UPPER")  # fmt: skip
    add_progress_option(parser)
    add("-q", "--quiet", action="store_true", help="print nothing but the rows, warnings and errors")
    add("--json", action="store_true", help="print a summary as one JSON object instead of text")
    return parser


def run(tokens):
    """Scale as the options say; return the exit status."""
    options = make_parser().parse(tokens)
    _check_files(options)
    plan = _plan(options)
    started = time.perf_counter()
    with (
        reporting(options),
        _blaming(options.files[0]),
        _open_blocks(options) as blocks,
    ):
        facts = _restore(blocks, options) if options.restore else _learn(blocks, options, plan)
    facts |= {"seconds": time.perf_counter() - started, "output": options.output}
    _summarise(facts, options)
    return 0


def _check_files(options):
    """Refuse files that are named for two things at once, and targets that cannot be written."""
    data, output, save, restore = options.files[0], options.output, options.save, options.restore
    if save is not None and restore is not None:
        raise UsageError("-s saves ranges that are learned from DATA, -r applies saved ones; leave one of them out")
    if data == "-" and restore == "-":
        raise UsageError("DATA and the ranges of -r cannot both be standard input")
    if save is not None:
        check_target(save, data)
        if save == output or (output != "-" and os.path.realpath(save) == os.path.realpath(output)):
            what = "standard output" if output == "-" else output
            raise UsageError(f"rows and ranges would both go to {what}; name another file with -o or -s")
    check_target(output, data, *([restore] if restore else []))


def _plan(options):
    """Return how to learn, (method, lower, upper); refuse options that do not go together."""
    if options.restore is not None:
        given = {"-y": options.labels, "--method": options.method, "--center": options.center,
                 "--keep-zeros": options.keep_zeros}  # fmt: skip
        for name, value in given.items():
            if value:
                raise UsageError(f"{name} is for learning ranges, those of -r are learned already; leave it out")
        return None
    if options.labels is not None and options.labels[0] >= options.labels[1]:
        raise UsageError("-y: the lower limit must be below the upper, got {:g} and {:g}".format(*options.labels))
    upper = 1.0 if options.upper is None else options.upper
    if options.method == "variance":
        if options.keep_zeros:
            raise UsageError("--method variance keeps zeros without --keep-zeros; leave that out")
        if (options.lower, options.upper) != (None, None):
            raise UsageError("-l and -u are for --method range, unit variance has no limits; leave them out")
        return "standard" if options.center else "variance", -1.0, 1.0
    if options.center:
        raise UsageError("--center is for --method variance; leave it out or name that")
    if options.keep_zeros:
        if upper <= 0 or options.lower not in (None, -upper):
            raise UsageError(f"--keep-zeros scales to [-UPPER, UPPER] with UPPER > 0, got -u {upper:g}"
                             + ("" if options.lower is None else f" and -l {options.lower:g}"))  # fmt: skip
        return "magnitude", -upper, upper
    lower = -1.0 if options.lower is None else options.lower
    if lower >= upper:
        raise UsageError(f"-l must be below -u, got {lower:g} and {upper:g}")
    return "range", lower, upper


@contextmanager
def _blaming(data):
    """Within the block, what the numbers of the data do not allow is an error of the run."""
    name = "standard input" if data == "-" else data
    try:
        yield
    except FormatError:
        raise
    except ValueError as error:
        raise CommandError(f"{name}: {error}") from error
    except MemoryError as error:
        raise CommandError(f"{name}: the ranges do not fit into memory, 24 to 48 bytes per feature") from error


@contextmanager
def _open_blocks(options):
    """Open DATA as blocks of rows; a copy of it if it is to be read twice and cannot be.

    Indices are taken as they are written, those of the range file too: a column 0 that nothing refers to costs nothing.
    """
    data, once = options.files[0], options.restore is not None
    if data != "-" and (once or os.path.isfile(data)):
        yield SvmlightBlocks(data, zero_based=True)
    elif once:
        yield SvmlightBlocks(sys.stdin.buffer, zero_based=True)
    else:
        with tempfile.TemporaryFile() as copy:
            if data == "-":
                shutil.copyfileobj(sys.stdin.buffer, copy)
            else:
                with open(data, "rb") as source:
                    shutil.copyfileobj(source, copy)
            copy.seek(0)
            yield SvmlightBlocks(copy, zero_based=True, name="<stdin>" if data == "-" else data)


def _learn(blocks, options, plan):
    """Learn ranges from the rows, save them if asked, write the rows scaled; return what there is to tell."""
    method, lower, upper = plan
    statistics = FeatureStatistics(moments=method in NEED_MOMENTS)
    for X, y, _ in _features_of(blocks):
        statistics.update(X, y)
    ranges = statistics.ranges(method, lower=lower, upper=upper, label_limits=options.labels)
    if options.labels is not None and ranges.labels.low == ranges.labels.high:
        say("warning", f"all labels are {ranges.labels.low:g}: they become {ranges.labels.lower:g}")
    _warn_of_growth(statistics, statistics.n_entries_scaled(ranges), ranges, _cure(method, ranges))
    if options.save is not None:
        with naming(options.save):
            write_ranges(sys.stdout if options.save == "-" else options.save, ranges, zero_based=True)
    n_scaled = _write(_scale(_reading(blocks), ranges), options.output)
    return _facts(statistics, ranges, n_scaled, options.save)


def _restore(blocks, options):
    """Write the rows scaled by saved ranges; return what there is to tell."""
    with naming("standard input" if options.restore == "-" else options.restore):
        ranges = read_ranges(sys.stdin if options.restore == "-" else options.restore, zero_based=True)
    for letter, asked, saved in (("-l", options.lower, ranges.lower), ("-u", options.upper, ranges.upper)):
        if asked not in (None, saved):
            raise UsageError(f"{letter} {asked:g}: the ranges of {options.restore} are for {saved:g}; leave it out")
    statistics = FeatureStatistics()
    n_scaled = _write(_scale(_features_of(blocks), ranges, statistics), options.output)
    _warn_of_unknown(np.setdiff1d(statistics.varying(), ranges.kept).tolist(), options.restore)
    _warn_of_growth(statistics, n_scaled, ranges, "learn the ranges with --keep-zeros or --method variance")
    return _facts(statistics, ranges, n_scaled, options.restore)


def _warn_of_unknown(features, path):
    """Warn of features of the rows that saved ranges do not know."""
    if features:
        names = [*map(str, features[:_SHOWN_FEATURES]), *(["..."] if len(features) > _SHOWN_FEATURES else [])]
        count = "1 feature is" if len(features) == 1 else f"{len(features)} features are"
        say("warning", f"{count} left out, for which {path} has no range: {', '.join(names)}")


def _reading(blocks):
    """Yield the blocks; an OSError is one of the file read, whatever is being written meanwhile."""
    try:
        yield from blocks
    except OSError as error:
        error.filename = blocks.name
        raise CommandError(explain_os_error(error)) from error


_TELLING_ROWS = 1000  # that show whether a file holds a kernel


def _features_of(blocks):
    """Yield the blocks; refuse rows of a precomputed kernel, which the first block tells."""
    recogniser = None
    for block in _reading(blocks):
        if recogniser is None:
            recogniser = KernelRecogniser()
            recogniser.update(block[0][:_TELLING_ROWS])
            if recogniser.is_kernel:
                raise CommandError(
                    f"{blocks.name}: {KERNEL_WORDS}, which is not scaled; scale the features that it is computed from, "
                    "and train with -t 4"
                )
        yield block


def _scale(blocks, ranges, statistics=None):
    """Yield the blocks scaled, some rows at a time if many zeros become numbers; gather statistics if asked."""
    n_rows = max(1, _ENTRIES_AT_ONCE // max(1, len(ranges.filled)))
    for X, y, qid in blocks:
        if statistics is not None:
            statistics.update(X)
        if X.shape[1] > ranges.n_features:
            X = X[:, : ranges.n_features]
        labels = ranges.apply_to_labels(y)
        for start in range(0, len(y), n_rows):
            part = slice(start, start + n_rows)
            yield ranges.apply(X[part]), labels[part], None if qid is None else qid[part]


def _write(blocks, output):
    """Write blocks of rows to a file, which is replaced when complete, or standard output; return their entries."""
    n_entries = 0

    def counted():
        nonlocal n_entries
        for block in blocks:
            n_entries += block[0].nnz
            yield block

    if output == "-":
        write_svmlight_blocks(sys.stdout.buffer, counted(), zero_based=True)
        sys.stdout.buffer.flush()
    else:
        with naming(output):
            write_svmlight_blocks(output, counted(), zero_based=True)
    return n_entries


def _cure(method, ranges):
    """Return what would keep zeros as they are."""
    if method == "standard":
        return "leave --center out to keep them"
    if ranges.lower != 0.0 and np.all(ranges.low >= 0.0):
        return "-l 0 keeps them, as no value is negative; so do --keep-zeros and --method variance"
    return "--keep-zeros and --method variance keep them"


def _warn_of_growth(statistics, n_scaled, ranges, cure):
    """Warn if scaled rows have many more entries than the rows had."""
    before = statistics.n_entries
    if n_scaled > _GROWTH_WORTH_A_WARNING * before:
        say("warning", f"{before} entries become {n_scaled}, as zeros of {len(ranges.filled)} features become other "
            f"numbers; {cure}")  # fmt: skip


def _facts(statistics, ranges, n_scaled, path):
    """Return what there is to tell of the rows."""
    return {
        "rows": statistics.n_rows,
        "features": len(ranges.kept),
        "left_out": len(np.setdiff1d(statistics.seen(), ranges.kept)),
        "entries": statistics.n_entries,
        "entries_scaled": n_scaled,
        "ranges": path,
    }


def _summarise(facts, options):
    """Print what came of the scaling; rows or ranges may be on their way through standard output."""
    stream = sys.stderr if "-" in (options.output, options.save) else sys.stdout
    if options.json:
        print_json(facts, stream)
    elif not options.quiet:
        words = {"rows": facts["rows"], "features": facts["features"], "entries": facts["entries"]}
        if facts["left_out"]:
            words["features"] = f"{facts['features']} ({facts['left_out']} left out)"
        if facts["entries"] != facts["entries_scaled"]:
            words["entries"] = f"{facts['entries_scaled']} (before: {facts['entries']})"
        if facts["ranges"] not in (None, "-"):
            words["ranges"] = facts["ranges"]
        words["seconds"] = f"{facts['seconds']:.2f}"
        if options.output != "-":
            words["output"] = options.output
        print_facts(words, stream)
