"""`open_blocks`: row-block files as RowBlocks, each block checked when it is read for the first time.

Nothing here needs pyarrow before `open_blocks` is called, so that the package can be imported without it.
"""

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from widemargin._runtime.argument_types import FilePath
from widemargin.data.blocks.extra import require_arrow
from widemargin.data.blocks.row_blocks import Piece, RowBlocks
from widemargin.errors import FormatError


def open_blocks(paths: FilePath | Sequence[FilePath]) -> RowBlocks:
    """Open row-block files, which `write_blocks` or `widemargin convert` made, without reading their rows.

    Parameters
    ----------
    paths : str or path, or a list of them
        Files with the same features; their rows follow one another.

    Returns
    -------
    RowBlocks

    Raises
    ------
    FormatError
        If a file is no row-block file, is damaged, or has other columns than the first.
    OSError
        If a file cannot be read.
    ImportError
        If pyarrow or xxhash is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import LinearSVC, open_blocks, write_blocks
    >>> rng = np.random.default_rng(0)
    >>> parts = (rng.standard_normal((100, 3)) for _ in range(5))
    >>> written = write_blocks("five.arrow", ((X, (X[:, 0] > 0).astype(int)) for X in parts))
    >>> rows = open_blocks("five.arrow")
    >>> rows.shape, LinearSVC(C=100.0).fit(rows).score(rows, rows.labels) > 0.97
    ((500, 3), True)
    """
    require_arrow()
    several = [paths] if isinstance(paths, str | bytes | os.PathLike) else list(paths)
    if not several:
        raise ValueError("open_blocks needs at least one file, got an empty list.")
    from widemargin.data.blocks.arrow_file import ArrowFile

    files = [ArrowFile(os.fsdecode(path)) for path in several]
    for file in files[1:]:
        if file.layout != files[0].layout:
            raise FormatError(
                file.path,
                f"the columns are others than those of {files[0].path}: {file.layout.schema.to_string()} instead of "
                f"{files[0].layout.schema.to_string()}. Convert both with the same options.",
            )
    pieces, start = [], 0
    for file in files:
        for number, n_rows in enumerate(file.rows_of_blocks):
            pieces.append(Piece(file, number, 0, n_rows, start))
            start += n_rows
    return RowBlocks(pieces, _merged([file.summary for file in files]), files[0].layout)


def _merged(summaries):
    """Return the Summary of the rows of several files."""
    if len(summaries) == 1:
        return summaries[0]
    n_rows = sum(one.n_rows for one in summaries)
    weights = [one.n_rows / max(1, n_rows) for one in summaries]
    return replace(
        summaries[0],
        n_rows=n_rows,
        n_stored=sum(one.n_stored for one in summaries),
        squared_lengths=sum(w * one.squared_lengths for w, one in zip(weights, summaries, strict=True)),
        longest_row=max(one.longest_row for one in summaries),
        largest_norm=max(one.largest_norm for one in summaries),
        is_shuffled=False,  # each file is, but the first need not be like the others
        columns=_merged_columns(summaries, weights),
    )


def _merged_columns(summaries, weights):
    if not all(one.columns for one in summaries):
        return {}
    stacked = {name: np.stack([one.columns[name] for one in summaries]) for name in summaries[0].columns}
    weights = np.array(weights)
    mean = weights @ stacked["mean"]
    variance = weights @ (stacked["deviation"] ** 2 + (stacked["mean"] - mean) ** 2)
    return {"mean": mean, "deviation": np.sqrt(variance), "max_abs": stacked["max_abs"].max(axis=0)}
