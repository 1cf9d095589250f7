"""Every warning of the package is on the page of messages, by its words."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_PAGE = ROOT / "docs/messages.md"
_GIVING = {"warn_caller": 0, "warn_once": 0, "QualityWarning": 1}  # where the message stands among the arguments
_N_WORDS = 4


def words_of(text):
    return re.findall(r"[\w']+", text.lower())


def pieces_of(node, names):
    """Return the texts between the values of a message, a string or an f-string, or a variable that holds one."""
    if isinstance(node, ast.Constant):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return [piece for part in node.values for piece in pieces_of(part, names)]
    if isinstance(node, ast.FormattedValue):
        return pieces_of(node.value, names)
    if isinstance(node, ast.Name):
        return [piece for value in names.get(node.id, []) for piece in pieces_of(value, {})]
    return []


def messages_in(tree):
    """Yield the line and the words of the longest piece of each warning that a module gives."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        names = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                names.setdefault(node.targets[0].id, []).append(node.value)
        for node in ast.walk(function):
            place = _GIVING.get(getattr(getattr(node, "func", None), "id", ""))
            if place is not None:
                yield node.lineno, max(map(words_of, pieces_of(node.args[place], names)), key=len, default=[])


def is_among(message, words):
    """Return whether some words of a message, four in a row or all that it has, stand in a row among the words."""
    n = min(_N_WORDS, len(message))
    rows = {tuple(words[k : k + n]) for k in range(len(words))}
    return n > 1 and any(tuple(message[k : k + n]) in rows for k in range(len(message) - n + 1))


def test_every_warning_is_on_the_page():
    words = words_of(_PAGE.read_text(encoding="utf-8"))
    found = {}
    for path in sorted((ROOT / "src/widemargin").rglob("*.py")):
        if path.name != "warning.py":  # which passes on what it is given
            for line, message in messages_in(ast.parse(path.read_text(encoding="utf-8"))):
                if message:  # or a warning from elsewhere is passed on
                    found[f"{path.relative_to(ROOT)}:{line}"] = message
    assert len(found) > 40
    missing = {place: " ".join(message) for place, message in found.items() if not is_among(message, words)}
    assert missing == {}, "say on docs/messages.md what these mean, and what to do"


@pytest.mark.parametrize(
    ("message", "there"), [("the columns beyond are dropped", True), ("nobody says such words", False)]
)
def test_a_message_that_is_missing_is_noticed(message, there):
    assert is_among(words_of(message), words_of("x: `the columns beyond are dropped`, now")) is there
