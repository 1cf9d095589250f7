"""`widemargin demo`: five machines on made-up rows, beside scikit-learn; see `run_demo`."""

import sys

from widemargin.cli.messages import UsageError, print_json, say
from widemargin.cli.options.parsing import Parser

_DESCRIPTION = """\
Train five machines on rows that are made up on the spot, each beside what scikit-learn has for the same
objective: a linear machine on half a million rows, an rbf machine on 20,000, a ranking, a linear machine on a file
that is larger than its memory limit, and an rbf machine on 500 basis points. Prints scores, certified gaps and seconds,
and writes a picture and a page. Takes about a minute on two cores, and a gigabyte of disk for the file."""

_EXAMPLES = """\
examples:
  widemargin demo                    writes demo/index.html and demo/widemargin-demo.png
  widemargin demo --output pictures --open
  widemargin demo --size 0.1 --limit 5

Every number is measured then and there; each fit is the first one of a new process.

exit status:
  0  done      1  the folder cannot be written, or a fit failed      2  wrong usage"""


def make_parser():
    """Return the parser of `widemargin demo`."""
    parser = Parser("demo", [], description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("--output", default="demo", metavar="DIR", help="folder of the picture and the page (default: demo)")
    add("--limit", type=float, default=10.0, metavar="SECONDS",
        help="seconds after which a fit of scikit-learn is ended; 0 leaves it out (default: 10)")  # fmt: skip
    add("--size", type=float, default=1.0, metavar="FRACTION", help="a fraction of the rows (default: 1)")
    add("--open", action="store_true", help="open the page in a browser")
    add("--json", action="store_true", help="print one JSON object in place of the table")
    add("-q", "--quiet", action="store_true", help="print the table only")
    return parser


def run(tokens):
    """Run the demonstration and print the table; return the exit status."""
    options = make_parser().parse(tokens)
    if not 0.0 < options.size <= 1.0:
        raise UsageError(f"--size must be above 0 and at most 1, got {options.size:g}")
    if not options.limit >= 0.0:
        raise UsageError(f"--limit must not be negative, got {options.limit:g}")
    from widemargin.workflows.demo.run import run_demo

    announce = None if options.quiet else _announce
    shown = run_demo(options.output, time_limit=options.limit, size=options.size, on_start=announce)
    if options.json:
        print_json(shown.to_dict(), sys.stdout)
    else:
        print(shown.to_text(ruled=sys.stdout.isatty()))
    if options.open:
        _open(shown.page)
    return 0


def _announce(text):
    """Print what runs now, on standard error."""
    print(f"{text} ...", file=sys.stderr, flush=True)


def _open(path):
    import webbrowser
    from pathlib import Path

    if not webbrowser.open(Path(path).resolve().as_uri()):
        say("note", f"no browser was found; open {path} yourself")
