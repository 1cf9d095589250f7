"""The parser of command line options, the translation of LIBSVM's options, and converters of option values.

Private names of argparse are used here and in `cli.help_text`, and nowhere else: `_negative_number_matcher`, which
decides whether a word with a dash is a number, `_actions` and `_option_string_actions`, which list the options for
messages, and `_fill_text`, which wraps texts. Tested with Python 3.11, the oldest that the package runs on; later ones
were not at hand.
"""

import argparse
import math
import re
from typing import NamedTuple

from widemargin.cli.help_text import HelpFormatter
from widemargin.cli.messages import UsageError, did_you_mean

ZERO_BASED = {"auto": "auto", "yes": True, "no": False}  # values of --zero-based, and what the library calls them
SVMLIGHT_TASKS = ("classification", "regression", "rank")
"""What a model of SVM-light's text may be for, as `persistence.svmlight` has it, which takes a second to import."""
_CLASS_WEIGHT = re.compile(r"-w(?P<label>.+)")
_NEGATIVE = re.compile(r"-(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$")
_SHRINKING = {"0": "no", "1": "yes"}
_EXTRA_FORMS = {"class_weight": ["-wLABEL"], "shrinking": ["-h"]}  # translated before argparse sees them


class OptionWords(NamedTuple):
    """An option in words: its forms, such as -c and --cost, the values to choose from, and its help text."""

    forms: tuple[str, ...]
    values: tuple[str, ...]
    takes_value: bool
    help: str


class Parser(argparse.ArgumentParser):
    """The parser of one command. Errors are UsageErrors, and files may occur anywhere among the options.

    Parameters
    ----------
    command : str
        The name after `widemargin`.
    files : list of str
        Names of the files that the command takes; optional ones are in brackets. If the name of one ends with
        "...", there may be several of it, and `files` are those that are given.
    description, examples : str
        Texts of `--help`.
    answers : dict of str to str
        Options of other programs, and messages that say what to use instead.
    """

    def __init__(self, command, files, *, description, examples, answers=None):
        super().__init__(
            prog=f"widemargin {command}",
            usage=" ".join(["widemargin", command, "[options]", *files]),
            description=description,
            epilog=examples,
            formatter_class=HelpFormatter,
            add_help=False,
            allow_abbrev=False,
        )
        self._names, self._answers = files, answers or {}
        self._negative_number_matcher = _NEGATIVE  # argparse's pattern takes -1e-3 for an option
        self.add_argument("-h", "--help", action="help", help="show this help and exit")
        self.add_argument("files", nargs="*", help=argparse.SUPPRESS)

    def error(self, message):
        """Raise a UsageError."""
        raise UsageError(f"{message} (see {self.prog} --help)")

    def print_help(self, file=None):
        """Print the help; unlike argparse, do not ignore errors of writing."""
        print(self.format_help(), end="", file=file)

    def parse(self, tokens):
        """Return the options; `files` has an entry for each file of the command, None for those not given.

        All words after `--` are files, even if they begin with a dash.
        """
        cut = tokens.index("--") if "--" in tokens else len(tokens)
        tokens, plain = tokens[:cut], tokens[cut + 1 :]
        options, unknown = self.parse_known_intermixed_args(tokens)
        for token in unknown:
            if token.partition("=")[0] in self._answers:
                self.error(self._answers[token.partition("=")[0]])
            if token.startswith("-") and len(token) > 1:
                self.error(f"unknown option {token}{self._suggestion(token)}")
        files = [*options.files, *unknown, *plain]
        required = [name for name in self._names if not name.startswith("[")]
        if len(files) < len(required):
            self.error(f"{' '.join(required[len(files) :]).removesuffix('...')} is missing")
        if any(name.endswith("...") for name in self._names):
            options.files = files
            return options
        if len(files) > len(self._names):
            self.error(f"unexpected argument {files[len(self._names)]!r}")
        options.files = files + [None] * (len(self._names) - len(files))
        return options

    def name(self, dest):
        """Return all forms of an option, joined: `-n/--nu`."""
        forms = [form for action in self._actions if action.dest == dest for form in action.option_strings]
        return "/".join(sorted([*_EXTRA_FORMS.get(dest, []), *forms], key=len))

    def described(self):
        """Return the options as `OptionWords`, for scripts that complete them."""
        return [
            OptionWords(
                tuple(action.option_strings),
                tuple(map(str, action.choices or ())),
                action.nargs != 0,
                action.help or "",
            )
            for action in self._actions
            if action.option_strings and action.help != argparse.SUPPRESS
        ]

    def _suggestion(self, token):
        known = [option for option in self._option_string_actions if option.startswith("--")]
        return did_you_mean(token.split("=")[0], known)


