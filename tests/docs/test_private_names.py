"""The pages that show how to add a loss, a kernel, a measure or a solver need no private name of the package."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs/howto").glob("add-a-*.md"))
_EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PRIVATE = re.compile(r"_[a-zA-Z]\w*")


def private_names(text):
    """Return the private names that the examples of a page import, read or set on objects, or override in classes."""
    found = set()
    for node in (node for example in _EXAMPLE.findall(text) for node in ast.walk(ast.parse(example))):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            found |= {part for alias in node.names for part in [*node.module.split("."), alias.name]}
        elif isinstance(node, ast.ClassDef):
            found |= {member.name for member in node.body if isinstance(member, ast.FunctionDef)}
    return {name for name in found if _PRIVATE.fullmatch(name)}


def mentioned(text):
    """Return the private names that the text around the examples mentions as code."""
    return set(re.findall(r"`(_[a-zA-Z]\w*)`", _EXAMPLE.sub("", text)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_of_extensions_use_no_private_name(page):
    text = page.read_text(encoding="utf-8")
    assert _EXAMPLE.search(text), "the page has an example"
    assert private_names(text) == set()
    assert mentioned(text) == set()


@pytest.mark.parametrize(
    ("example", "name"),
    [
        ("class A(B):\n    def _problems(self): pass", "_problems"),
        ("risk._search = None", "_search"),
        ("from widemargin._runtime.threads import run", "_runtime"),
        ("from widemargin.solvers.auto import _price", "_price"),
    ],
)
def test_a_private_name_in_an_example_is_found(example, name):
    assert private_names(f"```python\n{example}\n```\n") == {name}
    assert mentioned(f"The method `{name}` is overridden.") == {name}
