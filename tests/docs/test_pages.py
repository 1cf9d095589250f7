"""Every example of the documentation runs, and prints what the page says.

A page is one test: its blocks share a namespace and a folder. Sybil finds the blocks and runs those in Python under the
page's own line numbers; its pytest plugin is not used, since it makes each block a test, which parallel runs would
spread over processes. What follows Python and a shell is ours.

    ```python    runs; warnings are errors
    ```sh        each line that begins with `widemargin` runs, with pipes; it must exit with 0, or as `# exit status 2`
    ```console   the same for lines that begin with `$ `; other lines are what is printed
    ```text      what the block right before has printed, `...` for anything
    ```none      is no example: a formula, a piece of a file
"""

import contextlib
import doctest
import io
import re
from pathlib import Path
from textwrap import dedent

import pytest
from sybil import Document, Region
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown.lexers import RawFencedCodeBlockLexer

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
ILLUSTRATIONS = {"none", "bibtex", "dockerfile", "yaml"}  # tests/workflows/test_warmup.py runs the Dockerfile
PROGRAMS = {"widemargin", "cat", "cut", "grep", "head", "sort", "wc", "xzcat"}
NOT_RUN = {  # installing and building, and programs of others
    "pip", "make", "svm-train", "svm-predict", "train", "predict", "svm_learn", "svm_rank_learn", "svm_rank_classify",
}  # fmt: skip
_STATUS = re.compile(r"#.*exit status (\d+)")
_LEXER = RawFencedCodeBlockLexer(re.compile(r"(?P<language>[^\n]*)\n"))
_CHECKER = doctest.OutputChecker()


def blocks_of(path):
    """Return the fenced blocks of a page."""
    return list(Document.parse(str(path), _regions))


def _regions(document):
    for region in _LEXER(document):
        yield Region(region.start, region.end, parsed=region.lexemes["source"], lexemes=region.lexemes)


def languages_of(path):
    return [block.region.lexemes["language"] for block in blocks_of(path)]


@pytest.mark.parametrize("page", PAGES)
def test_examples_run_and_print_what_the_page_says(page, shell):
    printed = None
    for block in blocks_of(ROOT / page):
        language = block.region.lexemes["language"]
        place = f"{page}:{block.line}"
        if language == "text":
            assert printed is not None, f"{place}: ```text is what an example prints; use ```none for anything else"
            compare(block.parsed, printed, place)
            printed = None
        elif language == "python":
            printed = run_python(block)
        elif language == "sh":
            printed = "".join(run_line(line, place, shell) for line in lines_of(block.parsed))
        elif language == "console":
            run_session(block.parsed, place, shell)
            printed = None
        else:
            assert language in ILLUSTRATIONS, f"{place}: nobody knows how to run ```{language}"
            printed = None


def run_python(block):
    """Run a block in the page's namespace; return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        PythonEvaluator()(block)
    return printed.getvalue()


def lines_of(text):
    """Return the commands of a shell block, those continued on the next line whole."""
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]


def run_line(line, place, shell):
    """Run a line unless it is one of those that are not; return what it prints."""
    program = line.split()[0]
    if program in NOT_RUN:
        return ""
    assert program in PROGRAMS, f"{place}: nobody knows how to run {line!r}"
    stated = _STATUS.search(line)
    outcome = shell(line)
    assert outcome.status == (int(stated[1]) if stated else 0), f"{place}: {line}\n{outcome.errors}"
    return outcome.errors if outcome.status else outcome.output


def run_session(text, place, shell):
    """Run the commands of a session, and compare what each prints with the lines that follow it."""
    _, *parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    assert parts, f"{place}: a session needs a line that begins with `$ `"
    for part in parts:
        line, _, expected = part.replace("\\\n", " ").partition("\n")
        printed = run_line(line, place, shell)
        if expected.strip():
            compare(expected, printed, place)


def compare(expected, printed, place):
    """Fail unless the text is as expected, `...` standing for anything."""
    expected, printed = (f"{dedent(text).rstrip()}\n" for text in (expected, printed))
    assert _CHECKER.check_output(expected, printed, doctest.ELLIPSIS), (
        f"{place}: the page says\n{expected}\nand the example prints\n{printed}"
    )


def test_a_wrong_output_is_noticed():
    with pytest.raises(AssertionError, match="the page says"):
        compare("gap 0.5", "gap 0.6", "page:1")
    compare("gap ...", "gap 0.6", "page:1")


def test_a_failing_command_is_noticed(shell):
    with pytest.raises(AssertionError, match="no-such-file"):
        run_line("widemargin train no-such-file", "page:1", shell)
    assert "no-such-file" in run_line("widemargin train no-such-file  # exit status 1", "page:1", shell)


def test_an_unknown_command_is_noticed(shell):
    with pytest.raises(AssertionError, match="nobody knows how to run 'frobnicate"):
        run_line("frobnicate heart_scale", "page:1", shell)


def test_blocks_in_lists_are_found_and_unknown_languages_kept(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("- item\n\n    ```python\n    x = 1\n    ```\n\n```ruby\n1\n```\n")
    assert languages_of(page) == ["python", "ruby"]
