"""Hooks of the documentation site: pages that are made when it is built, and links that leave `docs/`.

Pages link to files of the repository by relative paths, so that they can be read there too. Whatever such a link leads
to outside `docs/` becomes a page of the site: Markdown as it is, source files as highlighted text.
"""

import contextlib
import io
import os
import posixpath
import re
from pathlib import Path, PurePosixPath
from unittest.mock import patch

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
HELP_TEXTS = "<!-- help texts -->"
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)(?P<path>[^)\s#]+)")
HELP_WIDTH = "100"


def _placed():
    """Return where files outside `docs/` stand in the site, by their paths in the repository."""
    results = sorted(ROOT.glob("benchmarks/results/*.md"))
    sources = sorted(ROOT.glob("src/widemargin/**/*.py"))
    return {
        "CHANGELOG.md": "changelog.md",
        "benchmarks/README.md": "results/README.md",
        **{f"benchmarks/results/{path.name}": f"results/{path.name}" for path in results},
        **{_in_root(path): f"source/{path.relative_to(ROOT / 'src').as_posix()}.md" for path in sources},
    }


def _in_root(path):
    return path.relative_to(ROOT).as_posix()


def on_files(files, config):
    """Add the pages whose text stands outside `docs/`."""
    for path, place in _placed().items():
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=_as_source_page(path, text) if path.endswith(".py") else text))
    return files


def _as_source_page(path, text):
    """Return a page with a source file on it, which the search leaves out."""
    return f"---\nsearch:\n  exclude: true\nhide:\n  - toc\n---\n\n# `{path}`\n\n````python\n{text}````\n"


def on_page_markdown(markdown, page, config, files):
    """Put the help texts in their place, and lead links that leave `docs/` to pages of the site."""
    placed = _placed()
    stands = {place: path for path, place in placed.items()}
    own = stands.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    if own.endswith(".py"):
        return markdown
    if HELP_TEXTS in markdown:
        markdown = markdown.replace(HELP_TEXTS, help_texts())

    def lead(link):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(own), link["path"]))
        if target not in placed and not target.startswith("docs/"):
            raise PluginError(f"{own} links to {link['path']}, which is no page of the site.")
        place = placed.get(target) or str(PurePosixPath(target).relative_to("docs"))
        return posixpath.relpath(place, posixpath.dirname(page.file.src_uri) or ".")

    return _LINK.sub(lead, markdown)


def help_texts():
    """Return what `widemargin COMMAND --help` prints, for every command, under a heading each."""
    from widemargin.tools.cli import COMMANDS

    sections = [("widemargin", help_text("--help"))]
    sections += [(f"widemargin {command}", help_text(command, "--help")) for command in COMMANDS]
    return "\n\n".join(f"## {title}\n\n```none\n{text}```" for title, text in sections)


def help_text(*words):
    """Return what `widemargin WORDS` prints."""
    from widemargin.tools.cli import main

    with patch.dict(os.environ, COLUMNS=HELP_WIDTH), contextlib.redirect_stdout(io.StringIO()) as printed:
        main(words)
    return printed.getvalue()
