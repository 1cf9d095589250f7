"""Output of the command line: messages of one line and progress on standard error, and results.

Messages of `widemargin.workflows` name arguments of its functions. `OPTIONS` has the options of the command line that
stand for them.
"""

import difflib
import errno
import json
import math
import sys
import warnings
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from widemargin._runtime.compile import announcing_compilation
from widemargin._runtime.progress import ProgressReport
from widemargin.workflows.errors import FileNote, FileWarning

_CLOSE = 0.65  # the least similarity, by difflib's ratio, of a word that is suggested
_FEWEST_LETTERS = 3  # of a word that is suggested because it begins another one
_REMEDIES = {
    errno.ENOENT: "no such file; check the path",
    errno.EISDIR: "is a directory; name a file",
    errno.ENOTDIR: "a part of the path is not a directory; check the path",
    errno.EACCES: "permission denied; change its permissions or name another file",
    errno.EROFS: "the file system is read-only; name another place",
    errno.EBADF: "is closed; open it, or name a file",
    errno.ENOSPC: "no space left; free some or name another place",
}
OPTIONS = {  # of the command line, by the arguments of the library that they stand for in its messages
    'kernel="precomputed"': "-t 4",
    "zero_based=True": "--zero-based yes",
    "zero_based": "--zero-based",
    "RankSVM": "--task rank",
    "probability=True": "-b 1",
    'loss="log_loss"': "--loss log_loss",
    "calibration": "--calibration",
    "scores=True": "--scores",
    "output": "OUTPUT",
    "data": "DATA",
    "output=": "-o",
    "save": "-s",
    "restore": "-r",
    "labels": "-y",
    "lower": "-l",
    "lower=0": "-l 0",
    "upper": "-u",
    "[-upper, upper] with upper > 0": "[-UPPER, UPPER] with UPPER > 0",
    "method": "--method",
    'method="range"': "--method range",
    'method="variance"': "--method variance",
    "center=True": "--center",
    "keep_zeros=True": "--keep-zeros",
    "model": "MODEL",
    "grid": "--grid",
    "output path": "-o/--output",
    "report_file(model, data)": "report MODEL DATA",
    "take SVR or LinearSVR": "add --task regression",
    "format": "--format",
    "class_weight": "-w",
    "the output for the model": "MODEL",
    "train_file": "train",
    "easy_files": "easy",
    "convert_file": "widemargin convert",
    "subset_file with text=True": "widemargin subset --text",
    "text=True": "--text",
    "checkpoint": "--checkpoint",
    "max_memory": "--max-memory",
    "dask": "--dask",
    "basis": "--basis",
    "n_features": "--n-features",
    "dtype": "--float32",
    "extend=N": "--extend N",
    "results": "--results",
    "plots": "--plot",
    "resume=True": "--resume",
    "overwrite=True": "--overwrite",
    'grid_file with kernel="precomputed"': "widemargin grid -t 4",
    'kernel="rbf"': "--kernel rbf",
    "scale_targets=True": "--scale-targets",
    "by_query=True": "--by-query",
    "estimators": "--only",
    "method of a subset": "-s/--method",
    "subset": "SUBSET",
    "rest": "REST",
    "n_vectors": "--vectors",
    "prefix": "--prefix",
    "max_change": "--max-change",
    "rows": "--rows",
    "refit": "--refit",
}


_SPEAKER: ContextVar[str] = ContextVar("speaker", default="widemargin")


class UsageError(Exception):
    """The command has wrong options or arguments; the exit status is 2."""


class CommandError(Exception):
    """The data are wrong, or the command failed; the exit status is 1."""


def did_you_mean(word, known):
    """Return "; did you mean ...?" for the known word that another resembles, or "" if none is close.

    Dashes in front are not compared: every option has them. A word is close to itself in other letters, and to one that
    begins with it or with which it begins.
    """
    plain = {each.lstrip("-").lower(): each for each in known}
    bare = word.lstrip("-").lower()
    near = difflib.get_close_matches(bare, plain, n=1, cutoff=_CLOSE)
    for each in () if near else plain:
        if min(len(each), len(bare)) >= _FEWEST_LETTERS and (each.startswith(bare) or bare.startswith(each)):
            near.append(each)
    return f"; did you mean {plain[near[0]]}?" if near else ""