def add_zero_based_option(group, more=""):
    """Add --zero-based to a parser or to a group of options; `more` is appended to its help text."""
    group.add_argument("--zero-based", choices=list(ZERO_BASED), default="auto",
        help=f"whether indices count from 0 (default: auto, yes if index 0 occurs){more}")  # fmt: skip


def translate_letters(tokens):
    """Return the tokens with LIBSVM's `-wLABEL WEIGHT` and `-h 0|1` replaced by forms that argparse understands.

    `-h` that is not followed by 0 or 1 remains a request for help.
    """
    rest, translated = list(tokens), []
    while rest:
        token = rest.pop(0)
        weight = _CLASS_WEIGHT.fullmatch(token)
        if token == "--":
            return [*translated, token, *rest]
        if weight:
            translated.append(f"--class-weight={weight['label']}:{rest.pop(0) if rest else ''}")
        elif token == "-h" and rest and rest[0] in _SHRINKING:
            translated.append(f"--shrinking={_SHRINKING[rest.pop(0)]}")
        else:
            translated.append(token)
    return translated


def positive(text):
    """Return a finite number > 0."""
    value = number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"must be > 0, got {text}")
    return value


def non_negative(text):
    """Return a finite number >= 0."""
    value = number(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be >= 0, got {text}")
    return value


def number(text):
    """Return a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a finite number, got {text!r}")
    return value


def basis(text):
    """Convert the number of points of a basis, or the word auto."""
    return whole(1, also="auto")(text) or "auto"


def whole(lowest, also=None):
    """Return a converter of integers that are at least `lowest`; it converts the word `also`, if given, to None."""

    def convert(text):
        if also is not None and text == also:
            return None
        try:
            value = int(text)
        except ValueError:
            value = lowest - 1
        if value < lowest:
            words = f" or {also}" if also else ""
            raise argparse.ArgumentTypeError(f"must be a whole number >= {lowest}{words}, got {text!r}")
        return value

    return convert


def fraction(text):
    """Return a number > 0 and <= 1."""
    value = number(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"must be > 0 and <= 1, got {text}")
    return value


def gamma(text):
    """Return a number > 0, "scale", or "auto"; LIBSVM's 0 means "auto"."""
    if text in ("auto", "scale"):
        return text
    try:
        return non_negative(text) or "auto"
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"must be a number >= 0, auto or scale, got {text!r}") from error


def switch(text):
    """Return True for 1 and False for 0."""
    if text not in ("0", "1"):
        raise argparse.ArgumentTypeError(f"must be 0 or 1, got {text!r}")
    return text == "1"


def yes_or_no(text):
    """Return True for yes and False for no."""
    if text not in ("yes", "no"):
        raise argparse.ArgumentTypeError(f"must be yes or no, got {text!r}")
    return text == "yes"


def threads(text):
    """Return a number of threads, or -1 for one per core."""
    value = whole(-1)(text)
    if value == 0:
        raise argparse.ArgumentTypeError("must be a number of threads, or -1 for all cores, got 0")
    return value


def class_weight(text):
    """Return "balanced", or (label, weight) for LABEL:WEIGHT."""
    if text == "balanced":
        return text
    label, _, weight = text.rpartition(":")
    try:
        return number(label), positive(weight)
    except argparse.ArgumentTypeError as error:
        form = "expected LABEL:WEIGHT with WEIGHT > 0 (or -wLABEL WEIGHT, or balanced)"
        raise argparse.ArgumentTypeError(f"{form}, got {text!r}") from error


def join_weights(parser, weights):
    """Return the values of repeated --class-weight options as the class_weight of an estimator."""
    if "balanced" in weights:
        if len(weights) > 1:
            parser.error("--class-weight is either balanced or LABEL:WEIGHT for some labels, not both")
        return "balanced"
    return dict(weights)
