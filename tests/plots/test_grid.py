"""Pictures of a grid search: where points lie, what is marked, and that files, pages and notebooks all get them."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from widemargin.errors import FormatError
from widemargin.plots.grid import grid_fragment, grid_page, plot_grid
from widemargin.report.grid_layout import lay_out
from widemargin.selection.grid_result import GridResult
from widemargin.selection.results_file import read_grid


def grid_of(points, means, scoring="accuracy"):
    """Return a result of three folds, a hundredth apart around the means."""
    scores = np.asarray(means)[:, np.newaxis] + np.array([-0.01, 0.0, 0.01])
    return GridResult(tuple(points[0]), tuple(points), scores, scoring, np.ones(len(points)))


def hill(skipped=()):
    """Return a grid over C and gamma with one top, at C = 2 and gamma = 1/4, without the points skipped."""
    points = [{"C": 2.0**c, "gamma": 2.0**g} for c in range(-3, 6, 2) for g in range(-6, 3, 2)]
    points = [point for point in points if tuple(np.log2(list(point.values()))) not in skipped]
    means = [0.95 - 0.01 * (np.log2(p["C"] / 2) ** 2 + np.log2(p["gamma"] * 4) ** 2) for p in points]
    return grid_of(points, means)


GRIDS = {
    "full": hill(),
    "incomplete": hill(skipped={(-3.0, 2.0), (5.0, -6.0)}),
    "one parameter": grid_of([{"C": 2.0**c} for c in range(5)], [0.6, 0.8, 0.9, 0.85, 0.7]),
    "one point": grid_of([{"C": 1.0, "gamma": 0.5}], [0.9]),
    "words": grid_of([{"gamma": g} for g in ("scale", "auto", 0.1)], [0.8, 0.7, 0.9]),
    "errors": grid_of(
        [{"C": c, "epsilon": e} for c in (1.0, 2.0, 4.0) for e in (0.1, 0.2, 0.4)],
        [-9.0, -8.0, -7.0, -6.0, -2.0, -3.0, -4.0, -5.0, -8.0], "neg_mean_squared_error",
    ),
    "scattered": grid_of([{"C": 2.0**k, "gamma": 2.0 ** -(k * k % 11)} for k in range(11)], np.linspace(0.5, 0.9, 11)),
    "flat": grid_of([{"C": c, "gamma": g} for c in (1.0, 2.0) for g in (1.0, 2.0)], [0.5] * 4),
}  # fmt: skip
every_grid = pytest.mark.parametrize("result", GRIDS.values(), ids=GRIDS)


# Where points lie


def test_positive_numbers_lie_at_their_logarithms_and_lines_match_the_matrix_of_the_result():
    layout = lay_out(GRIDS["full"])
    np.testing.assert_array_equal(layout.across.positions, [-3, -1, 1, 3, 5])
    assert (layout.across.label, layout.down.label) == ("log₂ C", "log₂ gamma")
    np.testing.assert_array_equal(layout.means, GRIDS["full"].matrix()[2])
    assert layout.best == (2, 2)
    assert layout.best_text == "C = 2, gamma = 0.25: accuracy 95.00%"


def test_cells_that_are_not_done_are_nan():
    layout = lay_out(GRIDS["incomplete"])
    np.testing.assert_array_equal(np.argwhere(np.isnan(layout.means)), [[0, 4], [4, 0]])
    assert not layout.is_sparse
    assert lay_out(GRIDS["scattered"]).is_sparse


def test_small_whole_numbers_lie_where_they_are_and_words_in_a_row():
    points = [{"degree": d, "gamma": g} for d in (2, 3, 5) for g in (0.5, "scale")]
    layout = lay_out(grid_of(points, np.linspace(0.6, 0.7, 6)))
    assert layout.across.name == "gamma"
    assert (layout.across.texts, layout.across.is_numeric) == (["0.5", "scale"], False)
    np.testing.assert_array_equal(layout.down.positions, [2, 3, 5])
    assert layout.down.label == "degree"


def test_of_more_parameters_the_best_over_the_others_is_drawn():
    points = [{"C": c, "gamma": g, "epsilon": e} for c in (1.0, 2.0) for g in (1.0, 2.0) for e in (0.1, 0.2)]
    result = grid_of(points, [0.1, 0.2, 0.4, 0.3, 0.5, 0.6, 0.8, 0.7])
    np.testing.assert_allclose(lay_out(result).means, [[0.2, 0.6], [0.4, 0.8]])
    assert "Each cell shows the best score over epsilon." in grid_page(result)


def test_a_parameter_with_one_value_needs_no_axis():
    layout = lay_out(grid_of([{"C": 1.0, "gamma": g} for g in (0.5, 1.0, 2.0)], [0.5, 0.7, 0.6]))
    assert (layout.across.name, layout.down) == ("gamma", None)


def test_errors_are_read_as_errors():
    layout = lay_out(GRIDS["errors"])
    assert layout.best_text == "C = 2, epsilon = 0.2: mean squared error 2"
    assert [round(fall, 12) for _, fall in layout.levels] == [0.14, 0.35, 0.7, 1.4, 2.8]


def test_lines_are_drawn_half_a_percent_and_more_below_the_best():
    assert [(round(level, 12), fall) for level, fall in lay_out(GRIDS["full"]).levels] == [
        (0.945, 0.005), (0.94, 0.01), (0.93, 0.02), (0.9, 0.05), (0.85, 0.1),
    ]  # fmt: skip
    assert lay_out(GRIDS["flat"]).levels == []


def test_a_grid_without_points_is_refused():
    nothing = GridResult(("C",), (), np.empty((0, 3)), "accuracy", np.empty(0))
    for draw in (plot_grid, grid_page, grid_fragment):
        with pytest.raises(ValueError, match="result must have a point whose folds are all done"):
            draw(nothing)


# Files


@every_grid
@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_every_grid_is_saved_by_its_suffix_and_the_same_each_time(result, suffix, magic, tmp_path):
    for name in ("one", "two"):
        plot_grid(result, tmp_path / f"{name}.{suffix}")
    content = (tmp_path / f"one.{suffix}").read_bytes()
    assert content.startswith(magic)
    assert len(content) > 5000
    assert content == (tmp_path / f"two.{suffix}").read_bytes()


def test_the_picture_shows_the_scores_the_best_and_the_lines():
    figure = plot_grid(GRIDS["full"])
    axes, bar = figure.axes
    mesh, lines = axes.collections[:2]
    np.testing.assert_allclose(mesh.get_array().reshape(5, 5), GRIDS["full"].matrix()[2])
    np.testing.assert_allclose(lines.levels, [0.85, 0.9, 0.93, 0.94, 0.945])
    (star,) = axes.lines
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (1.0, -2.0)
    assert axes.get_title(loc="left") == "Best: C = 2, gamma = 0.25: accuracy 95.00%"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["−3", "−1", "1", "3", "5"]
    assert bar.get_ylabel() == "accuracy"


def test_a_curve_has_the_deviation_of_its_folds():
    (axes,) = plot_grid(GRIDS["one parameter"]).axes
    (bars,) = (part for part in axes.containers if part.has_yerr)
    (lines,) = bars.lines[2]
    spread = np.std([-0.01, 0.0, 0.01])
    np.testing.assert_allclose([np.ptp(line[:, 1]) for line in lines.get_segments()], 2 * spread)


def test_a_picture_is_drawn_where_one_wants_it(tmp_path):
    from matplotlib.figure import Figure

    mine = Figure()
    axes = mine.subplots()
    assert plot_grid(GRIDS["full"], axes=axes) is mine
    assert axes.collections


def test_without_matplotlib_the_picture_says_what_to_install_and_the_page_still_works():
    script = """
