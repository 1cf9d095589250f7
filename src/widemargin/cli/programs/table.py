"""The table of a program: its files, and each of its options with default, meaning and what it becomes here.

The table is all that the parser, the help text, the pages of `docs/from` and the tests know about the options of a
program. An option is in one of three states:

    available   it has its effect here
    noted       it steers how the original program computes, not what; it is accepted, and a note says that it has no
                effect
    refused     it cannot be had: the value, or any value, is an error with the reason
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from widemargin.cli.messages import UsageError

ANY_VALUE = "*"  # key of Option.refused
_CLASS_WEIGHT = "-wi"  # in the tables, where i stands for a label


@dataclass(frozen=True)
class Option:
    """An option of a program.

    Attributes
    ----------
    letter : str
        With its dashes; that of class weights ends with "i" and is followed by a label.
    default : str
        As it would be written on the command line; "" if there is none.
    meaning : str
    becomes : str
        What it is here; "" if it is only refused.
    read : callable or None
        Converts the text of a value; None if the option takes no value.
    default_words : str
        What the tables show as the default, if that is not its text.
    noted : str
        Why the option has no effect, if it has none.
    refused : mapping of str to str
        Reasons by the text of a value, or by ANY_VALUE.
    n_words : int
        Number of words of a value, which `read` gets separated by spaces.
    """

    letter: str
    default: str
    meaning: str
    becomes: str = ""
    read: Callable[[str], Any] | None = str
    default_words: str = ""
    noted: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)
    n_words: int = 1

    @property
    def here(self) -> str:
        """What the tables show in the column of what the option becomes."""
        words = [self.becomes] if self.becomes else []
        if self.noted:
            words.append(f"accepted with a note: {self.noted}")
        for value, reason in self.refused.items():
            words.append(
                f"refused: {reason}" if value == ANY_VALUE else f"`{self.letter} {value}` is refused: {reason}"
            )
        return "; ".join(words)


@dataclass(frozen=True)
class Arguments:
    """The command line of a program.

    Attributes
    ----------
    given : dict
        Values of the options that were given, by letter.
    files : list of str or None
        An entry for each file of the program; None for those that were left out.
    by_label : dict
        Class weights by label.
    options : dict of str to Option
    """

    given: dict
    files: list
    by_label: dict
    options: dict

    def __getitem__(self, letter):
        """Return the value of an option, its default if it was not given, and None without a default."""
        if letter in self.given:
            return self.given[letter]
        option = self.options[letter]
        if option.read is None:
            return False
        return option.read(option.default) if option.default else None


@dataclass(frozen=True)
class Program:
    """A program: its name, system, files, options, and the function that runs it and returns the exit status.

    If the usage, the data or the run is wrong, the exit status is `failure_status`.
    """

    name: str
    system: str
    purpose: str
    files: tuple[str, ...]
    options: tuple[Option, ...]
    run: Callable[[Arguments], int]
    failure_status: int = 1

    def parse(self, tokens):
        """Return the Arguments of a command line.

        As in the originals, options precede files, and each is followed by its value. A UsageError names an option that
        is unknown, refused, or has a wrong value.
        """
        options = {option.letter: option for option in self.options}
        given, by_label, rest = {}, {}, list(tokens)
        while rest and rest[0].startswith("-") and rest[0] != "-":
            word = rest.pop(0)
            option, label = self._find(word, options)
            if option.read is None:
                _refuse(option, ANY_VALUE)
                given[word] = True
                continue
            if len(rest) < option.n_words:
                raise UsageError(f"{word} needs a value; see widemargin as {self.name} --help")
            words, rest = rest[: option.n_words], rest[option.n_words :]
            value = _read(option, word, " ".join(words))
            (given if label is None else by_label)[word if label is None else label] = value
        return Arguments(given, self._match(rest), by_label, options)

    def _find(self, word, options):
        """Return the Option of a word with a dash, and the label of a class weight, otherwise None."""
        if word in options and word != _CLASS_WEIGHT:
            return options[word], None
        weight = options.get(_CLASS_WEIGHT)
        if weight is not None and word.startswith("-w") and len(word) > 2:
            return weight, _label(word)
        raise UsageError(f"{self.name} has no option {word}; see widemargin as {self.name} --help")

    def _match(self, files):
        """Return an entry for each file of the program."""
        required = [name for name in self.files if not name.startswith("[")]
        if len(files) < len(required):
            missing = " ".join(required[len(files) :])
            raise UsageError(f"{missing} is missing; {self.usage}")
        if len(files) > len(self.files):
            raise UsageError(f"unexpected argument {files[len(self.files)]!r}; {self.usage}, options first")
        return files + [None] * (len(self.files) - len(files))

    @property
    def usage(self) -> str:
        """The line of usage."""
        return f"usage: {self.name} [options] {' '.join(self.files)}"

    @property
    def notes(self) -> dict:
        """Why options have no effect, by letter."""
        return {option.letter: option.noted for option in self.options if option.noted}

    def help(self) -> str:
        """Return the help text."""
        lines = [f"widemargin as {self.name}: {self.purpose}", self.usage, ""]
        for option in self.options:
            default = option.default_words or option.default
            lines.append(f"  {option.letter:<4} {option.meaning}{f' (default: {default})' if default else ''}")
            lines.append(f"       here: {option.here}")
        return "\n".join(lines)


def _label(word):
    """Return the class label of `-wLABEL`."""
    try:
        return int(word[2:])
    except ValueError:
        raise UsageError(f"{word}: a class weight is -wLABEL with an integer label") from None


def _read(option, word, text):
    """Return the value of an option; a UsageError for a value that is wrong or refused."""
    try:
        value = option.read(text)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{word} {text}: {error}") from None
    _refuse(option, text)
    return value


def _refuse(option, text):
    """Raise a UsageError if a value, or any value, of an option is refused."""
    for refused in (text, ANY_VALUE):
        if refused in option.refused:
            shown = option.letter if refused == ANY_VALUE else f"{option.letter} {text}"
            raise UsageError(f"{shown} ({option.meaning}) cannot be had: {option.refused[refused]}")


def markdown(program: Program) -> str:
    """Return the table of a program as the pages of `docs/from` show it."""
    lines = [f"| {program.name} | default | meaning | here |", "|---|---|---|---|"]
    for option in program.options:
        default = option.default_words or (f"`{option.default}`" if option.default else "–")
        cells = (f"`{option.letter}`", default, option.meaning, option.here)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)
