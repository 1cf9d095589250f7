"""`widemargin subset`: some of the rows of a data file, and the others apart; lines are copied as they are."""

import math
import os
import re
import sys

import numpy as np

from widemargin._runtime.atomic_file import replacing
from widemargin.cli.files import check_target
from widemargin.cli.messages import CommandError, UsageError, naming, print_facts, print_json, say
from widemargin.cli.options.parsing import Parser, whole
from widemargin.cli.progress import add_progress_option, reporting
from widemargin.data.sampling import query_rows, random_rows, stratified_rows
from widemargin.data.summary import are_classes
from widemargin.data.svmlight.compression import open_compressed
from widemargin.data.svmlight.lines import read_lines

_METHODS = {"0": "stratified", "1": "random", "stratified": "stratified", "random": "random"}
_CHOICES = {"stratified": stratified_rows, "random": random_rows}
_SHOWN_CLASSES = 8

_DESCRIPTION = """\
Take NUMBER rows of DATA (SVM-light / LIBSVM text, plain or compressed) at random and write them to SUBSET, the others
to REST if it is named. NUMBER is a count, or with a point a fraction of the rows: 100, 0.8. SUBSET is standard output
if left out; "-" is standard input or output."""

_EXAMPLES = """\
examples:
  widemargin subset heart_scale 100 > heart.100
  widemargin subset heart_scale 0.8 heart.train heart.test
  widemargin subset -s 1 --seed 7 covtype.xz 10000 covtype.10000.gz
  widemargin subset --by-query mq2008 0.7 mq2008.train mq2008.test

Lines are copied byte for byte, in their order; blank lines and comments of their own are left out. Files that end with
.gz, .bz2, .xz or .zst are written compressed, and a file is replaced when the new one is complete.

Stratified, the default: as many rows of each class as its part of all, rounded so that the sum is NUMBER, and one at
least where there is room. Labels that look like quantities (not whole, or more distinct ones than ten or a tenth of
the rows) are put in order and cut into NUMBER groups of neighbours, of which one row is taken from each. Random: each
set of rows is as likely as another. --by-query takes queries whole, at random, until there are as nearly NUMBER rows
as that gives.

exit status:
  0  done      1  the data or the run failed      2  wrong usage"""


