"""The benchmarks: which pages there are, running them, and the summary that is made from them.

python -m benchmarks                       list the pages, their minutes and what they prove
python -m benchmarks run [NAME ...]        make pages, all of them if none is named; a run that was ended goes on
python -m benchmarks run --quick           every headline ratio, in ten minutes, into build/benchmarks/quick
python -m benchmarks summary               write the tables of README.md and of the documentation from the pages
python -m benchmarks programs              write docs/from/programs.md: figures of other programs beside ours, no times
"""

import argparse
import os
import subprocess
import sys
import time

from benchmarks.machinery.runner import BUSY, add_options
from benchmarks.machinery.state import ROOT, commit, machine
from benchmarks.pages import MOST_MINUTES, MOST_QUICK_MINUTES, PAGES
from benchmarks.programs.page import main as write_programs
from benchmarks.summary import main as write_summary


def list_pages():
    """Print all pages."""
    for name, entry in PAGES.items():
        print(f"{name:20}{entry.minutes:4g} min, quick {60 * entry.quick_minutes:3.0f} s   {entry.proves}")
        print(f"{'':20}python -m benchmarks run {name}")
    total, quick = (sum(getattr(entry, what) for entry in PAGES.values()) for what in ("minutes", "quick_minutes"))
    print(f"all pages: at most {total:g} of {MOST_MINUTES} minutes, quick {quick:g} of {MOST_QUICK_MINUTES}")


def run_pages(options):
    """Make the pages, each in a process of its own; return 0 if all are there."""
    names, ends = options.names or list(PAGES), {}
    print(f"{len(names)} pages of commit {commit()} on {machine()}", flush=True)
    for name in names:
        entry = PAGES[name]
        minutes = entry.quick_minutes if options.quick else entry.minutes
        print(f"\n=== {name}: at most {minutes:g} minutes", flush=True)
        begun = time.perf_counter()
        environment = os.environ | entry.environment
        code = subprocess.run(_command(name, options), cwd=ROOT, env=environment, check=False).returncode
        ends[name] = code
        print(f"=== {name}: {_end(code)} after {(time.perf_counter() - begun) / 60:.1f} minutes", flush=True)
        if code == BUSY:
            break
    write_summary(quick=options.quick)
    failed = [name for name in names if ends.get(name) != 0]
    print(f"\nnot made: {', '.join(failed)}; the same command goes on" if failed else "\nall pages are made")
    return max(ends.values(), key=abs)


def _command(name, options):
    command = [sys.executable, "-m", "benchmarks.machinery.runner", name, "--wait", str(options.wait)]
    command += [f"--{flag}" for flag in ("quick", "force", "fresh", "full") if getattr(options, flag)]
    return [*command, *(["--only", *options.only] if options.only else [])]


def _end(code):
    return {0: "made", BUSY: "stopped, the machine is busy"}.get(code, f"failed with exit code {code}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command")
    run = commands.add_parser("run", help="make pages")
    run.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PAGES)}")
    add_options(run)
    commands.add_parser("summary", help="write the tables of README.md and of the documentation")
    commands.add_parser("programs", help="write docs/from/programs.md")
    options = parser.parse_args()
    if options.command == "run":
        if unknown := set(options.names) - set(PAGES):
            parser.error(f"there is no page {', '.join(sorted(unknown))}; there are {', '.join(PAGES)}")
        return run_pages(options)
    if options.command == "summary":
        return write_summary()
    if options.command == "programs":
        return write_programs()
    return list_pages()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped; what was measured is kept, and the same command goes on")
