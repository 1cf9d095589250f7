"""A slow reader of SVM-light text, so plain that it is right by inspection: the judge of the compiled one."""

import re

import numpy as np

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Refused(Exception):
    """The text breaks a rule at this line and column, both counted from 1."""

    def __init__(self, line, column):
        super().__init__(f"{line}:{column}")
        self.line, self.column = line, column


def read(data, n_features=None, dtype=np.float64, zero_based="auto"):
    """Return (labels, queries or None, rows of (column, value) pairs, n_features), or raise Refused."""
    rows, first_has_query = [], None
    for number, line in enumerate(split_lines(data.decode("latin-1")), start=1):
        tokens, stray_return = split_tokens(line)
        if tokens:
            if first_has_query is None:
                first_has_query = len(tokens) > 1 and tokens[1][1].startswith("qid:")
            rows.append(read_row(tokens, number, first_has_query, n_features, dtype, zero_based))
        if stray_return is not None:
            raise Refused(number, stray_return)
    if not rows:
        raise Refused(None, None)
    if zero_based == "auto":
        zero_based = any(index == 0 for _, _, entries, _ in rows for index, _, _ in entries)
        if zero_based and n_features is not None:
            for _, _, entries, number in rows:
                for index, _, column in entries:
                    if index >= n_features:
                        raise Refused(number, column)
    first = 0 if zero_based else 1
    if n_features is None:
        n_features = max((index + 1 - first for row in rows for index, _, _ in row[2]), default=0)
    labels = [label for label, _, _, _ in rows]
    queries = [query for _, query, _, _ in rows] if first_has_query else None
    matrix = [[(index - first, value) for index, value, _ in entries] for _, _, entries, _ in rows]
    return labels, queries, matrix, n_features


def split_lines(text):
    """Lines end with a newline; the last may do without."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def split_tokens(line):
    """Return the tokens before a comment with their columns, and where a stray return is in the comment."""
    if line.endswith("\r"):
        line = line[:-1]
    tokens, token, start = [], "", 0
    row = line.split("#", 1)[0]
    for k, character in enumerate(row + " "):
        if character in " \t\r":
            if token:
                tokens.append((start + 1, token))
            if character == "\r":
                tokens.append((k + 1, "\r"))  # no label, no query and no entry: refused wherever it stands
            token = ""
        else:
            start = k if not token else start
            token += character
    stray = line.find("\r", len(row))
    return tokens, stray + 1 if stray >= 0 else None


def read_row(tokens, line, with_query, n_features, dtype, zero_based):
    """Return (label, query, entries of (index, value, column), line)."""
    column, token = tokens[0]
    label = read_number(token, np.float64, line, column)
    query, rest = None, tokens[1:]
    if with_query:
        if not rest:
            raise Refused(line, column)
        column, token = rest.pop(0)
        if not re.fullmatch(r"qid:[+-]?[0-9]+", token) or not -(2**63) < int(token[4:]) < 2**63:
            raise Refused(line, column)
        query = int(token[4:])
    entries, previous = [], -1
    for column, token in rest:
        index, colon, value = token.partition(":")
        if not colon or not re.fullmatch(r"[0-9]+", index):
            raise Refused(line, column)
        index = int(index)
        if index <= previous or index > 2**31 - 2 or (zero_based is False and index == 0):
            raise Refused(line, column)
        if n_features is not None and index > n_features - (zero_based is True):
            raise Refused(line, column)
        entries.append((index, read_number(value, dtype, line, column), column))
        previous = index
    return label, query, entries, line


def read_number(token, dtype, line, column):
    """Return the number nearest to a decimal text, by way of Python's float."""
    if not NUMBER.fullmatch(token):
        raise Refused(line, column)
    with np.errstate(over="ignore"):
        value = dtype(float(token))
    if not np.isfinite(value):
        raise Refused(line, column)
    return value
