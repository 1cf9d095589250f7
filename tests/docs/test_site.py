"""The site builds without a warning, and asks nothing of the network. One test, since building takes a while."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_ASKED = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")


def test_the_site_builds_without_a_warning_and_is_whole(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    check_every_page_is_there(tmp_path)
    check_nothing_is_asked_of_the_network(tmp_path)
    check_docstrings_came_out_as_written((tmp_path / "reference/kernel.html").read_text(encoding="utf-8"))


def check_every_page_is_there(site):
    pages = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in ROOT.glob("docs/**/*.md")]
    assert [page for page in (*pages, "changelog.html", "results/linear.html") if not (site / page).exists()] == []


def check_nothing_is_asked_of_the_network(site):
    pages = [path.read_text(encoding="utf-8") for path in site.rglob("*.html")]
    assert [found[0] for page in pages for found in _ASKED.finditer(page)] == []
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert not any(re.search(r"@import|url\([\"']?(?:https?:)?//", style) for style in styles)


def check_docstrings_came_out_as_written(page):
    """Shared parts are filled in, <x, z> is no tag, and a default is not the first of the choices."""
    assert "{parameters}" not in page
    assert "&lt;x, z&gt;, (gamma &lt;x, z&gt; + coef0)^degree" in page.replace("<x, z>", "&lt;x, z&gt;")
    kernel = page[page.index("<code>kernel</code>") :][:2000]
    assert re.search(r"default:\s*<code>(?:<span[^>]*>)?(?:\"|&#34;|&quot;)rbf", kernel)
