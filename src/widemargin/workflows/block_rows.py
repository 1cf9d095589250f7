"""Rows of row-block files for workflows that write some or all of them again, block by block."""

import os
import sys

import numpy as np
from scipy.sparse import csr_array, issparse

from widemargin._runtime import progress
from widemargin._runtime.warning import warn_caller
from widemargin.data.blocks.row_blocks import to_scipy
from widemargin.data.blocks.writer import write_blocks
from widemargin.data.svmlight.blocks import write_svmlight_blocks
from widemargin.workflows.block_files import name_of_files, open_block_files
from widemargin.workflows.errors import FileError, FileNote
from widemargin.workflows.files import naming


class BlockRows:
    """The rows of row-block files: labels and queries, as those of text, and a way to write some of the rows.

    Attributes
    ----------
    labels : ndarray
        Of each row a number; if labels are words, their place among `names`.
    queries : ndarray or None
    names : tuple of str or None
    n_others : int
        Number of lines that are no rows: 0.
    """

    n_others = 0

    def __init__(self, paths, *, as_text):
        self._blocks, self._name, self._as_text = open_block_files(paths), name_of_files(paths), as_text
        words = self._blocks.layout.label_type
        self.names = words if isinstance(words, tuple) else None
        if as_text and self.names is not None:
            raise FileError(f"{self._name}: labels are words, such as {words[0]!r}, which text has no place for")
        if as_text and self._blocks.layout.has_weight:
            warn_caller(f"{self._name} has weights of rows, which text has no place for: they are left out", FileNote)
        labels = self._blocks.labels
        self.labels = labels if self.names is None else _places(labels, self.names)
        self.queries = self._blocks.qid

    def write(self, rows, target):
        """Write rows, given by ascending numbers, to a file or to standard output, "-"."""
        parts = self._parts(rows)
        if self._as_text:
            write_text(((csr_array(X), y, qid) for X, y, qid, _ in parts), target)
        else:
            write_block_file(parts, target, self._blocks)

    def _parts(self, rows):
        """Yield (X, y, qid, weight) of the chosen rows of each block that has some."""
        with progress.task(f"reading {os.path.basename(self._name)}", len(self._blocks), "rows") as reading:
            for k, (start, stop) in enumerate(self._blocks.ends()):
                here = rows[slice(*np.searchsorted(rows, (start, stop)))] - start
                if len(here):
                    X, *belongings = block_arrays(self._blocks, k)
                    yield X[here], *(None if one is None else one[here] for one in belongings)
                reading.advance(stop - start)


class ScalableBlocks:
    """The rows of row-block files with the interface of `SvmlightBlocks`: (X, y, qid) block by block, X sparse.

    Labels that are words are given as their places among `names`. `write` writes scaled rows, with weights and words.
    """

    def __init__(self, paths):
        self._blocks, self.name = open_block_files(paths), name_of_files(paths)
        words = self._blocks.layout.label_type
        self.names = words if isinstance(words, tuple) else None

    def __iter__(self):
        with progress.task(f"reading {os.path.basename(self.name)}", len(self._blocks), "rows") as reading:
            for k in range(self._blocks.n_blocks):
                block = self._blocks.read(k)
                X = csr_array(to_scipy(block.rows, self._blocks.shape[1]), dtype=np.float64)
                yield X, block.label.astype(np.float64), block.qid
                reading.advance(block.n_rows)

    def write(self, parts, target):
        """Write scaled parts (X, y, qid) of all rows, in their order, to a row-block file."""
        write_block_file(self._complete(parts), target, self._blocks)

    def _complete(self, parts):
        """Yield the parts with all columns, labels as they were, and weights."""
        start = 0
        for X, y, qid in parts:
            X.resize(X.shape[0], self._blocks.shape[1])
            stop = start + len(y)
            weight = self._blocks.weight
            labels = y if self.names is None else self._blocks.named(y.astype(np.intp))
            yield X, labels, qid, None if weight is None else weight[start:stop]
            start = stop


def _places(labels, names):
    """Return the place of each label among the names."""
    order = np.argsort(names)
    return order[np.searchsorted(np.array(names)[order], labels)]


def block_arrays(blocks, k):
    """Return X, y, qid and weight of a block; values that are not written, as all are one, are there."""
    block = blocks.read(k)
    return to_scipy(block.rows, blocks.shape[1]), blocks.named(block.label), block.qid, block.weight


def write_block_file(parts, target, like):
    """Write parts (X, y, qid, weight) to a row-block file in their order; X is dense if that of `like` is.

    Names of features are not kept, of which a note tells.
    """
    if like.feature_names is not None:
        warn_caller(f"the names of the features are not written to {target}", FileNote)

    def alike():
        for X, *belongings in parts:
            yield (X.toarray() if issparse(X) and not like.layout.is_sparse else X), *belongings

    with naming(target):
        write_blocks(sys.stdout.buffer if target == "-" else target, alike(), keep_order=True)
    if target == "-":
        sys.stdout.buffer.flush()


def write_text(parts, target):
    """Write parts (X, y, qid) as SVM-light text, with indices that count from 1."""
    if target == "-":
        write_svmlight_blocks(sys.stdout.buffer, parts)
        sys.stdout.buffer.flush()
    else:
        with naming(target):
            write_svmlight_blocks(target, parts)
