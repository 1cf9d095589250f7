"""HTML of tables, tiles, cards and sections. Every text from a file passes through `shown`, which escapes it.

There are some thirty lines of tags, too few to justify a dependency on a template engine.
"""

import html
import math
import re
from numbers import Integral, Real

UNDEFINED = "–"
_NUMBER = re.compile(rf"-?[\d.,]+(?:e[-+]\d+)?%?|{UNDEFINED}|")
_MAX_LEFT_COLUMNS = 6  # the style sheet has classes for aligning so many columns to the left


def shown(value):
    """Return a value as HTML: numbers formatted by `number`, text escaped."""
    if isinstance(value, Real) and not isinstance(value, bool):
        return number(value)
    return html.escape(str(value))


def number(value):
    """Return a number formatted for reading; a dash if it is NaN.

    Integers are exact, with commas between thousands. Other numbers from 0.001 to a million are rounded to four
    significant digits, or to an integer if that has more digits; others have three significant digits and an exponent.
    """
    if isinstance(value, Integral):
        return f"{int(value):,}"
    value = float(value)
    if math.isnan(value):
        return UNDEFINED
    if value != 0.0 and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.3g}"
    if value.is_integer():
        return f"{value:z,.0f}"
    whole, point, decimals = f"{value:,.{max(0, 3 - math.floor(math.log10(abs(value))))}f}".partition(".")
    return (whole + point + decimals.rstrip("0")).removesuffix(".")


def percent(fraction):
    """Return a fraction as a percentage with two decimals; exactly 0 and 1 are "0%" and "100%", without decimals."""
    if math.isnan(fraction):
        return UNDEFINED
    return f"{100.0 * fraction:z.0f}%" if fraction in (0.0, 1.0) else f"{100.0 * fraction:z.2f}%"


def size(n_bytes):
    """Return a number of bytes as text: exact below 1 KB, then in whole KB, then in tenths of MB."""
    if n_bytes < 1024:
        return plural(n_bytes, "byte")
    return f"{n_bytes / 1024:.0f} KB" if n_bytes < 1 << 20 else f"{n_bytes / (1 << 20):,.1f} MB"


def plural(count, noun):
    """Return a number and its noun, in the plural unless the number is 1."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def table(heads, rows, *, sortable=False):
    """Return a table; columns of text are aligned to the left, numbers to the right. Optional end tags are omitted.

    Parameters
    ----------
    heads : sequence of str
        Heads of the columns.
    rows : list of sequences
        One cell for each head.
    sortable : bool
        Whether the heads are buttons that sort the table.
    """
    columns = list(zip(*rows, strict=True))[:_MAX_LEFT_COLUMNS]
    names = [f"l{k}" for k, cells in enumerate(columns, 1) if not all(map(_is_number, cells))]
    names += ["sortable"] if sortable else []
    wrap = "<th scope=col><button type=button>{}</button>" if sortable else "<th scope=col>{}"
    head = "".join(wrap.format(shown(name)) for name in heads)
    lines = "\n".join("<tr>" + "".join(f"<td>{shown(cell)}" for cell in row) for row in rows)
    return f'<table class="{" ".join(["data", *names])}"><thead><tr>{head}<tbody>\n{lines}\n</table>'


def _is_number(cell):
    return isinstance(cell, Real) or _NUMBER.fullmatch(cell) is not None


def scrolling(label, content):
    """Return content in a box that scrolls, also by keyboard, if the content is larger than the box."""
    return f'<div class=scroll tabindex=0 role=region aria-label="{shown(label)}">{content}</div>'


def facts(pairs):
    """Return a list of names and values; a value may be (value, remark)."""
    lines = []
    for name, value in pairs.items():
        value, remark = value if isinstance(value, tuple) else (value, "")
        note = f"<small>{shown(remark)}</small>" if remark else ""
        lines.append(f"<div><dt>{shown(name)}<dd>{shown(value)}{note}</div>")
    return f"<dl class=facts>{''.join(lines)}</dl>"


def tiles(entries):
    """Return key numbers as tiles; an entry is (name, value, remark)."""
    lines = []
    for name, value, remark in entries:
        note = f"<dd class=remark>{shown(remark)}" if remark else ""
        lines.append(f"<div><dt>{shown(name)}<dd>{shown(value)}{note}</div>")
    return f"<dl class=tiles>{''.join(lines)}</dl>"


def words(*sentences):
    """Return a paragraph."""
    return f"<p>{shown(' '.join(sentence for sentence in sentences if sentence))}</p>"


def card(title, *content):
    """Return a card with a title."""
    return f"<article class=card><h3>{shown(title)}</h3>{''.join(content)}</article>"


def section(name, title, *cards, whole=()):
    """Return a section of cards, three or two side by side on wide screens, with the full-width cards `whole` below.

    Cards that are empty strings are left out.
    """
    cards, whole = [one for one in cards if one], [one for one in whole if one]
    n_halves = {1: min(len(cards), 4), 2: 2}.get(len(cards) % 3, 0)  # so that no card is alone in its row
    thirds, halves = cards[: len(cards) - n_halves], cards[len(cards) - n_halves :]
    placed = [(one, "third") for one in thirds] + [(one, "half") for one in halves] + [(one, "whole") for one in whole]
    inner = "".join(f"<div class={place}>{one}</div>" for one, place in placed)
    return (
        f"<section id={name} aria-labelledby={name}-h><h2 id={name}-h>{shown(title)}</h2>"
        f"<div class=cards>{inner}</div></section>"
    )
