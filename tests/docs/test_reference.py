"""Nothing public is missing from the reference: commands and their help texts, names of the package, docstrings."""

import doctest
import importlib
import importlib.util
import inspect
import re
import webbrowser
from pathlib import Path

import pytest

import widemargin
from widemargin.cli.main import COMMANDS
from widemargin.selection import parameter_ranges
from widemargin.workflows.demo import contender

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
WITH_EXAMPLES = sorted(path for path in SOURCE.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))
_EXAMPLES = re.compile(r"^examples:\n((?:  .+\n)+)", re.MULTILINE)
MEASURED = {"score": 0.9, "gap": 1e-5, "seconds": 1.0, "peak_bytes": None, "solver": "newton", "history": [[0.1, 0.1]]}
_COMMENT = re.compile(" {2,}.*")  # what stands beside an example


@pytest.fixture(scope="module")
def hooks():
    """The hooks by which the site is built."""
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs/builder/hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("words", [["--help"], *([command, "--help"] for command in COMMANDS)], ids=" ".join)
def test_every_help_text_is_in_the_docs(words, hooks, shell, monkeypatch):
    page = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")
    assert hooks.HELP_TEXTS in page
    monkeypatch.setenv("COLUMNS", hooks.HELP_WIDTH)
    assert shell(" ".join(["widemargin", *words])).output in hooks.help_texts()


def examples_in(text):
    """Return the commands under `examples:` of a help text, without what stands beside them or below them."""
    lines = [line for part in _EXAMPLES.findall(text) for line in part.splitlines() if not line.startswith("   ")]
    return [_COMMENT.sub("", line.strip()) for line in lines]


def test_every_example_of_the_help_texts_runs(hooks, shell, monkeypatch):
    examples = dict.fromkeys(examples_in(hooks.help_texts()))
    assert len(examples) > 20
    for values in ("_C", "_GAMMA"):  # coarser grids, for the sake of time
        monkeypatch.setattr(parameter_ranges, values, getattr(parameter_ranges, values)[::4])
    monkeypatch.setattr(contender, "measure", lambda *arguments: MEASURED)  # tests/workflows/demo has the rest of it
    monkeypatch.setattr(webbrowser, "open", lambda address: True)
    for example in examples:
        if re.match("widemargin (grid|easy) (?!.*--resume)", example):  # as if nobody had searched here before
            for word in example.split():
                for name in (f"{word}.grid", f"{word}.scale.grid"):
                    Path(name).unlink(missing_ok=True)
        outcome = shell(example)
        assert outcome.status == 0, f"{example}\n{outcome.errors}"


@pytest.mark.parametrize("name", widemargin.__all__)
def test_every_public_name_is_in_the_reference(name):
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs/reference").glob("*.md"))
    assert re.search(rf"^(::: |## `)widemargin\.(\w+\.)*{name}`?$", pages, re.MULTILINE), (
        f"add `::: widemargin.{name}` to a page of docs/reference/"
    )


@pytest.mark.parametrize("name", [name for name in widemargin.__all__ if callable(getattr(widemargin, name))])
def test_every_parameter_is_documented_and_no_other(name):
    thing = getattr(widemargin, name)
    section = re.search(r"Parameters\n-+\n(.*?)(?:\n\n\S|\Z)", inspect.getdoc(thing), re.DOTALL)
    if section is None:  # nobody makes one of these, or what it takes is plain
        nobody_makes = {
            "CPath",
            "Compression",
            "ConvergenceWarning",
            "GridResult",
            "LeaveOneOutEstimates",
            "Progress",
            "RowBlocks",
            "WrittenBlocks",
        }
        assert name in {*nobody_makes, "read_grid", "register_onnx_converters"}
        return
    heads = re.findall(r"^(\w+(?:, \w+)*)(?: :|$)", section[1], re.MULTILINE)
    documented = {parameter for head in heads for parameter in head.split(", ")}
    parameters = set(inspect.signature(thing).parameters)
    assert documented == parameters


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.stem)
def test_examples_in_docstrings_print_what_they_say(path, folder):
    module = importlib.import_module(".".join(path.relative_to(SOURCE).with_suffix("").parts))
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0
