"""The docstring of a public class is complete in its source: an editor that does not run the code shows all of it."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import widemargin

SOURCE = Path(widemargin.__file__).parent
CLASSES = {
    name: thing
    for name in widemargin.__all__
    if inspect.isclass(thing := getattr(widemargin, name)) and thing.__module__.startswith("widemargin.")
}
MADE_BY_FUNCTIONS = {"RowBlocks"}  # by open_blocks: callers do not use the constructor


def class_in_source(name):
    """Return the syntax tree of a public class, read from the file and not from what was imported."""
    path = Path(inspect.getsourcefile(CLASSES[name]))
    (found,) = (node for node in ast.parse(path.read_text(encoding="utf-8")).body if getattr(node, "name", "") == name)
    return found


def taken_by(node):
    """Return the names that `__init__` takes, in order; of a dataclass or NamedTuple its fields."""
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and member.name == "__init__":
            arguments = member.args.posonlyargs + member.args.args + member.args.kwonlyargs
            return [argument.arg for argument in arguments[1:]]
    return [member.target.id for member in node.body if isinstance(member, ast.AnnAssign)]


def documented_in(docstring):
    """Return the names under Parameters, or under Attributes if the class has no such section, in order."""
    sections = dict(re.findall(r"^(Parameters|Attributes)\n-+\n(.*?)(?=\n\n\S|\Z)", docstring, re.M | re.S))
    heads = re.findall(r"^(\w+(?:, \w+)*)(?: :|$)", sections.get("Parameters", sections.get("Attributes", "")), re.M)
    return [name for head in heads for name in head.split(", ")]


@pytest.mark.parametrize("name", sorted(CLASSES.keys() - MADE_BY_FUNCTIONS))
def test_a_class_documents_what_it_takes_in_its_source(name):
    node = class_in_source(name)
    assert documented_in(ast.get_docstring(node)) == taken_by(node)


@pytest.mark.parametrize("name", CLASSES)
def test_the_docstring_is_the_one_in_the_source(name):
    assert inspect.cleandoc(CLASSES[name].__doc__) == ast.get_docstring(class_in_source(name))


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_docstring_is_made_at_import(path):
    assert not [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "__doc__" and isinstance(node.ctx, ast.Store)
    ]


def test_a_missing_and_an_invented_parameter_are_noticed():
    node = ast.parse('class A:\n    """A.\n\n    Parameters\n    ----------\n    b : int\n    """\n').body[0]
    init = ast.parse("def __init__(self, a, *, b=1): ...").body[0]
    assert documented_in(ast.get_docstring(node)) == ["b"]
    assert taken_by(ast.ClassDef("A", [], [], [init], [])) == ["a", "b"]
