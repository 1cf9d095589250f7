"""The frame of a self-contained HTML page: style, script and content security policy.

The policy forbids the browser to load anything. It allows only the script with the given hash, so that no other script
could run even if a name from a file were not escaped.
"""

import base64
import hashlib
from functools import cache
from importlib.resources import files

from widemargin._runtime.version import __version__
from widemargin.report import palette
from widemargin.report.markup import shown

_NOTEBOOK_DARK = (".vscode-dark", '[data-jp-theme-light="false"]', '[data-theme="dark"]', '[theme="dark"]')


def page(title, kind, content, contents=()):
    """Return a whole page.

    Parameters
    ----------
    title, kind : str
        The heading, and a line below it.
    content : str
        HTML of the main part.
    contents : sequence of (str, str)
        Ids and titles of the sections, for the table of contents.
    """
    script = _text("figures.js") + _text("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    links = "".join(f"<li><a href=#{name}>{shown(text)}</a>" for name, text in contents)
    return f"""<!doctype html>
<html lang=en>
<head>
<meta charset=utf-8>
<meta http-equiv=Content-Security-Policy content="{policy}">
<meta name=viewport content="width=device-width, initial-scale=1">
<meta name=generator content="widemargin {__version__}">
<meta name=color-scheme content="light dark">
<link rel=icon href="data:,">
<title>{shown(title)}</title>
<style>{_page_style()}</style>
</head>
<body class=wm>
<a class=skip href=#main>Skip to the content</a>
<header><div><h1>{shown(title)}</h1><p class=kind>{shown(kind)}</p></div>
<button id=theme type=button hidden>Dark</button></header>
{f"<nav aria-label=Contents><ul>{links}</ul></nav>" if links else ""}
<main id=main tabindex=-1>
{content}
</main>
<footer>Made by widemargin {__version__}. Everything is in this file; nothing is loaded.</footer>
<script>{script}</script>
</body>
</html>
"""


def fragment(content):
    """Return HTML with its style and script for insertion into another page, such as a notebook."""
    dark = ",".join(f"{place} .wm" for place in _NOTEBOOK_DARK)
    style = (
        f".wm{{{palette.properties(dark=False)}}}"
        f"@media (prefers-color-scheme:dark){{.wm{{{palette.properties(dark=True)}}}}}"
        f'[data-jp-theme-light="true"] .wm,.vscode-light .wm{{{palette.properties(dark=False)}}}'
        f"{dark}{{{palette.properties(dark=True)}}}"
    )
    return f"<div class=wm><style>{style}{_figure_style()}</style>{content}<script>{_text('figures.js')}</script></div>"


def _page_style():
    light, dark = palette.properties(dark=False), palette.properties(dark=True)
    return (
        f":root{{{light}}}"
        f'@media (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{dark}}}}}'
        f':root[data-theme="dark"]{{{dark}}}'
        f"@media print{{:root:root:root{{{light}}}}}{_figure_style()}{_text('page.css')}"
    )


def _figure_style():
    """Return the style of figures, with a class for each series and for each step of the colour scale."""
    series = "".join(f".wm .s{k}{{--c:var(--s{k})}}" for k in range(len(palette.LIGHT_SERIES)))
    heat = "".join(
        f".wm .plot .h{k}{{fill:var(--h{k})}}.wm .plot .t{k}{{fill:var(--t{k})}}" for k in range(palette.N_STEPS)
    )
    return series + _text("figures.css") + heat


@cache
def _text(name):
    return files(__package__).joinpath(name).read_text("utf-8")