@contextmanager
def own_name():
    """Within the block, messages begin with `widemargin`, or with what `speak_as` says from there on."""
    token = _SPEAKER.set("widemargin")
    try:
        yield
    finally:
        _SPEAKER.reset(token)


def speak_as(name):
    """Have messages begin with the name of another program, until the block of `own_name` ends."""
    _SPEAKER.set(name)


def say(kind, message):
    """Print `widemargin: kind: message` as one line on standard error, or with the name that `speak_as` was given.

    If standard error cannot be written to, the message is lost, and only the exit status reports the failure.
    """
    with suppress(OSError):
        print(f"{_SPEAKER.get()}: {kind}: {' '.join(str(message).split())}", file=sys.stderr, flush=True)


def explain_os_error(error):
    """Return the name of the file, what is wrong with it, and a remedy."""
    name = "standard output" if error.filename is None else error.filename
    reason = _REMEDIES.get(error.errno) or (error.strerror or str(error) or type(error).__name__)
    return f"{name}: {reason}"


@contextmanager
def warnings_as_lines():
    """Within the block, print warnings for users as single lines, and hide warnings for programmers."""

    def show(message, category, filename, lineno, file=None, line=None):
        say(_kind(category), message)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", category=UserWarning)
        warnings.filterwarnings("always", category=RuntimeWarning)
        warnings.showwarning = show
        yield


def _kind(category):
    """Return the word that precedes a warning of this category."""
    return "note" if issubclass(category, FileNote) else "warning"


@contextmanager
def warnings_afterwards(*, notes=True):
    """Delay the warnings of the block until its end, because a progress bar would overwrite them.

    Warnings about files are printed at once, as they precede the progress bars; notes are printed only if `notes` is
    True. The value of the context is a function that prints the warnings delayed so far.
    """
    delayed = []

    def show(message, category, filename, lineno, file=None, line=None):
        if issubclass(category, (FileNote, FileWarning)):
            if notes or not issubclass(category, FileNote):
                say(_kind(category), message)
        else:
            delayed.append(message)

    def release():
        while delayed:
            say("warning", delayed.pop(0))

    try:
        with warnings.catch_warnings():
            warnings.showwarning = show
            yield release
    finally:
        release()


def print_json(facts, stream):
    """Print a dict as one object of strict JSON; numbers that are not finite become null."""
    print(json.dumps(_finite(facts), allow_nan=False), file=stream)


def _finite(fact):
    """Return a value with None in place of every number that is not finite, within dicts and lists too."""
    if isinstance(fact, dict):
        return {name: _finite(inner) for name, inner in fact.items()}
    if isinstance(fact, list):
        return [_finite(inner) for inner in fact]
    return None if isinstance(fact, float) and not math.isfinite(fact) else fact


def show_result(result, options, stream):
    """Print the result of a workflow as --json and --quiet say."""
    if options.json:
        print_json(result.to_dict(), stream)
    elif not options.quiet:
        print(result, file=stream)


def add_output_options(group, quiet, json="print one JSON object instead of text"):
    """Add --progress, --quiet and --json to a parser or to a group of options; `quiet` and `json` are help texts."""
    add_progress_option(group)
    group.add_argument("-q", "--quiet", action="store_true", help=quiet)
    group.add_argument("--json", action="store_true", help=json)


def add_progress_option(group):
    """Add --progress to a parser, or to a group of options, of a command that has --quiet."""
    group.add_argument(
        "--progress",
        choices=["auto", "yes", "no"],
        default="auto",
        help="show the progress of work that takes longer than a second on standard error: bars on a terminal; "
        "elsewhere nothing if auto, and lines at growing intervals if yes (default: auto)",
    )


def wants_progress(options):
    """Return whether progress is shown; UsageError if --progress yes and --quiet are both given."""
    if options.quiet and options.progress == "yes":
        raise UsageError("--progress yes and -q/--quiet contradict each other; leave one of them out")
    is_wanted = options.progress == "yes" or (options.progress == "auto" and sys.stderr.isatty())
    return is_wanted and not options.quiet


@contextmanager
def reporting(options):
    """Within the block, show progress and announce compilation if the options say so; delay warnings until its end."""
    report = ProgressReport(wants_progress(options), last_lines=False)
    with warnings_afterwards(notes=not options.quiet), report, announcing_compilation(report.compiling):
        yield
