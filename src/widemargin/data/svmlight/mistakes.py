"""What is wrong with a row of SVM-light text, in words.

The compiled parser only says which line it refused. This slow, plain reading of that one line goes through its tokens
in order and says which rules they break.
"""

import re
from typing import NamedTuple

import numpy as np

LARGEST_INDEX = 2**31 - 2  # so that the number of features, one more if counted from zero, fits 32 bits

_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_DIGITS = re.compile(rb"[0-9]+")
_TOKEN = re.compile(rb"\r|#[^\r]*|[^ \t\r#]+")
_PLAIN_ENTRY = re.compile(rb"([0-9]{1,9}):-?[0-9]{1,15}(?:\.[0-9]{0,15})?")
_KNOWN_START = re.compile(rb"[0-9]+:|qid:")
_NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_LONE_RETURN = "a carriage return stands alone; lines end with \\n or \\r\\n"
HEAD_BYTES = 4096  # of a file, by which other formats are told
_FOREIGN = {
    b"\x93NUMPY": "a NumPy array",
    b"PK\x03\x04": "a zip archive",
    b"\x89HDF": "HDF5",
    b"PAR1": "Parquet",
    b"ARROW1": "Arrow",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
}
_CONTROL = bytes(set(range(32)) - set(b"\t\n\v\f\r"))  # what text does not hold
_FEW_CONTROL = 16  # such characters, which may be a mistake in a line
_WANTED = "a row is `label index:value index:value ...`"
_CONVERT = "read it with pandas.read_csv, and write it with widemargin.write_svmlight"


class Expected(NamedTuple):
    """What a line was held against."""

    rules: NamedTuple  # the parser's Rules
    n_features: int | None = None  # the bound the caller asked for, if any
    norm: str = "the first row has"  # who says whether rows have queries: "the first row has", "most rows have"


def foreign_format(head, has_rows):
    """Return the rule that a file breaks if it is no such text at all, or None.

    Parameters
    ----------
    head : bytes
        The first `HEAD_BYTES` of the file.
    has_rows : bool
        Whether a row of it could be read.
    """
    for magic, name in _FOREIGN.items():
        if head.startswith(magic):
            return f"the file is {name}, not text; {_WANTED}"
    n_shown = len(head.translate(None, _CONTROL))
    if (head and not n_shown) or len(head) - n_shown > max(_FEW_CONTROL, len(head) / 16):
        return f"the file is binary, or text in UTF-16, but not plain text; {_WANTED}"
    line = next((line for line in head.splitlines() if line.partition(b"#")[0].strip()), b"")
    if not has_rows and b"," in line and b":" not in line:
        return f"the file looks like comma-separated values (CSV); {_WANTED}: {_CONVERT}"
    return None


def explain(line, expected):
    """Find the first mistake of a line that was refused.

    Parameters
    ----------
    line : bytes
        The line without its newline.
    expected : Expected
        What the parser was told.

    Returns
    -------
    column : int
        Where the mistake is, in bytes, from 1.
    rule : str
        The rule broken, with the token that breaks it.
    """
    return next(mistakes(line, expected))


def mistakes(line, expected):
    """Yield (column, rule broken) for every mistake of a line that was refused, in its order, at least one.

    After a mistake the rest is read as it was most likely meant: what stands in the place of a missing label or query
    as an entry, and what follows a lone carriage return as another row, unless it goes on with an entry.
    """
    n_found = 0
    for column, rule in _mistakes(line.removesuffix(b"\r"), expected):
        yield column, rule
        n_found += 1
    if n_found == 0:
        yield 1, f"the row {_show(line)} cannot be read"


def _mistakes(line, expected):
    """Yield (column, rule broken) token by token; a row is a label, a query if rows have them, and entries."""
    with_queries = expected.rules.with_queries
    place, previous, returned = 0, -1, False
    for match in _TOKEN.finditer(line):
        column, token = match.start() + 1, match.group()
        if token == b"\r":
            yield column, _LONE_RETURN
            returned = True
        if token[:1] in (b"\r", b"#"):
            continue
        if returned and b":" not in token:
            place, previous = 0, -1
        returned = False
        if place == 0:
            label_at, place = column, 1
            rule = _label_mistake(token)
            if rule is not None:
                yield column, rule
            if not _KNOWN_START.match(token):
                continue
        if place == 1 and with_queries:
            place = 2
            rule = _query_mistake(token, expected.norm)
            if rule is not None:
                yield column, rule
            if rule is None or not _DIGITS.match(token):
                continue
        index = _plain_index(token, previous, expected.rules)
        if index is None:
            for rule in _entry_mistakes(token, place, previous, expected):
                yield column, rule
            index = _index_of(token, previous)
        place, previous = 2, index
    if place == 1 and with_queries and not returned:
        yield label_at, f"the row has no qid, but {expected.norm} one; give every row one, or none"


