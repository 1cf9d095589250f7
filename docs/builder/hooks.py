"""Hooks of the documentation site: what is made when it is built, and links that leave `docs/`.

Pages link to files of the repository by relative paths, so that they can be read there too. Whatever such a link leads
to outside `docs/` becomes a page of the site: Markdown as it is, source files as highlighted text. Help texts and
tables of files are made from the program and its sources, so that they are never stale.
"""

import ast
import contextlib
import io
import os
import posixpath
import re
import sys
from functools import cache
from pathlib import Path, PurePosixPath
from unittest.mock import patch

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))  # hooks are loaded as a file, without their folder

from gallery import gallery

ROOT = Path(__file__).parents[2]
HELP_TEXTS = "<!-- help texts -->"
_FILES = re.compile(r"<!-- files of (?P<floor>[\w/]+) -->")
_LINK = re.compile(r"\[(?P<text>[^]]*)\]\((?![a-z]+:|#)(?P<path>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
HELP_WIDTH = "100"
_SEARCH = 'data-md-component="search" role="dialog"'


@cache
def _placed():
    """Return where files outside `docs/` stand in the site, by their paths in the repository."""
    results = sorted(ROOT.glob("benchmarks/results/*.md"))
    sources = sorted(ROOT.glob("src/widemargin/**/*.py"))
    return {
        "CHANGELOG.md": "changelog.md",
        "benchmarks/README.md": "results/making.md",
        **{f"benchmarks/results/{path.name}": f"results/{path.name}" for path in results},
        **{_in_root(path): f"source/{path.relative_to(ROOT / 'src').as_posix()}.md" for path in sources},
    }


def _in_root(path):
    return path.relative_to(ROOT).as_posix()


def on_config(config):
    """Put the pages of results that there are into the navigation, by their headings."""
    for section in config.nav:
        if "Benchmarks" in section:
            first, last = section["Benchmarks"]
            pages = [path for path in _placed() if path.startswith("benchmarks/results/")]
            section["Benchmarks"] = [first, *({_heading(path): _placed()[path]} for path in pages), last]
    return config


def _heading(path):
    return (ROOT / path).read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")


def on_files(files, config):
    """Add the pages whose text stands outside `docs/`, and the gallery of examples."""
    for path, place in _placed().items():
        text = (ROOT / path).read_text(encoding="utf-8")
        content = _as_source_page(path, text) if path.endswith(".py") else text
        files.append(File.generated(config, place, content=content))
    for place, made in gallery().items():
        files.append(File.generated(config, place, content=made))
    return files


def _as_source_page(path, text):
    """Return a page with a source file on it, which the search leaves out."""
    return f"---\nsearch:\n  exclude: true\nhide:\n  - toc\n---\n\n# `{path}`\n\n````python\n{text}````\n"


def on_page_markdown(markdown, page, config, files):
    """Put help texts and tables of files in their places, and lead links that leave `docs/` to pages of the site."""
    placed = _placed()
    stands = {place: path for path, place in placed.items()}
    if page.file.src_uri.startswith("examples/"):
        return markdown  # links there are those of the site
    own = stands.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    if own.endswith(".py"):
        return markdown
    if HELP_TEXTS in markdown:
        markdown = markdown.replace(HELP_TEXTS, help_texts())
    markdown = _FILES.sub(lambda found: _table_of_files(found["floor"], own), markdown)

    def lead(link):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(own), link["path"]))
        if not own.startswith("docs/") and not (ROOT / target).exists():
            return link["text"]  # a result that has not been made yet
        if target not in placed and not target.startswith("docs/"):
            raise PluginError(f"{own} links to {link['path']}, which is no page of the site.")
        place = placed.get(target) or str(PurePosixPath(target).relative_to("docs"))
        path = posixpath.relpath(place, posixpath.dirname(page.file.src_uri) or ".")
        return f"[{link['text']}]({path}{link['anchor'] or ''})"

    return _LINK.sub(lead, markdown)


def on_post_template(output_content, template_name, config):
    """Give the theme's dialog of the search a name, which screen readers say, on the page "not found"."""
    return output_content.replace(_SEARCH, f'{_SEARCH} aria-label="Search"')


def on_post_page(output, page, config):
    """Do so on a page."""
    return on_post_template(output, page, config)


def _table_of_files(floor, page):
    """Return a table of the files of a room and of those inside it, each with the first words of its docstring."""
    lines = ["| file | |", "|---|---|"]
    room = ROOT / "src/widemargin" / floor
    for path in sorted(room.rglob("[a-z]*.py"), key=lambda path: (len(path.relative_to(room).parts), path)):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        words = " ".join(docstring.partition("\n\n")[0].split()).replace("<", "&lt;").replace("|", r"\|")
        link = posixpath.relpath(_in_root(path), posixpath.dirname(page))
        lines.append(f"| [{path.relative_to(room).as_posix()}]({link}) | {words} |")
    return "\n".join(lines)


def help_texts():
    """Return what `widemargin COMMAND --help` prints, for every command, under a heading each."""
    from widemargin.cli.main import COMMANDS

    sections = [("widemargin", help_text("--help"))]
    sections += [(f"widemargin {command}", help_text(command, "--help")) for command in COMMANDS]
    return "\n\n".join(f"## {title}\n\n```none\n{text}```" for title, text in sections)


def help_text(*words):
    """Return what `widemargin WORDS` prints."""
    from widemargin.cli.main import main

    with (
        patch.dict(os.environ, COLUMNS=HELP_WIDTH),
        contextlib.redirect_stdout(io.StringIO()) as printed,
    ):
        main(words)
    return printed.getvalue()
