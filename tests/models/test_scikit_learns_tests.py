"""scikit-learn's own tests of `sklearn.svm`, run on our classes: they pass, but for the differences that the docs name.

The tests are those of the installed scikit-learn; `in_their_place.py` puts our classes where theirs are, and pytest
runs the two files in a subprocess. What fails must be exactly what docs/from/scikit-learn.md lists for this version.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array, lil_array
from sklearn.datasets import load_iris

from widemargin import SVC, LinearSVC, NuSVC, OneClassSVM

_HERE = Path(__file__).parent
_PAGE = _HERE.parents[1] / "docs" / "from" / "scikit-learn.md"
_LISTED_FOR = "1.9"  # the list of differences is that of this version's tests
_FILES = ("test_svm", "test_sparse")


def named_differences():
    """Return the tests that the docs name as different, `file::name[parameters]`."""
    section = _PAGE.read_text(encoding="utf-8").split("## scikit-learn's own tests", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"`(test_\w+::[^`]+)`", section)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Run scikit-learn's tests on our classes; return the outcome, "passed", "failed" or "skipped", of each by name."""
    if not sklearn.__version__.startswith(f"{_LISTED_FOR}."):
        pytest.skip(f"the differences are listed for scikit-learn {_LISTED_FOR}, this is {sklearn.__version__}")
    if importlib.util.find_spec("sklearn.svm.tests") is None:
        pytest.skip("the installed scikit-learn has no tests (sklearn.svm.tests)")
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")  # neither our settings nor theirs
    tests = Path(importlib.util.find_spec("sklearn.svm.tests").origin).parent
    command = [sys.executable, "-m", "pytest", "-q", "-c", "pytest.ini", f"--rootdir={tests.parents[2]}"]
    command += ["-p", "in_their_place", "-p", "no:cacheprovider", f"--junit-xml={folder / 'outcomes.xml'}"]
    command += [str(tests / f"{name}.py") for name in _FILES]
    paths = [str(_HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "SKLEARN_TESTS_GLOBAL_RANDOM_SEED": "42"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return _outcomes_in(folder / "outcomes.xml")


def _outcomes_in(path):
    """Return the outcome of each test in pytest's report, by `file::name[parameters]`."""
    outcomes = {}
    for case in ET.parse(path).iter("testcase"):
        name = f"{case.get('classname').rsplit('.', 1)[-1]}::{case.get('name')}"
        broken = case.find("failure") is not None or case.find("error") is not None
        outcomes[name] = "failed" if broken else "skipped" if case.find("skipped") is not None else "passed"
    return outcomes


def test_what_fails_is_exactly_what_the_docs_name(outcomes):
    failing = [name for name, outcome in outcomes.items() if outcome == "failed"]
    assert sorted(failing) == sorted(named_differences())


def test_no_test_of_theirs_is_skipped_and_they_are_as_many_as_the_docs_say(outcomes):
    assert f"{len(outcomes)}\ntests" in _PAGE.read_text(encoding="utf-8")
    assert "skipped" not in outcomes.values()


def test_changing_the_coefficients_changes_predictions():
    X = [[-2.0, -1.0], [-1.0, -1.0], [-1.0, -2.0], [1.0, 1.0], [1.0, 2.0], [2.0, 1.0]]
    model = SVC(kernel="linear").fit(X, [1, 1, 1, 2, 2, 2])
    assert model.predict([[-0.1, -0.1]]) == [1]
    model.dual_coef_ = np.array([[0.0, -1.0]])
    assert model.predict([[-0.1, -0.1]]) == [2]


@pytest.mark.parametrize("attribute", ["n_support_", "dual_coef_", "support_vectors_"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_an_altered_model_is_refused(kernel, attribute):
    X, y = load_iris(return_X_y=True)
    model = SVC(kernel=kernel).fit(X, y)
    changes = {"n_support_": model.n_support_ + 1_000_000, "dual_coef_": model.dual_coef_[:, 1:]}
    setattr(model, attribute, changes.get(attribute, model.support_vectors_[1:]))
    with pytest.raises(ValueError, match=r"The internal representation of SVC was altered: n_support_ is \["):
        model.predict(X)


def test_sparse_rows_are_predicted_by_a_model_of_dense_ones():
    X, y = load_iris(return_X_y=True)
    model = SVC().fit(X, y)
    np.testing.assert_allclose(model.decision_function(lil_array(X)), model.decision_function(X), atol=1e-10)


@pytest.mark.parametrize("container", [np.asarray, csr_array])
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_where_there_is_no_region_every_row_is_on_the_boundary_however_it_is_stored(kernel, container, rng):
    """With each row and its opposite w = 0 is optimal for an odd kernel, and scores are nothing but rounding."""
    X = rng.standard_normal((40, 2)) * 10
    rows = container(np.concatenate([X, -X]))
    model = OneClassSVM(kernel=kernel, gamma=0.01).fit(rows)
    np.testing.assert_array_equal(model.decision_function(rows), 0.0)
    np.testing.assert_array_equal(model.predict(rows), 1)


def test_one_class_of_positive_weight_is_refused_in_the_words_of_each():
    X, y, weight = np.eye(4), [0, 0, 1, 1], [1.0, 1.0, 0.0, -1.0]
    same = "all samples with positive weights belong to the same class"
    with pytest.raises(ValueError, match=f"Invalid input - {same}"):
        SVC().fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match=f"specified nu is infeasible, as any - {same}"):
        NuSVC().fit(X, y, sample_weight=weight)


@pytest.mark.parametrize(("penalty", "loss", "dual"), [("l1", "hinge", True), ("l2", "hinge", False)])
def test_arguments_that_do_not_go_together_are_all_named(penalty, loss, dual):
    message = f"Unsupported set of arguments: penalty='{penalty}', loss='{loss}', dual={dual}"
    with pytest.raises(ValueError, match=message):
        LinearSVC(penalty=penalty, loss=loss, dual=dual).fit(np.eye(2), [0, 1])