import sys
sys.modules["matplotlib"] = sys.modules["contourpy"] = None
import numpy as np
from widemargin.plots.grid import grid_fragment, grid_page, plot_grid
from widemargin.selection.grid_result import GridResult
points = tuple({"C": c, "gamma": g} for c in (1.0, 2.0) for g in (1.0, 2.0))
result = GridResult(("C", "gamma"), points, np.array([[0.5], [0.6], [0.7], [0.8]]), "accuracy", np.ones(4))
assert "Lines:" not in grid_page(result) and "<rect" in grid_fragment(result)
try:
    plot_grid(result)
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == 'Pictures need matplotlib: pip install "widemargin[plot]"\n'


# Pages and notebooks


@every_grid
def test_every_mark_of_a_page_has_its_row(result):
    text = grid_page(result)
    (figure,) = re.findall(r"<figure.*?</figure>", text, re.DOTALL)
    paths = re.findall(r'<path class="m [^"]*" d="([^"]*)"', figure)
    n_marks = len(re.findall(r'<(?:rect|circle) class="m ', figure)) + sum(len(re.findall("[ML]", d)) for d in paths)
    n_rows = figure.count("<tr><td>")
    assert n_marks == n_rows > 0
    assert text.count("<tr><td>") == n_rows + len(result.points)
    assert f"<h1>Best: {lay_out(result).best_text}</h1>" in text


