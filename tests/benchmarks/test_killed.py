"""A run that is killed, kill -9, loses the unit that it was measuring and nothing else."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUN = """
import sys, time
from pathlib import Path
from benchmarks.machinery.page import Frame, How, Page, Table

def table(page, cases, options):
    for case in page.each("times", cases):
        if case == "second" and sys.argv[2] == "hang":
            time.sleep(600)
        page.put("times", ["case", "seconds"], [case, sys.argv[2]], n_key=1)

folder = Path(sys.argv[1])
frame = Frame("# A page", {"times": ("Times", "")}, {"times": Table(table, ["first", "second"], [])})
print(Page("some", frame, How(1.0, force=True), folder, folder / "results", folder / "docs").run().read_text())
"""


def started(folder, word):
    command = [sys.executable, "-c", RUN, str(folder), word]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_the_next_run_measures_only_what_the_killed_one_had_not(tmp_path):
    hanging = started(tmp_path, "hang")
    for line in hanging.stdout:
        if line.startswith("some: times: second"):
            break
    hanging.kill()
    hanging.communicate()
    assert hanging.returncode == -9
    printed, _ = started(tmp_path, "again").communicate(timeout=60)
    assert "some: times: first" not in printed
    assert "| first | hang |" in printed
    assert "| second | again |" in printed
