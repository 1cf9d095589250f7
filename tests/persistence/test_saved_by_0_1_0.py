"""Models of every kind and format that version 0.1.0 saved, made by `saved_models.py` with that version, still load."""

from pathlib import Path

import numpy as np
import pytest

from widemargin import load_model

FOLDER = Path(__file__).parent / "saved_by_0_1_0"
FILES = sorted(path.name for path in FOLDER.glob("*.*") if path.suffix != ".npz")


def test_every_estimator_is_there():
    assert len(FILES) == 31
    assert len({name.partition(".")[0].partition("-")[0] for name in FILES}) == 11


@pytest.mark.parametrize("name", FILES)
def test_a_saved_model_predicts_what_it_did(name):
    expected = np.load(FOLDER / "expected.npz")
    model = load_model(FOLDER / name)
    for method in ("predict", "decision_function"):
        if f"{name} {method}" in expected:
            values, then = getattr(model, method)(expected["X"]), expected[f"{name} {method}"]
            if then.dtype.kind == "f":
                np.testing.assert_allclose(values, then, rtol=1e-13, atol=1e-13)  # another processor, another rounding
            else:
                assert (values == then).all()
