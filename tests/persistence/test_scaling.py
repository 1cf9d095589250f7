"""A model file keeps how the features were scaled, and the parameters of data larger than memory."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from widemargin import (
    FormatError,
    LinearSVC,
    LinearSVR,
    MeasureSVC,
    OrdinalSVC,
    RankSVM,
    ROCAreaSVC,
    load_model,
    save_model,
)
from widemargin.data.column_scaling import ColumnScaling
from widemargin.persistence import tensors

LINEAR = (LinearSVC, LinearSVR, RankSVM, OrdinalSVC, ROCAreaSVC, MeasureSVC)


@pytest.fixture
def rows(rng):
    """Features of very different centres and scales, and two classes."""
    X = rng.standard_normal((80, 3)) * [1.0, 50.0, 0.02] + [0.0, 300.0, 5.0]
    return X, (X[:, 1] > 300.0).astype(int)


@pytest.mark.parametrize("scaling", ["standard", "maxabs"])
@pytest.mark.parametrize("kind", LINEAR, ids=lambda kind: kind.__name__)
def test_the_scaling_of_features_comes_back_to_the_bit(kind, scaling, rows, tmp_path):
    X, y = rows
    model = kind(scaling=scaling, max_memory="3GB").fit(X, y)
    model.scaling_ = ColumnScaling(X.mean(axis=0), X.std(axis=0))
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert np.array_equal(loaded.scaling_.centre, model.scaling_.centre)
    assert np.array_equal(loaded.scaling_.scale, model.scaling_.scale)
    assert (loaded.scaling, loaded.max_memory) == (scaling, "3GB")
    assert np.array_equal(loaded.predict(X), model.predict(X))


def test_a_model_without_scaling_has_none_when_it_is_loaded(rows, tmp_path):
    save_model(LinearSVC(max_memory=10**9).fit(*rows), tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert not hasattr(loaded, "scaling_")
    assert (loaded.scaling, loaded.max_memory, loaded.checkpoint) == (None, 10**9, None)
    assert not any("scaling" in name for name in load_file(tmp_path / "model"))


@pytest.mark.parametrize("kind", [str, Path])
def test_the_path_of_a_checkpoint_comes_back_as_text(kind, rows, tmp_path):
    model = LinearSVC(checkpoint=kind(tmp_path / "run.ckpt")).fit(*rows)
    save_model(model, tmp_path / "model")
    assert load_model(tmp_path / "model").checkpoint == str(tmp_path / "run.ckpt")


def wrong_scale(arrays):
    arrays["scaling_.scale"] = -arrays["scaling_.scale"]


def missing_centre(arrays):
    del arrays["scaling_.centre"]


def short_centre(arrays):
    arrays["scaling_.centre"] = arrays["scaling_.centre"][:2]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (wrong_scale, "scaling_.scale must be positive"),
        (missing_centre, "the array scaling_.centre is missing"),
        (short_centre, r"scaling_.centre must have shape \(3,\), got \(2,\)"),
    ],
)
def test_a_forged_scaling_is_refused(spoil, message, rows, tmp_path, monkeypatch):
    model = LinearSVC(scaling="standard").fit(*rows)
    plain = tensors._arrays_of

    def forged(model, keep_dual):
        arrays = plain(model, keep_dual)
        spoil(arrays)
        return arrays

    monkeypatch.setattr(tensors, "_arrays_of", forged)
    monkeypatch.setattr(tensors, "_restore", lambda *arguments: None)
    save_model(model, tmp_path / "model")
    monkeypatch.undo()
    with pytest.raises(FormatError, match=message):
        load_model(tmp_path / "model")
