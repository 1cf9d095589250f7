"""Pictures of convergence: what they show, and what they leave alone."""

import subprocess
import sys

import numpy as np
import pytest

from widemargin import LinearSVC, LinearSVR
from widemargin.plots.convergence import plot_convergence
from widemargin.solvers.contract import HISTORY


@pytest.fixture
def fitted(clouds):
    """A model of two classes."""
    X, sign, _ = clouds
    return LinearSVC(solver="dcd", random_state=0).fit(X, sign)


@pytest.fixture
def history():
    """A history that ends with a gap below zero, by rounding."""
    rows = [(0, 0.0, 0.0, 9.0, 0.0, 1.0), (3, 0.2, 3.0, 5.0, 4.9, 0.02), (9, 0.5, 8.0, 5.0, 5.0, -1e-16)]
    return np.array(rows, dtype=HISTORY)


def bold_curves(ax):
    """Return the curves of a panel that have a label of their own."""
    return {line.get_label(): line for line in ax.get_lines() if not line.get_label().startswith("_")}


def test_both_panels_show_the_history_with_named_axes(history):
    left, right = plot_convergence({"mine": history}).axes
    np.testing.assert_array_equal(bold_curves(left)["mine"].get_xdata(), history["seconds"])
    np.testing.assert_array_equal(bold_curves(right)["mine"].get_xdata(), history["passes"])
    assert (left.get_xlabel(), right.get_xlabel()) == ("time, s", "passes over the rows")
    assert left.get_ylabel() == "relative duality gap"
    assert left.get_yscale() == right.get_yscale() == "log"


def test_a_gap_below_zero_stays_on_the_logarithmic_axis(history, tmp_path):
    figure = plot_convergence(history, path=tmp_path / "picture.png")
    (curve,) = bold_curves(figure.axes[0]).values()
    assert (curve.get_ydata() > 0).all()
    assert curve.get_ydata()[-1] == np.finfo(float).eps
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_models_histories_lists_and_dicts_are_all_taken(fitted, history):
    for models, labels in [
        (fitted, ["dcd"]),
        (history, ["history"]),
        ([fitted, fitted, history], ["dcd 1", "dcd 2", "history"]),
        ({"a": fitted, "b": history}, ["a", "b"]),
    ]:
        assert list(bold_curves(plot_convergence(models).axes[0])) == labels
    assert list(bold_curves(plot_convergence([fitted, history], labels=["x", "y"]).axes[0])) == ["x", "y"]


def test_several_classes_are_thin_below_the_worst_of_them(rng):
    X, y = rng.standard_normal((90, 4)), rng.integers(0, 3, 90)
    model = LinearSVC(solver="dcd", random_state=0, max_iter=100_000).fit(X, y)
    left, right = plot_convergence(model).axes
    worst, thin = bold_curves(right)["dcd"], [line for line in right.get_lines() if line.get_alpha() is not None]
    assert len(thin) == 3
    for line in thin:
        at = np.searchsorted(worst.get_xdata(), line.get_xdata())
        assert (worst.get_ydata()[at] >= line.get_ydata() * (1 - 1e-9)).all()
    assert left.get_xlabel() == "time of each class, s"


def test_the_tolerance_asked_for_is_a_line_where_it_is_known(fitted, history):
    def levels(figure):
        return [line.get_ydata()[0] for line in figure.axes[0].get_lines() if line.get_linestyle() == ":"]

    assert levels(plot_convergence(fitted)) == [fitted.tol]
    assert levels(plot_convergence(history)) == []
    fitted.stopping = "kkt"
    assert levels(plot_convergence(fitted)) == []


def test_runs_of_very_different_length_share_a_logarithmic_axis(history):
    longer = history.copy()
    longer["seconds"] *= 100
    left, right = plot_convergence([history, longer]).axes
    assert (left.get_xscale(), right.get_xscale()) == ("log", "linear")


def test_given_axes_are_drawn_into(history, clouds):
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots(1, 2)
    X, _, target = clouds
    assert plot_convergence([LinearSVR(solver="dcd", random_state=0).fit(X, target), history], axes=axes) is figure
    assert [text.get_text() for text in axes[1].get_legend().get_texts()] == ["dcd", "history"]


@pytest.mark.parametrize("models", [LinearSVC(), np.zeros(3), "model"])
def test_what_has_no_history_is_refused(models):
    with pytest.raises(TypeError, match="models must be fitted estimators or their history_, got "):
        plot_convergence(models)


def test_labels_must_fit_the_models(history):
    with pytest.raises(ValueError, match="labels must be as many as models, 1, got 2"):
        plot_convergence(history, labels=["a", "b"])
    with pytest.raises(ValueError, match="labels must be left out if models is a dict"):
        plot_convergence({"a": history}, labels=["a"])


def test_without_matplotlib_the_error_says_how_to_get_it(history, monkeypatch):
    monkeypatch.delitem(sys.modules, "widemargin.plots.figure", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "widemargin\[plot\]"'):
        plot_convergence(history)


def test_drawing_leaves_pyplot_alone():
    code = (
        "import sys, numpy as np; from widemargin.solvers.contract import HISTORY;"
        "from widemargin.plots.convergence import plot_convergence; assert 'matplotlib' not in sys.modules;"
        "plot_convergence(np.ones(3, dtype=HISTORY)); assert 'matplotlib.pyplot' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
