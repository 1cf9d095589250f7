"""Progress in a Jupyter notebook: one output, updated in its place; nothing for what is done at once."""

import base64
import os
import struct
import zlib

import numpy as np
import pytest

nbformat = pytest.importorskip("nbformat", reason="notebooks need nbformat")
nbclient = pytest.importorskip("nbclient", reason="notebooks need nbclient")
pytest.importorskip("ipykernel", reason="notebooks need ipykernel")

pytestmark = pytest.mark.filterwarnings("default")  # those of Jupyter's packages are not ours

SETTING = """
import time, warnings
import numpy as np
from widemargin import SVC, LinearSVC
from widemargin._runtime import progress
from widemargin._runtime.progress import show_progress, task
X = np.random.default_rng(0).standard_normal((3000, 60))
y = np.where(np.arange(3000) % 3 == 0, 1, -1)
hard = dict(loss="hinge", solver="dcd", C=1e9, tol=1e-12, max_iter=None, max_seconds=3)
warnings.simplefilter("ignore")
fitted = LinearSVC(solver="dcd", max_iter=1).fit(X[:50], y[:50])  # compiles, if need be
SVC().fit(X[:600], y[:600]);
"""


class Recorder(nbclient.NotebookClient):
    """Runs cells and counts the messages that change a display."""

    updates = 0

    def process_message(self, message, cell, cell_index):
        """Count, and go on."""
        self.updates += message["msg_type"] == "update_display_data"
        return super().process_message(message, cell, cell_index)

    def run(self, source):
        """Run a cell; return its outputs and the number of updates."""
        self.updates = 0
        self.nb.cells.append(nbformat.v4.new_code_cell(source))
        cell = self.execute_cell(self.nb.cells[-1], len(self.nb.cells) - 1)
        return cell.outputs, self.updates


@pytest.fixture(scope="module")
def run_cell():
    """Return a function that runs a cell and returns its outputs and the number of updates."""
    os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")  # Jupyter's packages warn otherwise
    client = Recorder(nbformat.v4.new_notebook(), timeout=300, kernel_name="python3", allow_errors=True)
    try:
        client.create_kernel_manager()
        client.start_new_kernel()
        client.start_new_kernel_client()
    except (OSError, RuntimeError) as error:
        pytest.skip(f"no Jupyter kernel can be started here: {error}")
    with client.setup_kernel():
        assert client.run(SETTING) == ([], 0)
        yield client.run


def test_a_long_fit_is_one_output_that_ends_with_its_last_line(run_cell):
    (output,), updates = run_cell("LinearSVC(verbose=1, **hard).fit(X, y);")
    assert output.output_type == "display_data"
    assert output.data["text/plain"].startswith("dcd: sweep ")
    assert output.data["text/plain"].strip() in output.data["text/html"]
    assert "━" not in output.data["text/html"]
    assert updates > 3


def test_a_short_fit_is_a_line_if_verbose_and_nothing_otherwise(run_cell):
    run_cell("moment, progress._SECONDS_BEFORE_BARS = progress._SECONDS_BEFORE_BARS, 60.0")
    (output,), updates = run_cell("LinearSVC(solver='dcd', verbose=1).fit(X[:90], y[:90]);")
    assert output.data["text/plain"].startswith("dcd: sweep ")
    assert updates == 0
    assert run_cell("with show_progress(): LinearSVC(solver='dcd').fit(X[:90], y[:90])") == ([], 0)
    run_cell("progress._SECONDS_BEFORE_BARS = moment")


def test_tasks_leave_a_line_each(run_cell):
    source = """
with show_progress():
    with task("a<b", 10, "steps") as steps:
        for _ in range(10):
            time.sleep(0.2)
            steps.advance()
    with task("the end", 4, "steps") as steps:
        time.sleep(1.1)
        steps.advance()
        raise KeyError
"""
    outputs, _ = run_cell(source)
    lines = outputs[0].data["text/plain"].splitlines()
    assert [line.rsplit(", ", 1)[0] for line in lines] == ["a<b: 10 steps", "the end: stopped at 1 of 4 steps, 25%"]
    assert "a&lt;b" in outputs[0].data["text/html"]
    assert "━" not in outputs[0].data["text/html"]
    assert outputs[1].ename == "KeyError"


