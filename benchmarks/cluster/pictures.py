"""The picture of the page of clusters: killed workers, the model against the simulation, predicted fits."""

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

_BLUE, _GREEN, _RED = "#0072B2", "#009E73", "#D55E00"
_COLOURS = (_BLUE, _GREEN, _RED)


def draw(facts, path):
    """Draw what was measured and what was predicted."""
    figure = Figure(figsize=(13, 4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 3)
    _draw_kills(panels[0], facts["killed"])
    _draw_check(panels[1], facts["model"])
    _draw_predictions(panels[2], facts["model"])
    for axes in panels:
        axes.grid(color="#e6e6e6")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=130)


def _draw_kills(axes, killed):
    kept = [one for one in killed["trials"] if one["bits"] == killed["bits"]]
    others = [one for one in killed["trials"] if one["bits"] != killed["bits"]]
    axes.axhline(killed["undisturbed"], color="#808080", linestyle="--", label="no worker lost")
    for trials, colour, label in ((kept, _BLUE, "one of three killed, same bits"), (others, _RED, "other ends")):
        if trials:
            axes.plot([one["moment"] for one in trials], [one["seconds"] for one in trials], marker="o", linestyle="",
                      color=colour, label=label)  # fmt: skip
    axes.set(xlabel="second of the fit at which a worker is killed", ylabel="seconds of the fit", ylim=(0, None))
    axes.set_title("A killed worker costs time", fontsize=11)


def _draw_check(axes, model):
    for one, colour in zip(model["checks"], _COLOURS, strict=True):
        axes.plot(one["predicted"], one["measured"], marker=".", linestyle="", color=colour,
                  label=f"{one['workers']} workers")  # fmt: skip
    ends = [min(min(one["predicted"]) for one in model["checks"]), max(max(one["measured"]) for one in model["checks"])]
    axes.plot(ends, ends, color="#808080", linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="predicted seconds of a trip", ylabel="measured, workers asleep")
    axes.xaxis.set_minor_formatter(NullFormatter())  # labels of minor ticks would touch each other
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_title("The model against sleeping workers", fontsize=11)


def _draw_predictions(axes, model):
    workers = [one["workers"] for one in model["predictions"]]
    for k, (n_rows, colour) in enumerate(zip(model["rows"], _COLOURS, strict=True)):
        axes.plot(workers, [one["seconds"][k] for one in model["predictions"]], marker="o", color=colour,
                  label=f"{n_rows:.0e} rows")  # fmt: skip
    axes.plot(workers, [one["latency"] for one in model["predictions"]], color="#808080", linestyle="--",
              label="latency alone")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="workers of one thread", ylabel="predicted seconds of a fit")
    axes.set_title("Predicted fits, 54 columns", fontsize=11)
