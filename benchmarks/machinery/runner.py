"""Runs one page in this process; `python -m benchmarks run` starts one for each page.

    python -m benchmarks.machinery.runner NAME [--quick] [--force] [--only TEXT ...] [--wait SECONDS] [--fresh]

Exit codes: 0 if the page is there, 75 if others use the machine, so that nothing was written.
"""

import argparse
import importlib
import sys
import warnings

from benchmarks.machinery.load import MachineBusyError, adopt_orphans
from benchmarks.machinery.page import How, Page
from benchmarks.pages import PAGES

BUSY = 75  # EX_TEMPFAIL: try again later


def add_options(parser):
    """Add what every run can be asked for."""
    parser.add_argument("--quick", action="store_true", help="the headline ratios, into build/benchmarks/quick")
    parser.add_argument("--force", action="store_true", help="on a busy machine too; into build/benchmarks, and marked")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="units whose name contains a text")
    parser.add_argument("--wait", type=float, default=120.0, help="seconds of waiting for a quiet machine")
    parser.add_argument("--full", action="store_true", help="the cases that take hours too")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured of this state")


def main(arguments=None):
    """Run the page; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=list(PAGES))
    add_options(parser)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    adopt_orphans()
    entry = PAGES[options.name]
    frame = importlib.import_module(entry.module).PAGE
    minutes = entry.quick_minutes if options.quick else entry.minutes
    how = How(minutes, options.quick, options.force, tuple(options.only), options.wait, options.full)
    page = Page(options.name, frame, how)
    if options.fresh:
        page.records.clear()
    try:
        print(f"written: {page.run()}", flush=True)
    except MachineBusyError as error:
        print(f"{options.name}: stopped, {error}. What was measured is kept; the same command goes on.", flush=True)
        return BUSY
    return 0


if __name__ == "__main__":
    sys.exit(main())
