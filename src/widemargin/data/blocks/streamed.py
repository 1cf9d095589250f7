"""`StreamedMatrix`: X in blocks on disk, with the operations that solvers know from `Matrix`.

Every operation is a pass over the blocks. A thread reads ahead, others process the blocks, and sums are taken in the
order of the blocks, so that results do not depend on the number of threads. Memory that is left is used in two ways:
for rows that the next sums will need (`RowStore`), so that those need no pass, and for whole blocks that are then read
only once.

The columns may be scaled, see `column_scaling`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin._runtime.argument_types import Floats
from widemargin._runtime.place import HERE
from widemargin._runtime.progress import task
from widemargin._runtime.threads import run
from widemargin.data.blocks.read_ahead import OrderedSum, ReadAhead
from widemargin.data.blocks.row_blocks import Block, RowBlocks, part_of_block
from widemargin.data.blocks.row_store import RowStore
from widemargin.data.column_scaling import ColumnScaling
from widemargin.data.gram import add_blocks, adder, suits_single
from widemargin.data.matrix import Matrix, add_combination, set_all_scores, set_scores
from widemargin.data.rows import taken
from widemargin.data.tables import add_combinations, panels_of, set_score_table

BLOCKS_IN_FLIGHT = 8  # that are read ahead or processed
_BYTES_OF_A_RECORD = 64  # that coordinate descent has for each row that it keeps
_SHARE_OF_ROW_STORE = 0.8  # of the memory that is left for rows
_LEAST_ROWS_OF_SAMPLE = 1000  # whatever the memory


class StreamedMatrix:
    """X in row-block files, with an optional constant column.

    Parameters
    ----------
    blocks : RowBlocks
    constant : float, default=0
        Value of an additional last column for the intercept; 0 means that there is no such column.
    memory : float
        Bytes for rows in memory; what vectors with a number per row take comes on top.
    scaling : ColumnScaling or None
        How columns are scaled.

    Attributes
    ----------
    bytes_read, seconds_waited, n_passes : numbers
        Bytes read from disk; seconds that threads waited for the disk; passes over all blocks.
    """

    is_in_memory = False
    columns = values_or_none = None
    place, n_parts = HERE, 1
    n_entries, is_small, as_array = Matrix.n_entries, Matrix.is_small, Matrix.as_array  # of rows in memory

    def __init__(
        self, blocks: RowBlocks, constant: float = 0.0, memory: float = 0.0, scaling: ColumnScaling | None = None
    ) -> None:
        self.blocks, self.constant, self.scaling, self._memory = blocks, float(constant), scaling, memory
        self.source, self.most_problems = blocks, 1
        summary = blocks.summary
        self.n_rows, self.n_features = blocks.shape
        self.width = self.n_features
        self.n_columns = self.n_features + (self.constant != 0.0)
        self.is_sparse = blocks.layout.is_sparse
        self.has_only_ones = self.is_sparse and blocks.layout.value_type is None
        self.n_stored = round(summary.n_stored / max(1, summary.n_rows) * self.n_rows)
        self.squared_lengths = float(summary.squared_lengths if self.is_sparse else self.n_features**2)
        self._row_constant = self.constant if scaling is None else 1.0
        self.longest_row = summary.longest_row + (self._row_constant != 0.0)
        self._resident: dict[int, Block] = {}
        n_bytes = blocks.n_bytes
        self._keeps = _evenly_spread(blocks.n_blocks, memory / max(1, n_bytes))
        if len(self._keeps) < blocks.n_blocks:
            self._keeps = _evenly_spread(blocks.n_blocks, (1.0 - _SHARE_OF_ROW_STORE) * memory / max(1, n_bytes))
        self._store = RowStore(self.n_rows, blocks.bytes_per_row, _SHARE_OF_ROW_STORE * memory)
        self.bytes_read, self.seconds_waited, self.n_passes = 0, 0.0, 0.0

    @property
    def is_wide(self) -> bool:
        """Whether there are fewer rows than columns."""
        return self.n_rows < self.n_columns

    @property
    def longest_sum(self) -> int:
        """Largest number of terms added sequentially in an entry of `combine`; rounding errors are bounded by it."""
        longest = max((stop - start for start, stop in self.blocks.ends()), default=0)
        return longest + self.blocks.n_blocks + (0 if self.scaling is None else 2)

    def scores(
        self, w: Floats, n_jobs: int | None = 1, out: Floats | None = None, likely: Callable | None = None
    ) -> Floats:
        """Return X w in float64, one number per row; it is written to `out` if given.

        `likely(start, stop)`, called when the scores of these rows are set, returns the rows among them that sums will
        soon need, as ascending numbers from 0 on: they are kept in memory.
        """
        out = np.empty(self.n_rows) if out is None else out
        weights = self._weights(w)

        def work(k, block, start, stop):
            set_scores(self._rows(block.rows), weights, 0, stop - start, out[start:stop])
            self._keep_likely(k, block, start, stop, likely)

        self._pass(work, range(self.blocks.n_blocks), n_jobs)
        return out

    def scores_of_all(
        self, W: Floats, n_jobs: int | None = 1, out: Floats | None = None, likely: Callable | None = None
    ) -> Floats:
        """Return W X', a row of scores X w for each row w of W, in one pass over X; the rest as in `scores`."""
        out = np.empty((len(W), self.n_rows)) if out is None else out
        weights = np.stack([self._weights(w) for w in W])

        def work(k, block, start, stop):
            set_all_scores(self._rows(block.rows), weights, 0, stop - start, out[:, start:stop])
            self._keep_likely(k, block, start, stop, likely)

        self._pass(work, range(self.blocks.n_blocks), n_jobs)
        return out

    def _keep_likely(self, k, block, start, stop, likely):
        """Keep the rows of a block that sums will soon need."""
        if likely is not None and k not in self._resident:
            self._store.keep(k, block.rows, stop - start, likely(start, stop))

    def combine(self, c: Floats, n_jobs: int | None = 1) -> Floats:
        """Return X'c in float64, one number per column; the same to the last bit for any number of threads."""
        total = self._sum_over(np.ascontiguousarray(c, dtype=np.float64), (self._n_raw,), add_combination, n_jobs)
        return self._scaled_combination(total)

    def score_table(self, W: Floats, n_jobs: int | None = 1, out: Floats | None = None) -> Floats:
        """Return W X', a line of scores for each row of W, in one pass; it is written to `out` if given."""
        out = np.empty((len(W), self.n_rows)) if out is None else out
        panels = panels_of(np.stack([self._weights(w) for w in W]))

        def work(k, block, start, stop):
            part = np.empty((len(W), stop - start))
            set_score_table(self._rows(block.rows), panels, 0, stop - start, part)
            out[:, start:stop] = part

        self._pass(work, range(self.blocks.n_blocks), n_jobs)
        return out

    def combine_table(self, C: Floats, n_jobs: int | None = 1) -> Floats:
        """Return C X in float64, a line for each line of C; the same to the last bit for any number of threads."""

        def add(rows, part, start, stop, total):
            add_combinations(rows, np.ascontiguousarray(part.T), start, stop, total)

        total = self._sum_over(C.T, (len(C), self._n_raw), add, n_jobs)
        return total if self.scaling is None else np.stack([self._scaled_combination(one) for one in total])

    def longest_table_sum(self, n_outputs: int) -> int:
        """Return the largest number of terms added sequentially in an entry of `combine_table`."""
        return self.longest_sum

    def _scaled_combination(self, total):
        """Return X'c from the same sum over rows as they are in the file."""
        return total if self.scaling is None else self.scaling.forward(total, self.constant)

    def scores_and_combination(self, w: Floats, c: Floats, n_jobs: int | None = 1) -> tuple[Floats, Floats]:
        """Return `scores(w)` and `combine(c)`, the same to the last bit, in one pass."""
        out, weights, numbers = np.empty(self.n_rows), self._weights(w), range(self.blocks.n_blocks)
        c, total = np.ascontiguousarray(c, dtype=np.float64), OrderedSum(numbers, np.zeros(self._n_raw))

        def work(k, block, start, stop):
            rows, part = self._rows(block.rows), np.zeros(self._n_raw)
            set_scores(rows, weights, 0, stop - start, out[start:stop])
            add_combination(rows, c[start:stop], 0, stop - start, part)
            total.add(k, part)

        self._pass(work, numbers, n_jobs)
        return out, self._scaled_combination(total.total)

    def gram(self, q: Floats, n_jobs: int | None = 1) -> Floats:
        """Return the lower half of X'diag(q)X; rows with q = 0 are not read."""
        if self.scaling is not None and self.scaling.maps_rows:
            return self._sum_over(q, (self.n_columns, self.n_columns), self._add_mapped_products, n_jobs)
        total = self._sum_over(q, (self._n_raw, self._n_raw), adder(self, np.count_nonzero(q)), n_jobs)
        return total if self.scaling is None else self.scaling.of_gram(total, self.constant)

    def _add_mapped_products(self, rows, q, start, stop, out):
        """Add the products of rows that are mapped first, some at a time; see `add_dense_products`."""
        dtype = np.float32 if suits_single(len(out), rows.values.dtype) else np.float64

        def fill(here, factors, block):
            n_features = len(out) - (self.constant != 0.0)
            self.scaling.features(taken(rows, here).values.astype(dtype, copy=False), block[:, :n_features])
            block[:, n_features:] = self.constant
            block *= factors[:, np.newaxis]

        add_blocks(fill, q, start, stop, dtype, out)

    def squared_norms(self, n_jobs: int | None = 1) -> Floats:
        """Return a bound of the squared norm of each row, the constant column included: the largest of all.

        Rounding errors of scores are proportional to it, too. With a `scaling` it may therefore be much larger than
        `row_squares`.
        """
        largest = self.blocks.summary.largest_norm if self.scaling is None else self.scaling.norm_bound
        return np.broadcast_to(largest + self.constant**2, self.n_rows)

    def row_squares(self, n_jobs: int | None = 1) -> Floats:
        """Return a bound of the squared norm of each row, the constant column included, and of nothing else."""
        if self.scaling is None:
            return self.squared_norms(n_jobs)
        return np.broadcast_to(self.scaling.largest_square + self.constant**2, self.n_rows)

    def spread(self, W: Floats) -> Floats:
        """Return W: no columns are left out."""
        return W

    def kept(self, W: Any) -> Floats:
        """Return W as an array: no columns are left out."""
        return W.toarray() if hasattr(W, "toarray") else W

    @property
    def stores_only_ones(self) -> bool:
        """Whether every stored value is known to be one."""
        return self.has_only_ones

    def sample(self, n_rows: int, seed: Any) -> tuple[NDArray[np.intp], "StreamedMatrix"]:
        """Return a random sample of rows, ascending, and its matrix: the first rows if the file is in random order.

        The rows of a sample from a file in another order are in memory, and no more of them are taken than it holds.
        """
        if self.blocks.summary.is_shuffled:
            part = StreamedMatrix(self.blocks[:n_rows], self.constant, self._memory, self.scaling)
            for k, (start, stop) in enumerate(part.blocks.ends()):  # the last one may be a part of its block
                if k in self._resident:
                    part._resident[k] = part_of_block(self._resident[k], 0, stop - start)
            return np.arange(n_rows), part
        most = self._memory_besides_blocks / max(1.0, self.blocks.bytes_per_row)
        n_rows = int(min(n_rows, max(_LEAST_ROWS_OF_SAMPLE, most)))
        chosen = np.sort(np.random.default_rng(seed).choice(self.n_rows, n_rows, replace=False))
        found: dict[int, Block] = {}

        def work(k, block, start, stop):
            rows = chosen[slice(*np.searchsorted(chosen, (start, stop)))] - start
            found[k] = Block(taken(block.rows, rows), block.label[rows], None, None)

        self._pass(work, range(self.blocks.n_blocks), None)
        blocks = self.blocks.of_blocks([found[k] for k in sorted(found) if found[k].n_rows])
        return chosen, StreamedMatrix(blocks, self.constant, np.inf, self.scaling)

    @property
    def is_centred(self) -> bool:
        """Whether means are taken off the columns, so that scaled rows are dense."""
        return self.scaling is not None and self.scaling.is_centred

    @property
    def most_rows_in_memory(self) -> int:
        """Number of rows that a solver may keep in memory; while they are put together, each is there twice."""
        bytes_per_row = self.blocks.bytes_per_row + _BYTES_OF_A_RECORD
        if self.scaling is not None:  # scaled values are float64
            bytes_per_row += 8.0 * self.n_stored / max(1, self.n_rows)
        return int(min(self.n_rows, self._memory_besides_blocks / (2.0 * bytes_per_row)))

    @property
    def _memory_besides_blocks(self):
        """Bytes that are left for rows when all blocks that are to be kept are in memory."""
        if np.isinf(self._memory):
            return np.inf
        return max(0.0, self._memory - len(self._keeps) * self.blocks.n_bytes / max(1, self.blocks.n_blocks))

    def visit_blocks(self, visit: Callable, interrupt: Any = None) -> None:
        """Call visit(rows, start, stop) for one block after the other, until the event `interrupt` is set."""

        def work(k, block, start, stop):
            rows = block.rows if self.scaling is None else self.scaling.rows(block.rows)
            visit(rows._replace(constant=self.constant), start, stop)

        self._pass(work, range(self.blocks.n_blocks), 1, interrupt=interrupt)

    @property
    def _n_raw(self):
        """Number of columns of the rows as compiled loops see them."""
        return self.n_features + (self._row_constant != 0.0)

    def _rows(self, rows):
        """Return rows with the constant column that loops add."""
        return rows._replace(constant=self._row_constant)

    def _weights(self, w):
        w = np.ascontiguousarray(w, dtype=np.float64)
        return w if self.scaling is None else self.scaling.adjoint(w, self.constant)

    def _sum_over(self, c, shape, add, n_jobs):
        """Return the sum of what `add(rows, c, start, stop, out)` adds for the rows with c ≠ 0 of each block.

        c has a number, or a line of numbers, for each row.
        """
        parts = [c[start:stop] for start, stop in self.blocks.ends()]
        numbers = [k for k, part in enumerate(parts) if part.any()]
        known = {k: self._store.find(k, _nonzero_rows(parts[k])) for k in numbers if k not in self._resident}
        total = OrderedSum(numbers, np.zeros(shape))

        def work(k, block, start, stop):
            part, here = np.zeros(shape), c[start:stop]
            if block is None:
                kept = known[k]
                add(self._rows(kept.rows), here[kept.numbers], 0, len(kept.numbers), part)
            else:
                add(self._rows(block.rows), here, 0, stop - start, part)
                if k not in self._resident:
                    self._store.keep_also(k, block.rows, stop - start, _nonzero_rows(here))
            total.add(k, part)

        self._pass(work, numbers, n_jobs, {k for k, kept in known.items() if kept is not None})
        return total.total

    def _pass(self, work, numbers, n_jobs, in_store=frozenset(), interrupt=None):
        """Call work(k, block, start, stop) for blocks, on several threads; blocks `in_store` are given as None.

        If an event is given as `interrupt`, blocks are passed over when it is set.
        """
        blocks, lengths = self.blocks, []
        to_read = [k for k in numbers if k not in self._resident and k not in in_store]
        is_read = set(to_read)  # a pass in another thread may keep some of them meanwhile, and they arrive all the same

        def one(k):
            if interrupt is not None and interrupt.is_set():
                return
            start, stop = blocks.rows_of(k)
            if k not in is_read:
                work(k, self._resident.get(k), start, stop)
                return
            with ahead.block(k) as block:
                if k in self._keeps:
                    self._resident[k] = block
                work(k, block, start, stop)
            reading.advance(round((stop - start) * blocks.bytes_per_row))
            lengths.append(stop - start)

        n_bytes = round(sum(stop - start for start, stop in map(blocks.rows_of, to_read)) * blocks.bytes_per_row)
        words = f"pass {math.floor(self.n_passes) + 1}, {len(to_read)} blocks"
        with (
            task(words, max(1, n_bytes), "bytes", speed=True) as reading,
            ReadAhead(blocks.read, to_read, BLOCKS_IN_FLIGHT) as ahead,
        ):
            run(one, [(k,) for k in numbers], n_jobs)
        n_rows = sum(lengths)
        self.bytes_read += round(n_rows * blocks.bytes_per_row)
        self.n_passes += n_rows / max(1, self.n_rows)
        self.seconds_waited += ahead.waited


def _nonzero_rows(c):
    """Return the numbers of the rows whose number, or line of numbers, is not zero."""
    return np.flatnonzero(c if c.ndim == 1 else c.any(axis=1))


def _evenly_spread(n, share):
    """Return about share · n of the numbers below n, evenly spread: disk and cores then work at the same time."""
    share = min(1.0, max(0.0, share))
    return {k for k in range(n) if int((k + 1) * share) > int(k * share)}
