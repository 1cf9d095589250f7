"""The gallery of examples: each program of `examples/` is run, and becomes a page with its code, output and picture.

An example is a Python file whose docstring is a heading and a paragraph. It prints a few lines and leaves one figure of
matplotlib open. `gallery` runs all of them in new processes, two at a time, and returns the files of the site.
"""

import ast
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mkdocs.exceptions import PluginError

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples"
_ORDER = (
    "margin", "convergence", "choose_c", "uneven_classes", "ranking", "tube", "outliers", "probabilities",
    "sparse_weights", "basis",
)  # fmt: skip
_SECONDS = 120  # after which an example is ended
_PROCESSES = 2
_RUN = """
import runpy, sys
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
runpy.run_path(sys.argv[1], run_name="__main__")
(number,) = plt.get_fignums()
plt.figure(number).savefig(sys.argv[2], dpi=110)
"""


def gallery():
    """Return the content of the files of the gallery, text or bytes, by their places in the site."""
    files = {f"examples/{name}.py" for name in _ORDER}
    there = {f"examples/{path.name}" for path in FOLDER.glob("*.py")}
    if files != there:
        raise PluginError(
            f"the gallery has no place for {sorted(there ^ files)}: see _ORDER in docs/builder/gallery.py"
        )
    with ThreadPoolExecutor(_PROCESSES) as pool:
        results = list(pool.map(_run, _ORDER))
    content = {"examples/index.md": _index()}
    for name, (output, picture) in zip(_ORDER, results, strict=True):
        content[f"examples/{name}.md"] = _page(name, output)
        content[f"examples/{name}.png"] = picture
    return content


def _run(name):
    """Return what an example prints, and its picture; PluginError if it fails, or has not exactly one figure."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "figure.png"
        command = [sys.executable, "-W", "error", "-c", _RUN, str(FOLDER / f"{name}.py"), str(target)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "MPLCONFIGDIR": folder}
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
        if done.returncode:
            raise PluginError(f"examples/{name}.py failed:\n{done.stderr}")
        return done.stdout, target.read_bytes()


def _words(name):
    """Return the heading, the paragraph and the code without them."""
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    heading, _, paragraph = ast.get_docstring(ast.parse(text)).partition("\n\n")
    code = text.partition('"""\n\n')[2]
    return heading.rstrip("."), " ".join(paragraph.split()), code


def _page(name, output):
    heading, paragraph, code = _words(name)
    return (
        f"# {heading}\n\n{paragraph}\n\n![{heading}]({name}.png)\n\n```python\n{code}```\n\n```text\n{output}```\n\n"
        f"This is `examples/{name}.py` of the repository, run when this page was made.\n\n[All examples](index.md)\n"
    )


def _index():
    """Return the page with all examples: a picture, a heading and a paragraph each."""
    cards = []
    for name in _ORDER:
        heading, paragraph, _ = _words(name)
        picture = f"[![{heading}]({name}.png)]({name}.md)"
        cards.append(f"-   {picture}\n\n    **[{heading}]({name}.md)**\n\n    {paragraph}\n")
    lines = [
        "# Examples",
        "",
        "Programs of some thirty lines. Code, output and pictures are those of the version that is documented here:",
        "every example is run when this site is built. The files are in `examples/` of the repository.",
        "",
        '<div class="examples" markdown>',
        "",
        *cards,
        "</div>",
    ]
    return "\n".join(lines) + "\n"
