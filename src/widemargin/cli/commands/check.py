"""`widemargin check`: every mistake of a data file, then what is worth knowing about its rows and what looks wrong."""

import sys
from dataclasses import asdict

from widemargin.cli.files import ZERO_BASED
from widemargin.cli.messages import naming, print_facts, print_json
from widemargin.cli.options.parsing import Parser, whole
from widemargin.cli.progress import add_progress_option, reporting
from widemargin.data.quality_warnings import shown, suspicions
from widemargin.data.summary import summarise
from widemargin.data.svmlight.checker import check_svmlight

_SHOWN_CLASSES = 8
_DESCRIPTION = """\
Check a file of SVM-light / LIBSVM text (plain, .gz, .bz2, .xz or .zst): list every mistake as path:line:column, then
summarise the rows that have none, and say what looks wrong in them. "-" is standard input."""

_EXAMPLES = """\
examples:
  widemargin check heart_scale
  widemargin check --limit none heart_scale | grep "must be finite"
  widemargin check --task regression housing_scale
  xzcat big.xz | widemargin check -q -
  widemargin check --json heart_scale

A defect is what train, predict and the others refuse: a label or value that is no finite number, an index that is not
whole, too large or not larger than the one before, a colon or a qid that is missing, a carriage return that stands
alone, damaged compression, no rows at all. Blank lines and comments are none. Columns are counted in bytes; a wrong
index or value is shown where its index:value begins.

A warning is what is allowed but looks wrong, with the way out: features of different scales, uneven classes, a feature
that is the label again, rows that occur twice, labels that look like quantities, and more. Labels are taken for classes
if they are whole numbers, ten distinct ones or more if each has ten rows on average; --task overrules that.

exit status:
  0  no defects, whatever the warnings      1  defects, or the file cannot be read      2  wrong usage"""


def make_parser():
    """Return the parser of `widemargin check`."""
    parser = Parser("check", ["DATA"], description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("--limit", type=whole(0, also="none"), default=100, metavar="N",
        help="list N defects and count the others (default: 100), or none for no limit")  # fmt: skip
    add("--task", choices=["classification", "regression"],
        help="whether labels are classes or quantities (default: told from them)")  # fmt: skip
    add("--zero-based", choices=list(ZERO_BASED), default="auto",
        help="whether indices count from 0 (default: auto, yes if index 0 occurs)")  # fmt: skip
    add_progress_option(parser)
    add("-q", "--quiet", action="store_true", help="print nothing but the defects")
    add("--json", action="store_true", help="print one JSON object instead of text")
    return parser


def run(tokens):
    """Check as the options say; return the exit status."""
    options = make_parser().parse(tokens)
    (data,) = options.files
    with reporting(options):
        checked, summary = _check(data, options)
    warnings = [] if summary is None else suspicions(summary, "DATA" if data == "-" else data, options.task)
    if options.json:
        print_json(_as_json(checked, summary, warnings), sys.stdout)
    else:
        _print_defects(checked)
        if not options.quiet:
            _print_summary(checked, summary, warnings)
    return 1 if checked.n_mistakes else 0


def _check(data, options):
    """Return what was found in the file, and the summary of the rows without mistakes, None if there are none."""
    with naming(data if data != "-" else "standard input"):
        source = sys.stdin.buffer if data == "-" else data
        checked = check_svmlight(source, zero_based=ZERO_BASED[options.zero_based], limit=options.limit)
    if checked.X is None:
        return checked, None
    first_index = 0 if checked.zero_based else 1
    return checked, summarise(
        checked.X, checked.y, checked.qid, task=options.task, first_index=first_index, lines=checked.lines
    )


def _as_json(checked, summary, warnings):
    """Return all that was found as facts."""
    return {
        "defects": [{"line": line, "column": column, "message": rule} for line, column, rule in checked.mistakes],
        "n_defects": checked.n_mistakes,
        "n_defects_is_exact": checked.is_exact,
        "summary": None if summary is None else _as_lists(asdict(summary)),
        "suspicions": [warning._asdict() for warning in warnings],
    }


def _as_lists(fact):
    """Return a fact, or facts within facts, with a list for every tuple, as `print_json` takes them."""
    if isinstance(fact, dict):
        return {name: _as_lists(inner) for name, inner in fact.items()}
    return [_as_lists(inner) for inner in fact] if isinstance(fact, tuple) else fact


def _print_defects(checked):
    """Print a line for each defect listed, and how many more there are."""
    for line, column, rule in checked.mistakes:
        place = ":".join(str(part) for part in (checked.name, line, column) if part is not None)
        print(f"{place}: {rule}")
    n_more = checked.n_mistakes - len(checked.mistakes)
    if n_more:
        print(f"... and {'' if checked.is_exact else 'at least '}{n_more} more")


def _print_summary(checked, summary, warnings):
    """Print what is worth knowing about the good rows, the warnings, and the count of everything."""
    if summary is not None:
        print_facts(_facts(checked, summary), sys.stdout)
    for warning in warnings:
        print(f"{checked.name}: warning: {warning}")
    defects = f"{'' if checked.is_exact else 'at least '}{_count(checked.n_mistakes, 'defect')}"
    print(f"{defects}, {_count(len(warnings), 'warning')}")


def _count(number, thing, things=None):
    return f"{number or 'no'} {thing if number == 1 else things or thing + 's'}"


def _facts(checked, summary):
    """Return the summary as a person reads it."""
    features, repeats = summary.features, summary.repeats
    refused = f" (and {_count(checked.n_refused, 'line')} with defects)" if checked.n_refused else ""
    zeros = f", {summary.n_zeros} of them zeros" if summary.n_zeros else ""
    facts = {
        "rows": f"{summary.n_rows}{refused}",
        "features": f"{summary.n_features}, counted from {summary.first_index}",
        "entries": f"{summary.n_entries}, {100 * summary.density:.4g}% of all{zeros}",
        "labels": _label_words(summary.labels),
    }
    if summary.queries is not None:
        queries = summary.queries
        sizes = f"{queries.smallest} to {queries.largest} rows, median {queries.median:g}"
        facts["queries"] = f"{queries.n_queries} of {sizes}"
    if features.n_constant:
        facts["constant"] = f"{_count(features.n_constant, 'feature')}: {shown(features.constant, features.n_constant)}"
    if features.n_absent:
        facts["absent"] = f"{_count(features.n_absent, 'feature')}: {shown(features.absent, features.n_absent)}"
    if summary.n_empty:
        facts["empty"] = _count(summary.n_empty, "row")
    if repeats.n_repeats:
        facts["repeated"] = _count(repeats.n_repeats, "row")
    if repeats.n_conflicts:
        facts["disputed"] = f"{_count(repeats.n_conflicts, 'row')} with the same values but different labels"
    return facts


def _label_words(labels):
    """Return how labels are distributed, in words."""
    if labels.classes is None:
        ends = f"from {labels.smallest:g} to {labels.largest:g}"
        return f"{labels.n_distinct} distinct, {ends}, mean {labels.mean:g}, standard deviation {labels.spread:g}"
    counts = [f"{name} ({count})" for name, count in labels.classes]
    kept = counts if len(counts) <= _SHOWN_CLASSES else counts[: _SHOWN_CLASSES - 1]
    return f"{_count(len(counts), 'class', 'classes')}: {shown(kept, len(counts))}"
