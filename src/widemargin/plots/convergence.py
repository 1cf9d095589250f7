"""Plots of convergence: the relative duality gap against seconds and against passes over the rows.

They need matplotlib, which is an optional dependency: `pip install "widemargin[plot]"`.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from widemargin._runtime.argument_types import FilePath

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # of Okabe and Ito
_MARKERS = ("o", "s", "^", "D", "v")  # at the end of each curve, for readers who cannot distinguish the colours
_MIN_DRAWN_GAP = float(np.finfo(np.float64).eps)  # smaller gaps are rounding errors and may be negative
_GREY = "#666666"
_MAX_POINTS_OF_BOLD_CURVE = 200  # longer curves are drawn with thinner lines
_LOG_AXIS_RATIO = 20.0  # runs whose lengths differ by more than this factor are drawn on a logarithmic axis


def plot_convergence(
    models: Any, *, axes: Sequence[Any] | None = None, labels: Sequence[str] | None = None, path: FilePath | None = None
) -> Any:
    """Draw the relative duality gap of fits against seconds and against passes over the rows.

    For a model with several classes there is a thin curve for each class, and a bold one for the largest gap over the
    classes; the time of each class starts when its own problem is started. A gap of zero or below, which is a rounding
    error, is drawn at 2.2e-16. The requested tolerance is a dotted line, if it is known.

    Parameters
    ----------
    models : estimator, history, list of these, or dict of label to one of these
        Fitted estimators, or their `history_`.
    axes : pair of matplotlib Axes, default=None
        Axes to draw on. None makes a new figure, which is not registered with pyplot; a notebook shows it at the end
        of the cell.
    labels : list of str, default=None
        A label for each model; None uses the names of the solvers.
    path : str or path, default=None
        File to save the plot to; the suffix determines the format.

    Returns
    -------
    figure : matplotlib Figure

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from widemargin import SVC, plot_convergence
    >>> model = SVC().fit(*load_breast_cancer(return_X_y=True))
    >>> figure = plot_convergence({"C = 1": model}, path="convergence.png")
    """
    runs = _label(models, labels)
    figure = None
    if axes is None:
        figure = make_figure(n_rows=1)
        axes = figure.subplots(1, 2, sharey=True)
    left, right = axes
    for k, (label, model) in enumerate(runs):
        look = {"color": _COLOURS[k % len(_COLOURS)], "marker": _MARKERS[k % len(_MARKERS)]}
        for ax, column in ((left, "seconds"), (right, "passes")):
            _draw_run(ax, _histories_of(model), column, label, look)
    _draw_tolerances(axes, [model for _, model in runs])
    _format_axes(axes, [_histories_of(model) for _, model in runs])
    if figure is None:
        figure = left.get_figure()
        right.legend(loc="upper right", frameon=False)
    else:
        _place_legend(figure, left)
    if path is not None:
        figure.savefig(path, dpi=200)
    return figure


def make_figure(n_rows):
    """Return an empty figure for `n_rows` rows of two panels; it needs no display, and a notebook shows it."""
    try:
        from widemargin.plots.figure import ShownFigure
    except ImportError as error:
        raise ImportError('Pictures need matplotlib: pip install "widemargin[plot]"') from error
    return ShownFigure(figsize=(7.2, 0.6 + 2.6 * n_rows), layout="constrained")


def _label(models, labels):
    """Return (label, model) pairs with distinct labels."""
    if isinstance(models, dict):
        if labels is not None:
            raise ValueError("labels must be left out if models is a dict, whose keys are the labels.")
        return [(str(label), model) for label, model in models.items()]
    models = list(models) if isinstance(models, (list, tuple)) else [models]
    if labels is None:
        names = [getattr(model, "solver_", "history").partition(" (")[0] for model in models]
        seen, counts = Counter(), Counter(names)
        labels = []
        for name in names:
            seen[name] += 1
            labels.append(f"{name} {seen[name]}" if counts[name] > 1 else name)
    if len(labels) != len(models):
        raise ValueError(f"labels must be as many as models, {len(models)}, got {len(labels)}.")
    return list(zip(labels, models, strict=True))


def _histories_of(model):
    """Return the histories of a model, one per class; a history is returned as a list of one."""
    history = getattr(model, "history_", model)
    histories = history if isinstance(history, list) else [history]
    for one in histories:
        names = getattr(getattr(one, "dtype", None), "names", None) or ()
        if not {"seconds", "passes", "gap"} <= set(names):
            kind = type(model).__name__
            raise TypeError(f"models must be fitted estimators or their history_, got {kind} without a history.")
    return histories


def _draw_run(ax, histories, column, label, look):
    """Draw one run: its curve, or the curves of its classes and their maximum."""
    curves = [(history[column], np.maximum(history["gap"], _MIN_DRAWN_GAP)) for history in histories]
    if len(curves) > 1:
        for x, gap in curves:
            ax.plot(x, gap, color=look["color"], linewidth=0.6, alpha=0.35)
        curves = [_maximum(curves)]
    ((x, gap),) = curves
    width = 1.0 if len(histories) == 1 and len(x) > _MAX_POINTS_OF_BOLD_CURVE else 1.8
    ax.plot(x, gap, **look, linewidth=width, markersize=5, markevery=[-1], label=label)


def _maximum(curves):
    """Return the largest gap over the curves at every x where one of them has a point.

    Beyond its last point a curve keeps its last value.
    """
    x_values = np.unique(np.concatenate([x for x, _ in curves]))
    logs = [np.interp(x_values, x, np.log(gap)) for x, gap in curves]
    return x_values, np.exp(np.max(logs, axis=0))


def _draw_tolerances(axes, models):
    """Draw the requested relative gaps as dotted lines."""
    asked = {model.tol for model in models if getattr(model, "stopping", None) == "gap" and model.tol > 0}
    for tol in sorted(asked):
        for ax in axes:
            ax.axhline(tol, color=_GREY, linewidth=1.0, linestyle=":", zorder=1)
        axes[1].annotate(
            f"asked\n{tol:.0e}", (1.01, tol), xycoords=("axes fraction", "data"), va="center", fontsize=8, color=_GREY
        )


def _format_axes(axes, runs):
    """Set labels with units, scales, grid lines and colours of the axes."""
    left, right = axes
    left.set_xlabel("time of each class, s" if any(len(histories) > 1 for histories in runs) else "time, s")
    right.set_xlabel("passes over the rows")
    left.set_ylabel("relative duality gap")
    for ax, column in ((left, "seconds"), (right, "passes")):
        ax.set_yscale("log")
        ends = [max(history[column][-1] for history in histories) for histories in runs]
        if min(ends) > 0 and max(ends) > _LOG_AXIS_RATIO * min(ends):
            ax.set_xscale("log")
        else:
            ax.set_xlim(left=0)
            ax.locator_params(axis="x", nbins=5)
        ax.grid(visible=True, color="#E3E3E3", linewidth=0.7)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(_GREY)
        ax.tick_params(which="both", color=_GREY, labelsize=8)


def _place_legend(figure, ax):
    """Draw the legend below the panels, where it does not cover a curve."""
    handles, names = ax.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 4), frameon=False)