def make_parser():
    """Return the parser of `widemargin subset`."""
    files = ["DATA", "NUMBER", "[SUBSET]", "[REST]"]
    parser = Parser("subset", files, description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("-s", "--method", choices=list(_METHODS), metavar="METHOD",
        help="0 or stratified: labels in the same proportion (default); 1 or random: whatever they are")  # fmt: skip
    add("--by-query", action="store_true", help="take whole queries (qid), about NUMBER rows")
    add("--seed", type=whole(0), default=0, metavar="N", help="the same seed gives the same rows (default: 0)")
    add_progress_option(parser)
    add("-q", "--quiet", action="store_true", help="print nothing but the rows, warnings and errors")
    add("--json", action="store_true", help="print one JSON object instead of text")
    return parser


def run(tokens):
    """Take a subset as the options say; return the exit status."""
    parser = make_parser()
    options = parser.parse(tokens)
    data, number, *targets = options.files
    number = _read_number(parser, number)
    if options.by_query and options.method is not None:
        raise UsageError("--by-query takes queries at random, whatever their labels; leave -s/--method out")
    options.method = _METHODS[options.method or "stratified"]
    targets = _check_targets(data, *targets)
    lines = _read(data, options)
    chosen = _choose(lines, number, options)
    _write(lines, chosen, targets)
    _report(lines, chosen, targets, options)
    return 0


def _read_number(parser, text):
    """Return a count as an int, or a fraction as a float."""
    if re.fullmatch("[0-9]+", text) and int(text) > 0:
        return int(text)
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 1:
        parser.error(f"NUMBER must be a count >= 1, or a fraction > 0 and <= 1 such as 0.8, got {text!r}")
    return number


def _read(data, options):
    """Return the lines of the data file."""
    with reporting(options), naming(data if data != "-" else "standard input"):
        return read_lines(sys.stdin.buffer if data == "-" else data)


def _check_targets(data, subset, rest):
    """Return where the rows and the others go, None for nowhere; refuse what cannot be written, or would be twice."""
    subset = "-" if subset is None else subset
    for target in (subset, rest):
        if target is not None:
            check_target(target, data)
    if rest is not None and os.path.realpath(subset) == os.path.realpath(rest):
        raise UsageError(f"SUBSET and REST are both {subset}; name two files")
    return subset, rest


def _choose(lines, number, options):
    """Return the rows of the subset."""
    data, n_rows = options.files[0], len(lines.labels)
    if isinstance(number, float):
        number = max(1, math.floor(number * n_rows + 0.5))
    if number > n_rows:
        raise CommandError(f"{data}: {number} rows are wanted, there are {n_rows}; ask for fewer")
    if not options.by_query:
        if lines.queries is not None and not options.quiet:
            say("note", f"{data} has queries (qid), which are torn apart; --by-query keeps them whole")
        return _CHOICES[options.method](lines.labels, number, options.seed)
    if lines.queries is None:
        raise CommandError(f"{data}: there is no qid for --by-query; leave it out")
    return query_rows(lines.queries, number, options.seed)


def _write(lines, chosen, targets):
    """Write the rows chosen to the first target and the others to the second, unless it is None."""
    others = np.ones(len(lines.labels), bool)
    others[chosen] = False
    for target, rows in zip(targets, (chosen, np.flatnonzero(others)), strict=True):
        if target == "-":
            sys.stdout.buffer.writelines(lines.copy(rows))
            sys.stdout.buffer.flush()
        elif target is not None:
            with naming(target), replacing(target) as file, open_compressed(file, target) as packed:
                packed.writelines(lines.copy(rows))


def _report(lines, chosen, targets, options):
    """Print what was taken; rows may be on their way through standard output."""
    stream = sys.stderr if "-" in targets else sys.stdout
    n_rows = len(lines.labels)
    facts = {"rows": n_rows, "subset": len(chosen), "rest": n_rows - len(chosen), "seed": options.seed}
    facts["method"] = "queries" if options.by_query else options.method
    if are_classes(lines.labels):
        facts["classes"] = _tally(lines.labels, chosen)
    if lines.queries is not None:
        facts["queries"] = len(np.unique(lines.queries))
        facts["queries_in_subset"] = len(np.unique(lines.queries[chosen]))
    facts["lines_left_out"] = lines.n_others
    if options.json:
        print_json(facts, stream)
    elif not options.quiet:
        print_facts(_in_words(facts), stream)


def _tally(labels, chosen):
    """Return how many rows each class has, and how many of them are chosen."""
    classes, group, counts = np.unique(labels, return_inverse=True, return_counts=True)
    taken = np.bincount(group[chosen], minlength=len(classes))
    columns = classes.astype(np.int64).tolist(), counts.tolist(), taken.tolist()
    return [{"label": label, "rows": n, "subset": k} for label, n, k in zip(*columns, strict=True)]


def _in_words(facts):
    """Return the facts as a person reads them."""
    words = {"subset": f"{facts['subset']} of {facts['rows']} rows, {facts['method']}, seed {facts['seed']}"}
    if "classes" in facts:
        shown = [f"{one['label']} ({one['subset']} of {one['rows']})" for one in facts["classes"][:_SHOWN_CLASSES]]
        words["labels"] = ", ".join(shown) + (", ..." if len(facts["classes"]) > len(shown) else "")
    if "queries" in facts:
        words["queries"] = f"{facts['queries_in_subset']} of {facts['queries']}"
    if facts["lines_left_out"]:
        words["left out"] = f"{facts['lines_left_out']} lines that are blank or comments"
    return words
