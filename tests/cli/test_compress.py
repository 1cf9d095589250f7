"""`widemargin compress`: files of both formats, rows, refits, and mistakes in one line."""

import json

import numpy as np
import pytest

from widemargin import compress, load_model, read_svmlight


@pytest.fixture
def trained(call, two):
    assert call("train", "-q", "-t", "2", "-g", "0.5", two, "big.model")[0] == 0
    return "big.model"


def test_the_command_does_what_the_function_does(call, trained, two, tmp_path):
    status, out, _ = call("compress", "--vectors", "9", "--rows", two, trained, "small.model")
    X = read_svmlight(two)[0]
    expected = compress(load_model(tmp_path / trained), X, n_vectors=9)
    assert status == 0
    assert out.splitlines()[1:-1] == str(expected.compression_).splitlines()
    assert out.splitlines()[-1].split() == ["model", "small.model"]
    assert np.array_equal(load_model(tmp_path / "small.model").dual_coef_.toarray(), expected.dual_coef_.toarray())


@pytest.mark.parametrize("refit", ["coefficients", "vectors"])
def test_libsvm_text_json_and_refits(call, trained, two, tmp_path, refit):
    words = ["--vectors", "9", "--rows", two, "--refit", refit, "--format", "libsvm", "--json"]
    status, out, _ = call("compress", *words, trained, "small.model")
    facts = json.loads(out)
    assert (status, facts["n_after"], facts["refit"], facts["model"]) == (0, 9, refit, "small.model")
    assert 0.0 < facts["agreement"] <= 1.0
    assert (tmp_path / "small.model").read_text().startswith("svm_type c_svc")
    assert call("predict", "-q", two, "small.model", "out")[0] == 0
    assert call("compress", "-q", "--max-change", "1e-9", "small.model", "same.model")[:2] == (0, "")
    assert load_model(tmp_path / "same.model").dual_coef_.shape[1] == 9


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give either --vectors or --max-change, and not both"),
        (["--vectors", "3", "--max-change", "1"], "give either --vectors or --max-change, and not both"),
        (["--vectors", "3", "--refit", "vectors"], "--refit needs --rows"),
        (["--max-change", "3", "--refit", "vectors"], "--refit does not keep to --max-change"),
        (["--vectors", "0"], "--vectors"),
    ],
)
def test_wrong_usage_is_one_line(call, trained, words, message):
    status, out, err = call("compress", *words, trained, "small.model")
    assert (status, out) == (2, "")
    assert message in err


def test_a_model_that_is_not_a_kernel_machine_is_refused(call, two):
    call("train", "-q", two, "line.model")
    status, _, err = call("compress", "--vectors", "3", "line.model", "small.model")
    assert status == 1
    assert "line.model: compress takes a fitted SVC" in err
