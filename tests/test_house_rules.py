"""Limits on the shape of functions: at most four nested blocks, and at most six positional parameters.

Parameters that can only be given by keyword do not count, nor does `self`. Compiled functions, whose arguments are
plain numbers and arrays, and constructors, whose arguments scikit-learn prescribes, may have more parameters.
"""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "widemargin"
MOST_NESTED_BLOCKS = 4
MOST_POSITIONAL_PARAMETERS = 6
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# Functions that broke a limit when the limits were introduced. A function that keeps to them is taken off its list.
KNOWN_DEEP: set[str] = set()
KNOWN_WIDE: set[str] = set()


def functions_in(tree, prefix=""):
    """Yield (qualified name, node) of every function of a module or class, nested ones included."""
    for node in ast.iter_child_nodes(tree):
        is_named = isinstance(node, (*FUNCTIONS, ast.ClassDef))
        name = f"{prefix}{node.name}" if is_named else prefix
        if isinstance(node, FUNCTIONS):
            yield name, node
        yield from functions_in(node, f"{name}." if is_named else prefix)


def nested_blocks(node):
    """Return how many blocks are nested in each other below a node; `elif` does not add one, a nested function ends."""
    deepest = 0
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            continue
        is_elif = isinstance(node, ast.If) and isinstance(child, ast.If) and node.orelse == [child]
        is_block = isinstance(child, BLOCKS) and not is_elif
        deepest = max(deepest, nested_blocks(child) + is_block)
    return deepest


def positional_parameters(function):
    """Return the number of parameters that can be given by position, without `self` and `cls`."""
    names = [argument.arg for argument in [*function.args.posonlyargs, *function.args.args]]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def is_exempt(function):
    """Return whether a function is a constructor, or compiled."""
    return function.name == "__init__" or any("compiled" in ast.unparse(one) for one in function.decorator_list)


def too_deep(tree):
    return {name for name, function in functions_in(tree) if nested_blocks(function) > MOST_NESTED_BLOCKS}


def too_wide(tree):
    return {
        name
        for name, function in functions_in(tree)
        if positional_parameters(function) > MOST_POSITIONAL_PARAMETERS and not is_exempt(function)
    }


def in_all_modules(breaks):
    """Return `file: name` of the functions of the package that break a limit."""
    found = set()
    for path in sorted(SOURCE.rglob("*.py")):
        names = breaks(ast.parse(path.read_text()))
        found |= {f"{path.relative_to(SOURCE).as_posix()}: {name}" for name in names}
    return found


def test_no_function_has_more_than_four_nested_blocks():
    assert in_all_modules(too_deep) == KNOWN_DEEP


def test_no_function_has_more_than_six_positional_parameters():
    assert in_all_modules(too_wide) == KNOWN_WIDE


@pytest.mark.parametrize("n_blocks", [4, 5])
def test_nested_blocks_are_counted(n_blocks):
    heads = ["if a:", "for b in c:", "with d:", "try:", "while e:"][:n_blocks]
    lines = ["def f():", *("    " * (k + 1) + head for k, head in enumerate(heads)), "    " * (n_blocks + 1) + "pass"]
    if n_blocks >= 4:
        lines.append("    " * 4 + "finally: pass")
    assert too_deep(ast.parse("\n".join(lines))) == ({"f"} if n_blocks > MOST_NESTED_BLOCKS else set())


def test_a_chain_of_elif_is_one_block():
    chain = "".join(f"    elif a == {k}:\n        pass\n" for k in range(9))
    assert nested_blocks(ast.parse(f"def f():\n    if a:\n        pass\n{chain}").body[0]) == 1


@pytest.mark.parametrize(
    ("head", "found"),
    [
        ("def f(a, b, c, d, e, f):", set()),
        ("def f(a, b, c, d, e, f, g):", {"f"}),
        ("def f(a, b, c, /, d, e, f, g):", {"f"}),
        ("def f(a, b, c, d, e, f, *, g, h):", set()),
        ("def f(self, a, b, c, d, e, f):", set()),
        ("def __init__(self, a, b, c, d, e, f, g):", set()),
        ("@compiled\ndef f(a, b, c, d, e, f, g):", set()),
    ],
)
def test_positional_parameters_are_counted(head, found):
    assert too_wide(ast.parse(f"{head}\n    pass")) == found
