"""Pictures of how a fit went: the relative duality gap against seconds and against passes over the rows.

Needs matplotlib, which is not installed with the package: `pip install "widemargin[plot]"`.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from widemargin._runtime.argument_types import FilePath

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito's
_MARKERS = ("o", "s", "^", "D", "v")  # at a curve's end, for those who do not tell the colours
_LOWEST = float(np.finfo(np.float64).eps)  # below it a gap is rounding, and may be negative
_GREY = "#666666"
_MANY_POINTS = 200  # a longer curve is drawn thinner, as its jumps would run together
_WIDE = 20.0  # runs whose lengths differ by more than this factor are drawn on a logarithmic axis


def plot_convergence(
    models: Any, *, axes: Sequence[Any] | None = None, labels: Sequence[str] | None = None, path: FilePath | None = None
) -> Any:
    """Draw the relative duality gap of fits against seconds and against passes over the rows.

    A model of several classes is drawn thin for each class, and bold for the worst of them at each moment; each class
    has its own clock, which starts with its own problem. A gap of zero or below, which is rounding, is drawn at
    2.2e-16. The tolerance asked for is a dotted line where it is known.

    Parameters
    ----------
    models : estimator, history, list of these, or dict of label to one of these
        Fitted estimators, or their `history_`.
    axes : pair of matplotlib Axes, default=None
        Where to draw; None makes a new figure, which pyplot knows nothing of and a notebook shows
        at the end of the cell.
    labels : list of str, default=None
        A label for each model; None takes the name of the solver.
    path : str or path, default=None
        Where to save the picture; its suffix chooses the format.

    Returns
    -------
    figure : matplotlib Figure

    Raises
    ------
    ImportError
        If matplotlib is not installed.
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
    _dress(axes, [_histories_of(model) for _, model in runs])
    if figure is None:
        figure = left.get_figure()
        right.legend(loc="upper right", frameon=False)
    else:
        _place_legend(figure, left)
    if path is not None:
        figure.savefig(path, dpi=200)
    return figure


def make_figure(n_rows):
    """Return an empty figure for rows of two panels, drawn without a display; a notebook shows it."""
    try:
        from widemargin.plots.figure import ShownFigure
    except ImportError as error:
        raise ImportError('Pictures need matplotlib: pip install "widemargin[plot]"') from error
    return ShownFigure(figsize=(7.2, 0.6 + 2.6 * n_rows), layout="constrained")


def _label(models, labels):
    """Return (label, model) pairs of whatever was given; each label once."""
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
    """Return the histories of a model, one per class, or of a history itself."""
    history = getattr(model, "history_", model)
    histories = history if isinstance(history, list) else [history]
    for one in histories:
        names = getattr(getattr(one, "dtype", None), "names", None) or ()
        if not {"seconds", "passes", "gap"} <= set(names):
            kind = type(model).__name__
            raise TypeError(f"models must be fitted estimators or their history_, got {kind} without a history.")
    return histories


def _draw_run(ax, histories, column, label, look):
    """Draw one run: its curve, or the curves of its classes and the worst of them."""
    curves = [(history[column], np.maximum(history["gap"], _LOWEST)) for history in histories]
    if len(curves) > 1:
        for x, gap in curves:
            ax.plot(x, gap, color=look["color"], linewidth=0.6, alpha=0.35)
        curves = [_worst(curves)]
    ((x, gap),) = curves
    width = 1.0 if len(histories) == 1 and len(x) > _MANY_POINTS else 1.8
    ax.plot(x, gap, **look, linewidth=width, markersize=5, markevery=[-1], label=label)


def _worst(curves):
    """Return the largest gap over curves at every place where one of them has a point; a curve that ended stays."""
    places = np.unique(np.concatenate([x for x, _ in curves]))
    logs = [np.interp(places, x, np.log(gap)) for x, gap in curves]
    return places, np.exp(np.max(logs, axis=0))


def _draw_tolerances(axes, models):
    """Draw the relative gaps that were asked for."""
    asked = {model.tol for model in models if getattr(model, "stopping", None) == "gap" and model.tol > 0}
    for tol in sorted(asked):
        for ax in axes:
            ax.axhline(tol, color=_GREY, linewidth=1.0, linestyle=":", zorder=1)
        axes[1].annotate(
            f"asked\n{tol:.0e}", (1.01, tol), xycoords=("axes fraction", "data"), va="center", fontsize=8, color=_GREY
        )


def _dress(axes, runs):
    """Name the axes, with units, choose their scales, and keep everything but the curves quiet."""
    left, right = axes
    left.set_xlabel("time of each class, s" if any(len(histories) > 1 for histories in runs) else "time, s")
    right.set_xlabel("passes over the rows")
    left.set_ylabel("relative duality gap")
    for ax, column in ((left, "seconds"), (right, "passes")):
        ax.set_yscale("log")
        ends = [max(history[column][-1] for history in histories) for histories in runs]
        if min(ends) > 0 and max(ends) > _WIDE * min(ends):
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
    """Put the legend below the panels, where it covers no curve."""
    handles, names = ax.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 4), frameon=False)
