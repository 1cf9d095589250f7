"""The checks of row-block files: every block is read and compared with its checksum, and the rows are summarised."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from widemargin._runtime import progress
from widemargin._runtime.warning import warn_caller
from widemargin.data.rows import DenseRows
from widemargin.data.summary import Summary, summarise, summarise_labels, summarise_queries
from widemargin.data.svmlight.checker import Mistake
from widemargin.errors import FormatError
from widemargin.workflows.block_files import name_of_files, open_block_files
from widemargin.workflows.errors import FileNote

_MAX_VALUES_SUMMARISED = 20_000_000  # of 16 bytes each, and as much again while they are sorted


class CheckedBlocks(NamedTuple):
    """What was found: damages of the files, the number of rows in damaged blocks, and the Summary of the others."""

    defects: list[Mistake]
    n_rows_refused: int
    summary: Summary | None


def check_blocks(paths, task):
    """Return the CheckedBlocks of files; memory does not grow with them, but for label and query of each row.

    Features and repeated rows are those of the first rows if there are many; a note says so.
    """
    try:
        blocks = open_block_files(paths)
    except FormatError as error:
        return CheckedBlocks([_defect(error)], 0, None)
    most = max(1.0, _MAX_VALUES_SUMMARISED * max(1, blocks.summary.n_rows) / max(1, blocks.summary.n_stored))
    defects, n_refused, n_kept, n_entries, kept, belongings = [], 0, 0, 0, [], []
    with progress.task(f"checking {name_of_files(paths)}", len(blocks), "rows") as checking:
        for k, (start, stop) in enumerate(blocks.ends()):
            try:
                block = blocks.read(k)
            except FormatError as error:
                defects.append(_defect(error))
                n_refused += stop - start
            else:
                belongings.append((np.array(block.label), None if block.qid is None else np.array(block.qid)))
                n_entries += _n_entries(block.rows)
                if n_kept < most:
                    kept.append(block)
                    n_kept += block.n_rows
            checking.advance(stop - start)
    if not kept:
        return CheckedBlocks(defects, n_refused, None)
    y = np.concatenate([label for label, _ in belongings]).astype(np.float64)
    qid = np.concatenate([one for _, one in belongings]) if blocks.layout.has_qid else None
    if n_kept < len(y):
        name = name_of_files(paths)
        warn_caller(f"{name}: features and repeated rows are those of the first {n_kept} of {len(y)} rows", FileNote)
    return CheckedBlocks(defects, n_refused, _summarise(blocks, kept, y, qid, n_entries, task))


def _n_entries(rows):
    """Return how many values the rows of a block have, without the zeros of dense rows."""
    return int(np.count_nonzero(rows.values)) if isinstance(rows, DenseRows) else len(rows.indices)


def _defect(error):
    return Mistake(None, None, error.rule)


def _summarise(blocks, kept, y, qid, n_entries, task):
    """Return the Summary of the first rows, with numbers, labels and queries of all rows."""
    X = blocks.of_blocks(kept).to_memory()
    n_kept, names = X.shape[0], blocks.layout.label_type
    task = "classification" if isinstance(names, tuple) else task
    summary = summarise(X, y[:n_kept], None if qid is None else qid[:n_kept], task=task)
    if n_kept < len(y):
        of_all = {"n_rows": len(y), "n_entries": n_entries, "labels": summarise_labels(y, task)}
        of_all["density"] = n_entries / max(1, len(y) * X.shape[1])
        of_all["queries"] = None if qid is None else summarise_queries(qid, y, np.arange(1, len(y) + 1))
        summary = replace(summary, **of_all)
    if isinstance(names, tuple):
        classes = tuple((names[int(number)], count) for number, count in summary.labels.classes)
        summary = replace(summary, labels=replace(summary.labels, classes=classes))
    return summary
