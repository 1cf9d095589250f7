"""The results file of a grid search: JSON lines, a header and then a score for each point and fold."""

import json

import numpy as np

from widemargin.errors import FormatError
from widemargin.tools.gridresult import GridResult


def read_grid(path):
    """Return the GridResult of a results file, of the points whose folds are all done.

    Raises
    ------
    FormatError
        If it is not such a file.
    """
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    entries = [_parsed(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not entries or entries[0].get("widemargin_grid") != 1:
        raise FormatError(path, "not the results of a grid search: the first line must have widemargin_grid 1.", 1)
    header, names = entries[0], tuple(entries[0]["names"])
    done = {}
    for entry in entries[1:]:
        folds = done.setdefault(tuple(entry["point"][name] for name in names), {})
        folds[entry["fold"]] = entry["score"], entry["seconds"]
    whole = {values: folds for values, folds in done.items() if len(folds) == header["n_folds"]}
    table = np.array([[folds[k] for k in sorted(folds)] for folds in whole.values()])
    table = table.reshape(len(whole), header["n_folds"], 2)
    points = tuple(dict(zip(names, values, strict=True)) for values in whole)
    return GridResult(names, points, table[:, :, 0], header["scoring"], table[:, :, 1].sum(axis=1))


def _parsed(path, number, line):
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise FormatError(path, f"not JSON: {error}.", number) from error
    if not isinstance(entry, dict):
        raise FormatError(path, "each line must be a JSON object.", number)
    return entry
