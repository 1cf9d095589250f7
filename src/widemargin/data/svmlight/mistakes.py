"""Error messages for rows of SVM-light text that the parser refused.

The compiled parser only reports which line it refused. The functions here read that line again in Python, token by
token, and describe the rules that its tokens break.
"""

import re
from typing import NamedTuple

import numpy as np

LARGEST_INDEX = 2**31 - 2  # the number of features, one more if indices count from 0, must be a 32-bit integer

_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_DIGITS = re.compile(rb"[0-9]+")
_TOKEN = re.compile(rb"\r|#[^\r]*|[^ \t\r#]+")
_PLAIN_ENTRY = re.compile(rb"([0-9]{1,9}):-?[0-9]{1,15}(?:\.[0-9]{0,15})?")
_KNOWN_START = re.compile(rb"[0-9]+:|qid:")
_NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_LONE_RETURN = "a carriage return stands alone; lines must end with \\n or \\r\\n"
HEAD_BYTES = 4096  # at the start of a file, from which other formats are recognised
_OTHER_FORMATS = {  # by the first bytes of a file
    b"\x93NUMPY": "a NumPy array",
    b"PK\x03\x04": "a zip archive",
    b"\x89HDF": "HDF5",
    b"PAR1": "Parquet",
    b"ARROW1": "Arrow",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
}
_CONTROL_CHARACTERS = bytes(set(range(32)) - set(b"\t\n\v\f\r"))  # which text does not contain
_MAX_CONTROL_CHARACTERS = 16  # up to so many in HEAD_BYTES are mistakes in a text file
_ROW_FORMAT = "a row is `label index:value index:value ...`"
_CSV_REMEDY = "read it with pandas.read_csv, and write it with widemargin.write_svmlight"


class Expected(NamedTuple):
    """The rules for a line, and what is needed to describe a violation."""

    rules: NamedTuple  # the parser's Rules
    n_features: int | None = None  # the number of features that the caller requires, if any
    queries_set_by: str = "the first row has"  # which rows decide whether queries are required; or "most rows have"


def foreign_format(head, has_rows):
    """Return a message if a file is not SVM-light text but of another format, else None.

    Parameters
    ----------
    head : bytes
        The first `HEAD_BYTES` of the file.
    has_rows : bool
        Whether a row of the file could be parsed.
    """
    for magic, name in _OTHER_FORMATS.items():
        if head.startswith(magic):
            return f"the file is {name}, not text; {_ROW_FORMAT}"
    n_printable = len(head.translate(None, _CONTROL_CHARACTERS))
    if (head and not n_printable) or len(head) - n_printable > max(_MAX_CONTROL_CHARACTERS, len(head) / 16):
        return f"the file is binary, or text in UTF-16, but not plain text; {_ROW_FORMAT}"
    line = next((line for line in head.splitlines() if line.partition(b"#")[0].strip()), b"")
    if not has_rows and b"," in line and b":" not in line:
        return f"the file looks like comma-separated values (CSV); {_ROW_FORMAT}: {_CSV_REMEDY}"
    return None


def explain(line, expected):
    """Find the first mistake in a line that the parser refused.

    Parameters
    ----------
    line : bytes
        The line without its newline.
    expected : Expected
        The rules of the parser.

    Returns
    -------
    column : int
        Position of the mistake in bytes, from 1.
    rule : str
        The rule that is broken, with the token that breaks it.
    """
    return next(mistakes(line, expected))


def mistakes(line, expected):
    """Yield (column, rule) for every mistake in a line that the parser refused, from left to right, at least one.

    After a mistake the rest of the line is read as it was most likely meant: an entry in place of a missing label or
    query is read as an entry, and the text after a lone carriage return as another row, unless an entry follows.
    """
    n_found = 0
    for column, rule in _mistakes(line.removesuffix(b"\r"), expected):
        yield column, rule
        n_found += 1
    if n_found == 0:
        yield 1, f"the row {_show(line)} cannot be read"


def _mistakes(line, expected):
    """Yield (column, rule) token by token; a row is a label, a query if the rules require one, and entries."""
    with_queries = expected.rules.with_queries
    stage, previous, returned = 0, -1, False  # stage 0: a label is next, 1: right after the label, 2: later
    for match in _TOKEN.finditer(line):
        column, token = match.start() + 1, match.group()
        if token == b"\r":
            yield column, _LONE_RETURN
            returned = True
        if token[:1] in (b"\r", b"#"):
            continue
        if returned and b":" not in token:
            stage, previous = 0, -1
        returned = False
        if stage == 0:
            label_column, stage = column, 1
            rule = _label_mistake(token)
            if rule is not None:
                yield column, rule
            if not _KNOWN_START.match(token):
                continue
        if stage == 1 and with_queries:
            stage = 2
            rule = _query_mistake(token, expected.queries_set_by)
            if rule is not None:
                yield column, rule
            if rule is None or not _DIGITS.match(token):
                continue
        index = _plain_index(token, previous, expected.rules)
        if index is None:
            for rule in _entry_mistakes(token, stage, previous, expected):
                yield column, rule
            index = _index_of(token, previous)
        stage, previous = 2, index
    if stage == 1 and with_queries and not returned:
        yield label_column, f"the row has no qid, but {expected.queries_set_by} one; give every row one, or none"


def _plain_index(token, previous, rules):
    """Return the index of a short and valid entry, or None; this is fast, since most entries are of this form."""
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


def _query_mistake(token, queries_set_by):
    """Return the rule that the query of a row breaks, or None."""
    if not token.startswith(b"qid:"):
        return f"qid must follow the label, since {queries_set_by} one, got {_show(token)}"
    number = token[4:]
    if not _INTEGER.fullmatch(number):
        return f"qid must be an integer, got {_show(token)}"
    if _exceeds(number.lstrip(b"+-"), 2**63 - 1):
        return f"qid must fit 64 bits, got {_show(token)}"
    return None


def _entry_mistakes(token, stage, previous, expected):
    """Yield the rules that an index:value pair breaks."""
    index, colon, value = token.partition(b":")
    if index == b"qid" and colon:
        if stage == 1:
            yield f"{_show(token)}: {expected.queries_set_by} no qid; give every row one, or none"
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
        return "index 0 in a file that counts from 1; if its indices count from 0, use zero_based=True"
    if index > rules.highest_index:
        start = 0 if rules.first_column == 0 else 1
        return f"index {index} (counted from {start}) does not fit n_features={expected.n_features}"
    if index == previous:
        return f"index {index} occurs twice in the row"
    if index < previous:
        return f"indices must increase, got {index} after {previous}"
    return None


def _index_of(token, previous):
    """Return the index with which the next one is compared: that of the token, or `previous` if it has none."""
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
    """Return whether digits are a number above `largest`, without converting integers of arbitrary length."""
    return len(digits.lstrip(b"0")) > 19 or _whole(digits) > largest


def _whole(digits):
    """Return the integer of these digits; leading zeros are removed, since Python's limit of digits counts them."""
    return int(digits.lstrip(b"0") or b"0")


def _show(token):
    """Quote a token for a message, shortened if it is long."""
    shown = token[:40].decode("ascii", "backslashreplace")
    return repr(shown + "..." if len(token) > 40 else shown).replace("\\\\", "\\")
