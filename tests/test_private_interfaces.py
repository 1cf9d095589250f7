"""Private names of other packages: each is used in one file, which says with which versions it was tested."""

import ast
import re
from pathlib import Path

import pytest
import sklearn

SOURCE = Path(__file__).parents[1] / "src" / "widemargin"
HOMES = {
    "_param_validation": "models/sklearn_private.py",
    "_num_samples": "models/sklearn_private.py",
    "_check_n_features": "models/sklearn_private.py",
    "_check_sample_weight": "models/sklearn_private.py",
    "_negative_number_matcher": "cli/options/parsing.py",
    "_option_string_actions": "cli/options/parsing.py",
    "_actions": "cli/options/parsing.py",
    "_nrt": "_runtime/jit.py",
    "_signal": "_runtime/interrupts.py",
}
"""Where each private name of another package is used."""


def private_names(text):
    """Yield the private names of other packages in a source: those it imports, and those in `HOMES` that it uses."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "widemargin").split(".")[0] != "widemargin":
            words = [*node.module.split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            words = [word for alias in node.names for word in alias.name.split(".") if alias.name[:10] != "widemargin"]
        else:
            used = getattr(node, "attr", None) or getattr(node, "arg", None) or getattr(node, "value", None)
            words = [used] if isinstance(used, str) and used in HOMES else []
        yield from (word for word in words if re.match("_[a-z]", word))


def test_private_names_of_other_packages_stand_in_one_file_each():
    used = {(name, path) for path in SOURCE.rglob("*.py") for name in private_names(path.read_text())}
    assert {(name, str(path.relative_to(SOURCE))) for name, path in used} == set(HOMES.items())


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("from sklearn.utils._param_validation import Interval", "_param_validation"),
        ("from sklearn.utils.validation import check_array, _num_samples", "_num_samples"),
        ("import scipy.sparse._sputils", "_sputils"),
        ("parser._negative_number_matcher = None", "_negative_number_matcher"),
        ("numba.njit(_nrt=False)", "_nrt"),
        ("OPTIONS = {'_nrt': False}", "_nrt"),
    ],
)
def test_a_private_name_is_found_however_it_is_used(text, name):
    assert list(private_names(text)) == [name]


@pytest.mark.parametrize("home", sorted(set(HOMES.values())))
def test_the_file_names_the_versions_it_was_tested_with(home):
    docstring = " ".join(ast.get_docstring(ast.parse((SOURCE / home).read_text())).split())
    assert re.search(r"Tested with (scikit-learn|Python|Numba) \d+\.\d+", docstring)


def test_this_scikit_learn_is_one_of_those_tested():
    docstring = ast.get_docstring(ast.parse((SOURCE / HOMES["_param_validation"]).read_text()))
    first, last = (tuple(map(int, version.split("."))) for version in re.findall(r"\b1\.\d+\b", docstring))
    assert first <= tuple(map(int, sklearn.__version__.split(".")[:2])) <= last
