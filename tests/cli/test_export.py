"""`widemargin export`: each kind of file, standard output, JSON, and mistakes in one line."""

import json
import sys

import numpy as np
import onnxruntime
import pytest

from widemargin import load_model, read_svmlight


@pytest.fixture
def trained(call, two):
    assert call("train", "-q", two, "line.model")[0] == 0
    assert call("train", "-q", "-t", "2", "--format", "libsvm", two, "rbf.model")[0] == 0
    return two


def test_an_onnx_file_predicts_what_the_model_file_predicts(call, trained, tmp_path):
    status, out, _ = call("export", "--to", "onnx", "rbf.model", "rbf.onnx")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == ["machine", "written", "output", "bytes"]
    X = read_svmlight(trained)[0].toarray()
    session = onnxruntime.InferenceSession(tmp_path / "rbf.onnx", providers=["CPUExecutionProvider"])
    label, decision = session.run(["label", "decision"], {"X": X})
    model = load_model(tmp_path / "rbf.model")
    assert np.array_equal(label, model.predict(X))
    np.testing.assert_allclose(decision, model.decision_function(X), atol=1e-9)
    assert call("export", "-q", "--float32", "rbf.model", "small.onnx")[:2] == (0, "")
    assert (tmp_path / "small.onnx").stat().st_size < (tmp_path / "rbf.onnx").stat().st_size


def test_programs_and_json(call, trained, tmp_path):
    status, out, _ = call("export", "--json", "--to", "c", "--prefix", "line", "line.model", "line.c")
    facts = json.loads(out)
    assert (status, facts["to"], facts["output"]) == (0, "c", "line.c")
    assert facts["bytes"] == (tmp_path / "line.c").stat().st_size
    assert "int line_predict(const double *x)" in (tmp_path / "line.c").read_text()
    status, out, err = call("export", "--to", "numpy", "line.model", "-")
    assert (status, "written as" in err) == (0, True)
    names = {}
    exec(out, names)
    X = read_svmlight(trained)[0].toarray()
    assert np.array_equal(names["predict"](X), load_model(tmp_path / "line.model").predict(X))


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--to", "c", "rbf.model", "x"], 1, "rbf.model: export_c writes models with a weight for each feature"),
        (["--to", "c", "--float32", "line.model", "x"], 2, "--float32 is for ONNX, opset 17, not for C99"),
        (["--prefix", "x", "line.model", "x"], 2, "--prefix is for C99, not for ONNX, opset 17"),
        (["--to", "java", "line.model", "x"], 2, "--to"),
        (["line.model", "line.model"], 2, "line.model would be overwritten by the result"),
        (["none.model", "x"], 1, "none.model: no such file"),
    ],
)
def test_mistakes_are_one_line(call, trained, words, status, message):
    found, out, err = call("export", *words)
    assert (found, out) == (status, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_without_onnx_the_way_to_install_it_is_named(call, trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    from widemargin.workflows.errors import FileError
    from widemargin.workflows.export import export_file

    with pytest.raises(FileError, match=r'export_onnx needs onnx, .*: pip install "widemargin\[export\]"'):
        export_file("line.model", "line.onnx")
