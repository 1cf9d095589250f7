"""The site builds without a warning, asks nothing of the network, and works on desks and phones, light and dark."""

import functools
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_ASKED = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
_SECONDS_OF_A_BUILD = 900
_VIEWS = ((1280, "light"), (375, "dark"))  # overflow depends on the width, and complaints on the scheme at most
_NOT_REACHED = """() => [...document.querySelectorAll("main *")].filter((box) =>
  /auto|scroll/.test(getComputedStyle(box).overflowX) && box.scrollWidth > box.clientWidth + 1
  && box.clientWidth > 100 && box.checkVisibility() && box.tabIndex < 0 && !box.querySelector("a, button, [tabindex]")
).map((box) => box.className || box.tagName)"""


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The folder of the site, and what the build said; of several processes one builds, since that takes a while."""
    own = tmp_path_factory.getbasetemp()
    folder = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    site, said = folder / "site", folder / "site.json"
    try:
        site.mkdir()
    except FileExistsError:
        deadline = time.monotonic() + _SECONDS_OF_A_BUILD
        while not said.exists():
            assert time.monotonic() < deadline, "the process that builds the site has not finished"
            time.sleep(0.5)
    else:
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", site]
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        (folder / "site.part").write_text(json.dumps([done.returncode, done.stderr]))
        (folder / "site.part").replace(said)
    return site, *json.loads(said.read_text())


def test_the_site_builds_without_a_warning_and_is_whole(built):
    site, status, said = built
    assert status == 0, said
    assert "WARNING" not in said
    check_every_page_is_there(site)
    check_nothing_is_asked_of_the_network(site)
    check_docstrings_came_out_as_written((site / "reference/kernel.html").read_text(encoding="utf-8"))


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves the files of a folder and logs nothing."""

    def log_message(self, *words):
        """Say nothing."""


@pytest.fixture
def opened(built, browser):
    """A page of the browser, the address of the served site, and what the browser complains about."""
    handler = functools.partial(_Quiet, directory=str(built[0]))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        context, complaints = browser.new_context(reduced_motion="reduce"), []
        page = context.new_page()
        page.on("console", lambda message: complaints.append((page.url, message.text)))
        page.on("pageerror", lambda error: complaints.append((page.url, str(error))))
        yield page, f"http://127.0.0.1:{server.server_port}", complaints
        context.close()
        server.shutdown()


def test_no_page_overflows_or_complains_on_desks_and_phones_light_and_dark(opened, built):
    page, address, complaints = opened
    pages = sorted(path.relative_to(built[0]) for path in built[0].rglob("*.html"))
    sources = [path for path in pages if path.parts[0] == "source"]
    found = []
    for path in (*(path for path in pages if path not in sources), sources[0]):
        page.goto(f"{address}/{path.as_posix()}")
        for width, scheme in _VIEWS:
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 800})
            if page.evaluate("document.documentElement.scrollWidth") > width:
                found.append((str(path), width, scheme))
        boxes = page.evaluate(
            f"new Promise(done => requestAnimationFrame(() => setTimeout(() => done(({_NOT_REACHED})()))))"
        )
        if boxes:
            found.append((str(path), "out of the keyboard's reach", boxes))
    assert len(pages) > 80
    assert found == []
    assert complaints == []


@pytest.mark.parametrize(
    ("words", "place"),
    [("gap", "messages.html"), ("RankSVM", "reference/orders.html"), ("stopped after", "messages.html")],
)
def test_the_search_finds(opened, words, place):
    page, address, complaints = opened
    page.goto(f"{address}/quickstart.html")
    page.get_by_role("textbox", name="Search").click()
    page.keyboard.type(words)
    first = page.locator(".md-search-result__link").first
    first.wait_for(state="attached", timeout=20_000)
    assert first.get_attribute("href").partition("?")[0] == f"{address}/{place}"
    assert page.locator("[role=dialog]").get_attribute("aria-label") == "Search"
    assert complaints == []


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
