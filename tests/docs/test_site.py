"""The site builds without a warning, and asks nothing of the network."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_ASKED = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>|@import|url\(['\"]?http")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site; return its folder."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", folder]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def test_every_page_of_the_documentation_is_built(site):
    pages = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in ROOT.glob("docs/**/*.md")]
    assert [page for page in pages if not (site / page).exists()] == []
    assert (site / "changelog.html").exists()


def test_the_site_asks_nothing_of_the_network(site):
    asked = [found[0] for path in site.rglob("*.html") for found in _ASKED.finditer(path.read_text(encoding="utf-8"))]
    assert asked == []
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert "url(http" not in styles


def test_docstrings_come_out_as_they_were_written(site):
    page = (site / "reference/kernel.html").read_text(encoding="utf-8")
    assert "{parameters}" not in page
    assert "&lt;x, z&gt;, (gamma &lt;x, z&gt; + coef0)^degree" in page.replace("<x, z>", "&lt;x, z&gt;")
    kernel = page[page.index("<code>kernel</code>") :]
    assert re.search(r"default:\s*<code>(?:<span[^>]*>)?(?:\"|&#34;|&quot;)rbf", kernel[:2000])
