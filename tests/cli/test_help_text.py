"""Help texts fit the terminal."""

import pytest

from widemargin.cli.help_text import wrapped
from widemargin.cli.main import COMMANDS


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_words_are_not_wider_than_the_terminal(call, monkeypatch, command, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    status, out, _ = call(*command.split(), "--help")
    assert status == 0
    wide = [line for line in out.splitlines() if len(line) > columns]
    # what must not be broken: commands, and the values of an option
    assert [line for line in wide if not line.lstrip().startswith(("widemargin", "xzcat", "usage:", "--"))] == []


def test_paragraphs_are_joined_and_commands_keep_their_lines():
    examples = "examples:\n  do this          and these words are beside it\n  another thing --without-words-beside-it"
    text = f"one two\nthree\n\n{examples}"
    assert wrapped("  do this  one two three four five", 30) == "  do this  one two three four\n           five"
    assert wrapped(text, 30).splitlines() == [
        "one two three",
        "",
        "examples:",
        "  do this",
        "      and these words are",
        "      beside it",
        "  another thing --without-words-beside-it",
    ]
