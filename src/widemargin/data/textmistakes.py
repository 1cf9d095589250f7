"""What is wrong with a row of SVM-light text, in words.

The compiled parser only says which line it refused. This slow, plain reading of that one line finds the first
token that breaks a rule, in the order of the line, and says which rule.
"""

import re

import numpy as np

LARGEST_INDEX = 2**31 - 2  # so that the number of features, one more if counted from zero, fits 32 bits

_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_DIGITS = re.compile(rb"[0-9]+")
_TOKEN = re.compile(rb"\r|[^ \t\r]+")
_NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_LONE_RETURN = "a carriage return stands alone; lines end with \\n or \\r\\n"


def explain(line, rules, n_features):
    """Find the first mistake of a line.

    Parameters
    ----------
    line : bytes
        The line without its newline.
    rules : Rules
        What the parser was told.
    n_features : int or None
        The bound the caller asked for, if any.

    Returns
    -------
    column : int
        Where the mistake is, in bytes, from 1.
    rule : str
        The rule broken, with the token that breaks it.
    """
    line = line.removesuffix(b"\r")
    row, _, comment = line.partition(b"#")
    tokens = [(match.start() + 1, match.group()) for match in _TOKEN.finditer(row)]
    for column, rule in _mistakes(tokens, rules, n_features):
        if rule is not None:
            return column, rule
    if b"\r" in comment:
        return len(row) + 2 + comment.index(b"\r"), _LONE_RETURN
    return 1, f"the row {_show(line)} cannot be read"


def _mistakes(tokens, rules, n_features):
    """Yield (column, rule broken or None) for each token of a row; to be left at the first rule."""
    previous = None
    for place, (column, token) in enumerate(tokens):
        if token == b"\r":
            yield column, _LONE_RETURN
        elif place == 0:
            yield column, _label_mistake(token)
            if rules.with_queries and len(tokens) == 1:
                yield column, "the row has no qid, but the first row has one; give every row one, or none"
        elif place == 1 and rules.with_queries:
            yield column, _query_mistake(token)
        else:
            yield column, _entry_mistake(token, place, previous, rules, n_features)
            previous = int(token.partition(b":")[0])


def _label_mistake(token):
    """Return the rule that a label breaks, or None."""
    if b":" in token:
        return f"the label is missing: the row starts with {_show(token)}"
    if b"," in token:
        return f"{_show(token)} lists several labels; a row has one"
    return _number_mistake("label", token, np.finfo(np.float64).max)


def _query_mistake(token):
    """Return the rule that the query of a row breaks, or None."""
    if not token.startswith(b"qid:"):
        return f"qid must follow the label, as on the first row, got {_show(token)}"
    number = token[4:]
    if not _INTEGER.fullmatch(number):
        return f"qid must be an integer, got {_show(token)}"
    if _exceeds(number.lstrip(b"+-"), 2**63 - 1):
        return f"qid must fit 64 bits, got {_show(token)}"
    return None


def _entry_mistake(token, place, previous, rules, n_features):
    """Return the rule that an index:value pair breaks, or None."""
    if token.startswith(b"qid:"):
        if place == 1:
            return f"{_show(token)}: the first row has no qid; give every row one, or none"
        return f"{_show(token)} must come right after the label"
    index, colon, value = token.partition(b":")
    if not colon:
        return f"the colon of index:value is missing in {_show(token)}"
    mistake = _index_mistake(index, previous, rules, n_features)
    return mistake or _number_mistake("value", value, rules.largest_value)


def _index_mistake(token, previous, rules, n_features):
    """Return the rule that an index breaks, given the index before it in the row, or None."""
    if re.fullmatch(rb"-[0-9]+", token):
        return f"index {_show(token)} is negative"
    if not _DIGITS.fullmatch(token):
        return f"index must be an integer, got {_show(token)}"
    if _exceeds(token, LARGEST_INDEX):
        return f"index {_show(token)} is too large; the largest is {LARGEST_INDEX}"
    index = int(token)
    if index < rules.lowest_index:
        return "index 0 in a file that counts from 1; for one that counts from 0 say zero_based=True"
    if index > rules.highest_index:
        start = 0 if rules.first_column == 0 else 1
        return f"index {index} (counted from {start}) does not fit n_features={n_features}"
    if previous is not None and index == previous:
        return f"index {index} stands twice in the row"
    if previous is not None and index < previous:
        return f"indices must increase, got {index} after {previous}"
    return None


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
    digits = digits.lstrip(b"0")
    return len(digits) > 19 or int(digits or b"0") > largest


def _show(token):
    """Quote a token for a message, cut short if it is long."""
    shown = token[:40].decode("ascii", "backslashreplace")
    return repr(shown + "..." if len(token) > 40 else shown).replace("\\\\", "\\")