def _plain_index(token, previous, rules):
    """Return the index of an entry that is short and right, as most are even in a line with mistakes, else None."""
    match = _PLAIN_ENTRY.fullmatch(token)
    index = int(match[1]) if match else -1
    return index if index > previous and rules.lowest_index <= index <= rules.highest_index else None


def _label_mistake(token):
    """Return the rule that a label breaks, or None."""
    if b":" in token:
        return f"the label is missing: the row starts with {_show(token)}"
    if b"," in token:
        return f"{_show(token)} lists several labels; a row has one"
    return _number_mistake("label", token, np.finfo(np.float64).max)


def _query_mistake(token, norm):
    """Return the rule that the query of a row breaks, or None."""
    if not token.startswith(b"qid:"):
        return f"qid must follow the label, since {norm} one, got {_show(token)}"
    number = token[4:]
    if not _INTEGER.fullmatch(number):
        return f"qid must be an integer, got {_show(token)}"
    if _exceeds(number.lstrip(b"+-"), 2**63 - 1):
        return f"qid must fit 64 bits, got {_show(token)}"
    return None


def _entry_mistakes(token, place, previous, expected):
    """Yield the rules that an index:value pair breaks."""
    index, colon, value = token.partition(b":")
    if index == b"qid" and colon:
        if place == 1:
            yield f"{_show(token)}: {expected.norm} no qid; give every row one, or none"
        else:
            yield f"{_show(token)} must come right after the label"
    elif not colon:
        yield f"the colon of index:value is missing in {_show(token)}"
    else:
        rules = _index_mistake(index, previous, expected), _number_mistake("value", value, expected.rules.largest_value)
        yield from filter(None, rules)


def _index_mistake(token, previous, expected):
    """Return the rule that an index breaks, given the index before it in the row (or -1), or None."""
    rules = expected.rules
    if re.fullmatch(rb"-[0-9]+", token):
        return f"index {_show(token)} is negative"
    if not _DIGITS.fullmatch(token):
        return f"index must be an integer, got {_show(token)}"
    if _exceeds(token, LARGEST_INDEX):
        return f"index {_show(token)} is too large; the largest is {LARGEST_INDEX}"
    index = _whole(token)
    if index < rules.lowest_index:
        return "index 0 in a file that counts from 1; for one that counts from 0 say zero_based=True"
    if index > rules.highest_index:
        start = 0 if rules.first_column == 0 else 1
        return f"index {index} (counted from {start}) does not fit n_features={expected.n_features}"
    if index == previous:
        return f"index {index} stands twice in the row"
    if index < previous:
        return f"indices must increase, got {index} after {previous}"
    return None


def _index_of(token, previous):
    """Return the index that the next one of the row is compared with: that of a token, or if it has none the last."""
    index, colon, _ = token.partition(b":")
    readable = colon and _DIGITS.fullmatch(index) and not _exceeds(index, LARGEST_INDEX)
    return _whole(index) if readable else previous


def _number_mistake(what, token, largest):
    """Return the rule that a label or a value breaks, or None."""
    if _NOT_FINITE.fullmatch(token):
        return f"{what} must be finite, got {_show(token)}"
    if not _NUMBER.fullmatch(token):
        return f"{what} must be a number, got {_show(token)}"
    if abs(float(token)) > largest:
        return f"{what} {_show(token)} is too large for its type"
    return None


def _exceeds(digits, largest):
    """Tell whether digits spell more than `largest`, without asking Python for an integer of any length."""
    return len(digits.lstrip(b"0")) > 19 or _whole(digits) > largest


def _whole(digits):
    """Return the integer that digits spell; Python counts leading zeros when it refuses a long one."""
    return int(digits.lstrip(b"0") or b"0")


def _show(token):
    """Quote a token for a message, cut short if it is long."""
    shown = token[:40].decode("ascii", "backslashreplace")
    return repr(shown + "..." if len(token) > 40 else shown).replace("\\\\", "\\")
