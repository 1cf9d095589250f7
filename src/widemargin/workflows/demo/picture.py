"""The picture of the demonstration: seconds of both sides, and the gap during our fits. It needs matplotlib."""

from widemargin.plots.convergence import make_figure

_OURS, _THEIRS, _GREY = "#0072B2", "#E69F00", "#666666"
_CURVES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")  # of Okabe and Ito
_MIN_DRAWN_GAP = 1e-8


def draw(results, limit, path):
    """Write the picture; ImportError if matplotlib is not installed."""
    figure = make_figure(n_rows=1)
    figure.set_size_inches(9.6, 3.6)
    left, right = figure.subplots(1, 2)
    _draw_seconds(left, results, limit)
    _draw_gaps(right, results)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_axisbelow(True)
        ax.tick_params(which="both", color=_GREY, labelsize=8)
    figure.savefig(path, dpi=160)


def _draw_seconds(ax, results, limit):
    """Draw a pair of bars for each machine; a bar with an open end is a fit that was ended."""
    for k, result in enumerate(results):
        ax.barh(k - 0.19, result.seconds, 0.36, color=_OURS, label="widemargin" if k == 0 else None)
        ax.text(result.seconds, k - 0.19, f" {result.seconds:.2f}", va="center", fontsize=8)
        if not result.peer:
            ax.text(0.0, k + 0.19, " scikit-learn: not possible", va="center", fontsize=8, color=_GREY)
        else:
            ended = result.peer_seconds is None
            seconds = limit if ended else result.peer_seconds
            look = {"color": _THEIRS, "hatch": "////" if ended else None, "edgecolor": "white" if ended else _THEIRS}
            ax.barh(k + 0.19, seconds, 0.36, **look, label="scikit-learn" if k == 0 else None)
            text = f" ended at {limit:g}" if ended else f" {seconds:.2f}"
            ax.text(seconds, k + 0.19, text, va="center", fontsize=8)
    ax.set_yticks(range(len(results)), [f"{result.machine}\n{result.n_rows:,} rows" for result in results])
    ax.invert_yaxis()
    ax.margins(x=0.22)
    ax.set_xlim(left=0.0)
    ax.set_xlabel("seconds of a first fit")
    ax.grid(visible=True, axis="x", color="#E3E3E3", linewidth=0.7)
    ax.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _draw_gaps(ax, results):
    for colour, result in zip(_CURVES, results, strict=False):
        seconds = [at for at, _ in result.history]
        gaps = [max(gap, _MIN_DRAWN_GAP) for _, gap in result.history]
        look = {"color": colour, "linewidth": 1.6, "marker": "o", "markevery": [-1], "markersize": 4}
        ax.plot(seconds, gaps, **look, label=result.machine)
    ax.set_yscale("log")
    ax.set_xlim(left=0.0)
    ax.set_xlabel("seconds")
    ax.set_ylabel("certified relative gap")
    ax.grid(visible=True, color="#E3E3E3", linewidth=0.7)
    ax.legend(frameon=False, fontsize=8)
