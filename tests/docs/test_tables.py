"""The tables for those who come from elsewhere name all that the other side has, and nothing that we have not."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest
import sklearn.svm
from liblinear import liblinear
from libsvm import svm
from sklearn.datasets import load_iris

import widemargin

PAGES = Path(__file__).parents[2] / "docs" / "from"
TWINS = ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR"]
COMMANDS = {  # whose options a table's column "here" names, by the heading of its section
    "libsvm": {"svm-train": "train", "svm-predict": "predict", "svm-scale": "scale", "grid.py": "grid"},
    "liblinear": {"`-s`, the type": "train", "Other options of train": "train", "predict": "predict"},
    "svmlight": {"svm_learn": "train", "svm_perf_learn": "train", "svm_rank_learn": "train"},
}
_CODE = re.compile(r"`([^`]+)`")
_OPTION = re.compile(r"(?<!\S)--?[A-Za-z][A-Za-z0-9-]*")


def sections_of(page):
    """Return the text under each heading of the second level."""
    parts = re.split(r"^## (.+)$", (PAGES / f"{page}.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def tables_in(text):
    """Return tables by the heading of their first column, as lists of rows, a row a list of cells."""
    tables = {}
    for lines in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        rows = [re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in lines.splitlines()]
        heading, _, *body = [[cell.strip() for cell in row] for row in rows]
        tables[heading[0]] = body
    return tables


def codes(cell):
    return _CODE.findall(cell)


def named_in(rows):
    return {name for row in rows for name in codes(row[0])}


def shown(parameter):
    return repr(parameter.default).replace("'", '"')


@pytest.mark.parametrize("name", TWINS)
def test_every_parameter_is_there_with_both_defaults(name):
    theirs, ours = (inspect.signature(getattr(package, name)).parameters for package in (sklearn.svm, widemargin))
    rows = {codes(row[0])[0]: row for row in tables_in(sections_of("scikit-learn")[name])["parameter"]}
    assert rows.keys() == theirs.keys() | ours.keys()
    for parameter, (_, their_cell, our_cell, relation) in rows.items():
        assert codes(our_cell) == [shown(ours[parameter])], parameter
        assert codes(their_cell) == [] if parameter not in theirs else shown(theirs[parameter]) in codes(their_cell)
        assert relation.startswith("new") == (parameter not in theirs), parameter
        if not relation.startswith(("new", "different")):
            assert relation.startswith("same"), parameter
            assert codes(our_cell)[0] in codes(their_cell), parameter


def fitted_attributes(estimator):
    """Return the names of what a fitted estimator has, as its kind has it with a linear kernel and probabilities."""
    options = {"kernel": "linear", "probability": True, "nu": 0.3} if "kernel" in estimator().get_params() else {}
    options = {option: value for option, value in options.items() if option in estimator().get_params()}
    X, y = load_iris(return_X_y=True, as_frame=True)
    models = [estimator(**options).fit(X, y)]
    if "calibration" in models[0].get_params():
        models.append(estimator(calibration="isotonic").fit(X, y))
    return {
        name
        for model in models
        for name in dir(model)
        if name.endswith("_") and not name.startswith("_") and hasattr(model, name)
    }


@pytest.mark.filterwarnings("ignore:.*(probability|was deprecated in.*1.9):FutureWarning")  # probA_, probB_ are theirs
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", TWINS)
def test_every_fitted_attribute_is_there(name):
    theirs, ours = (fitted_attributes(getattr(package, name)) for package in (sklearn.svm, widemargin))
    rows = {codes(row[0])[0]: row[1] for row in tables_in(sections_of("scikit-learn")[name])["attribute"]}
    assert rows.keys() == theirs | ours
    assert {attribute for attribute, relation in rows.items() if relation.startswith("new")} == ours - theirs


@pytest.mark.parametrize("name", TWINS)
def test_every_method_is_there(name):
    rows = tables_in(sections_of("scikit-learn")[name])["method"]
    theirs, ours = (methods_of(getattr(package, name)) for package in (sklearn.svm, widemargin))
    assert named_in(rows) == theirs | ours
    assert named_in(row for row in rows if row[1].startswith("new")) == ours - theirs


def methods_of(estimator):
    common = {*dir(sklearn.base.BaseEstimator), "set_fit_request", "set_score_request", "set_callbacks", "unused_param"}
    common |= set(inspect.signature(estimator).parameters)  # those that a base class gives a default
    public = {name for name in dir(estimator) if not name.startswith("_") and not name.endswith("_")}
    return public - common


@pytest.mark.parametrize(
    ("page", "sections", "parser"),
    [
        ("libsvm", ["svm-train"], svm.svm_parameter),
        ("liblinear", ["`-s`, the type", "Other options of train"], liblinear.parameter),
    ],
)
def test_every_letter_that_their_program_reads_is_there(page, sections, parser):
    letters = set(re.findall(r"== \"(-\w+)\"", inspect.getsource(parser)))
    assert len(letters) > 8
    tables = [table for section in sections for table in tables_in(sections_of(page)[section]).values()]
    named = {word.split()[0] for table in tables for word in named_in(table)}
    assert letters <= named, letters - named


@pytest.mark.parametrize(
    ("page", "section", "command"),
    [(page, section, command) for page, sections in COMMANDS.items() for section, command in sections.items()],
)
def test_options_said_to_be_here_are_here(page, section, command):
    (table,) = tables_in(sections_of(page)[section]).values()
    said = {option for row in table for code in codes(row[2]) for option in _OPTION.findall(code)}
    assert said
    assert said <= options_of(command), said - options_of(command)


def options_of(command):
    """Return the options of a command, with LIBSVM's letters that argparse never sees."""
    parser = import_module(f"widemargin.cli.commands.{command}").make_parser()
    return {*parser._option_string_actions, "-wi"}