def test_the_output_has_bars_while_work_goes_on(run_cell):
    source = """
with show_progress() as report, task("work", 10, "steps") as work:
    time.sleep(1.5)
    work.advance(5)
    report._draw()
    print(report._screen._repr_mimebundle_([], [])["text/html"])
"""
    outputs, _ = run_cell(source)
    printed = next(output for output in outputs if output.output_type == "stream")
    assert printed.text.count("━") == 15  # eight of sixteen done, a gap after them
    assert "work: 5 of 10 steps, 50%" in printed.text


def test_a_grid_search_is_a_bar_and_its_result_a_picture(run_cell):
    source = """
from widemargin import SVC, grid_search
many = {"C": [2.0**k for k in range(-3, 13)], "gamma": [0.1, 0.01, 0.001]}
result = grid_search(SVC(), X[:600], y[:600], many, verbose=1, refit=False)
result
"""
    run_cell("moment, progress._SECONDS_BEFORE_BARS = progress._SECONDS_BEFORE_BARS, 0.0")
    (bar, picture), updates = run_cell(source)
    run_cell("progress._SECONDS_BEFORE_BARS = moment")
    assert bar.data["text/plain"].splitlines()[-1].startswith("grid: 240 fits, ")  # after "compiling", the first time
    assert updates > 1
    assert "<svg" in picture.data["text/html"]


PICTURES = {
    "plot_convergence": "plot_convergence(fitted)",
    "plot_grid": "plot_grid(found)",
}


@pytest.fixture(scope="module")
def run_plots(run_cell):
    """Return a function that runs a cell in a kernel that nobody told of matplotlib."""
    source = """
import sys
from widemargin import SVC, grid_search, plot_convergence, plot_grid
found = grid_search(SVC(), X[:90], y[:90], {"C": [1.0, 2.0], "gamma": [0.1, 0.2]}, cv=3)
assert "matplotlib" not in sys.modules
"""
    assert run_cell(source)[0] == []
    return lambda source: run_cell(source)[0]


@pytest.mark.parametrize("call", PICTURES.values(), ids=PICTURES)
@pytest.mark.parametrize(
    "cell", ["{}", "{};", "figure = {}", "{}\nnumber = 1", "from IPython.display import display\ndisplay({})"]
)
def test_a_picture_is_shown_once_however_it_is_asked_for(call, cell, run_plots):
    (output,) = run_plots(cell.format(call))
    assert output.output_type == "display_data", output
    picture = base64.b64decode(output.data["image/png"])
    width, height = struct.unpack(">II", picture[16:24])
    assert picture.startswith(b"\x89PNG")
    shown = [2 * output.metadata["image/png"][side] for side in ("width", "height")]
    np.testing.assert_allclose((width, height), shown, rtol=0, atol=1)  # half a pixel is rounded either way
    assert len(set(zlib.decompress(_pixels(picture)))) > 20, "the picture is blank"


def _pixels(picture):
    """Return the compressed pixels of a PNG: the contents of its IDAT chunks."""
    place, parts = 8, []
    while place < len(picture):
        length, kind = struct.unpack(">I4s", picture[place : place + 8])
        parts += [picture[place + 8 : place + 8 + length]] if kind == b"IDAT" else []
        place += 12 + length
    return b"".join(parts)


def test_a_picture_is_shown_as_it_is_at_the_end_of_its_cell_and_again_in_another(run_plots):
    (plain,) = run_plots("plot_convergence(fitted)")
    (titled,) = run_plots("figure = plot_convergence(fitted)\nfigure.suptitle('A title of its own');")
    assert titled.data["image/png"] != plain.data["image/png"]
    (again,) = run_plots("figure")
    assert again.data["image/png"] != plain.data["image/png"]
    assert run_plots("number = 2") == []


def test_a_picture_is_shown_once_also_where_pyplot_shows_pictures(run_plots):
    for call in PICTURES.values():
        (output,) = run_plots(f"%matplotlib inline\n{call}")
        assert "image/png" in output.data
    assert run_plots("number = 3") == []


def test_pictures_in_axes_of_the_caller_are_the_callers_to_show(run_plots):
    source = "from matplotlib.figure import Figure\nown = Figure()\nplot_grid(found, axes=own.subplots());"
    assert run_plots(source) == []
