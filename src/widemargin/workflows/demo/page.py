"""The page of the demonstration: the table, the seconds of both sides and the gap during our fits, in one file."""

import numpy as np

from widemargin.report import charts, scales
from widemargin.report.markup import card, scrolling, section, table, words
from widemargin.report.page import page
from widemargin.workflows.demo.result import HEADINGS, cells, legend

_MIN_DRAWN_GAP = 1e-8


def demo_page(results, limit, environment):
    """Return the page as HTML."""
    lines = [cells(result, limit) for result in results]
    shown = scrolling("Results", table(HEADINGS, lines))
    explained = [words(sentence) for sentence in legend(results, limit).splitlines()]
    content = section("results", "What was measured", whole=[card("Five machines", shown, *explained)])
    content += section("figures", "Figures", _seconds(results, limit), _gaps(results))
    contents = [("results", "Results"), ("figures", "Figures")]
    return page("widemargin demo", f"Measured by this run on {environment}", content, contents)


def _seconds(results, limit):
    """Return bars: how many times longer scikit-learn took, at least that many if it was ended."""
    compared = [result for result in results if result.peer]
    if not compared:
        return ""
    ratios = [(result.peer_seconds or limit) / result.seconds for result in compared]
    rows = [
        (result.machine, result.seconds, result.peer_time(limit).partition("  ")[0], ratio)
        for result, ratio in zip(compared, ratios, strict=True)
    ]
    summary = f"How many times longer scikit-learn took; at least so many where it was ended after {limit:g} s."
    heads = ("machine", "seconds", "scikit-learn", "ratio")
    names = [result.machine for result in compared]
    return charts.bars(
        "ratios", "Times longer", summary, names, ratios, rows=rows, heads=heads, x_label="scikit-learn / widemargin"
    )


def _gaps(results):
    """Return the curves of the certified gap against time."""
    drawn = []
    for result in results:
        seconds, gaps = (np.array(column) for column in zip(*result.history, strict=True))
        gaps = np.maximum(gaps, _MIN_DRAWN_GAP)
        lines = [(result.machine, float(at), f"{gap:.1e}") for at, gap in zip(seconds, gaps, strict=True)]
        drawn.append((result.machine, seconds, gaps, lines))
    every = np.concatenate([gaps for _, _, gaps, _ in drawn])
    x = scales.linear(0.0, max(float(seconds[-1]) for _, seconds, _, _ in drawn), 4, rounded=False)
    return charts.curves(
        "gaps", "Certificates", "The proved relative gap falls while the fits run.", drawn, x=x,
        y=scales.powers_of_ten(float(every.min()), float(every.max())), heads=("machine", "seconds", "relative gap"),
        x_label="seconds", y_label="relative gap",
    )  # fmt: skip