def test_the_table_of_points_has_the_best_first_and_its_folds():
    (table,) = re.findall(r'<table class="[^"]* sortable">.*?</table>', grid_page(GRIDS["full"]), re.DOTALL)
    rows = [row.split("<td>")[1:] for row in table.split("<tr>")[2:]]
    assert rows[0][:3] == ["2", "0.25", "95.00%"]
    assert rows[0][4] == "94.00%, 95.00%, 96.00%"
    means = [float(row[2].rstrip("%")) for row in rows]
    assert means == sorted(means, reverse=True)
    assert len(rows) == 25


def test_cells_that_are_not_done_are_struck_out():
    text = grid_page(GRIDS["incomplete"])
    assert text.count('class="m none"') == text.count('class="strike"') == 2
    assert "2 cells struck out: not computed." in text
    assert text.count("<td>not computed") == 2


def test_a_fragment_is_the_same_each_time_and_does_not_touch_the_page_around_it():
    one, other = grid_fragment(GRIDS["full"]), grid_fragment(GRIDS["errors"])
    assert one == grid_fragment(GRIDS["full"])
    assert set(re.findall(r"id=(grid-\w+)", one)).isdisjoint(re.findall(r"id=(grid-\w+)", other))
    (style,) = re.findall(r"<style>(.*?)</style>", one, re.DOTALL)
    selectors = re.findall(r"([^{}]+)\{", re.sub(r"/\*.*?\*/|@media [^{]*\{|:is\([^)]*\)", "", style, flags=re.DOTALL))
    assert all(".wm" in part for selector in selectors for part in selector.strip().split(","))
    assert len(selectors) > 50


def test_names_from_a_file_stay_text():
    hostile = "<script>alert(1)</script>"
    result = grid_of([{hostile: hostile}, {hostile: "x"}], [0.5, 0.6], scoring=hostile)
    for text in (grid_page(result), grid_fragment(result)):
        assert text.count("<script>") == 1
        assert "&lt;script&gt;alert(1)" in text


# The results file


def test_points_of_a_results_file_whose_folds_are_done_are_read(tmp_path):
    lines = [{"widemargin_grid": 1, "names": ["C", "gamma"], "scoring": "accuracy", "n_folds": 2}]
    for point, folds in (({"C": 1.0, "gamma": 0.5}, (1, 0)), ({"C": 2.0, "gamma": "scale"}, (0,))):
        lines += [{"point": point, "fold": k, "score": 0.5 + k / 10, "seconds": 2.0} for k in folds]
    (tmp_path / "grid").write_text("\n".join(map(json.dumps, lines)) + "\n")
    result = read_grid(tmp_path / "grid")
    assert (result.names, result.points, result.scoring) == (("C", "gamma"), ({"C": 1.0, "gamma": 0.5},), "accuracy")
    np.testing.assert_array_equal(result.scores, [[0.5, 0.6]])
    np.testing.assert_array_equal(result.seconds, [4.0])


@pytest.mark.parametrize("text", ["", "{}\n", "1 1:2\n", "[1]\n"])
def test_other_files_are_no_results(tmp_path, text):
    (tmp_path / "grid").write_text(text)
    with pytest.raises(FormatError, match="is not a results file"):
        read_grid(tmp_path / "grid")
