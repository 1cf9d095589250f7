"""Tables as sources of rows: Parquet, CSV, Feather and Arrow files, data frames, and anything that Arrow scans.

A numeric column is a feature. A column of strings, or of categories, becomes a feature for each of its values, which
is 1 in the rows with this value ("colour=red"); such tables give sparse rows, others dense ones. The values are
collected by a first pass over these columns only.
"""

import os

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from scipy.sparse import csr_array

from widemargin._runtime.progress import task
from widemargin.data.blocks.extra import OptionError
from widemargin.data.blocks.incoming import checked_labels, checked_matrix, checked_queries, checked_weights, received
from widemargin.data.blocks.layout import Chunk
from widemargin.errors import FormatError

FORMATS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".feather": "feather", ".arrow": "ipc", ".ipc": "ipc",
}  # fmt: skip
"""Formats of tables, by the suffix of a file."""

_ROWS_PER_BATCH = 1 << 15
_BATCHES_AHEAD = 2  # that are read before they are asked for


def as_dataset(source):
    """Return a data frame, a table or the path of a file or folder as a dataset of Arrow; None if it is none of these.

    Raises
    ------
    FormatError
        If a file cannot be read.
    """
    if isinstance(source, ds.Dataset):
        return source
    if isinstance(source, pa.Table | pa.RecordBatch):
        return ds.dataset(pa.table(source) if isinstance(source, pa.Table) else pa.Table.from_batches([source]))
    module = type(source).__module__.partition(".")[0]
    if module == "pandas" and hasattr(source, "iloc"):
        return ds.dataset(pa.Table.from_pandas(source, preserve_index=False))
    if module == "polars" and hasattr(source, "to_arrow"):
        return ds.dataset(source.to_arrow())
    if not isinstance(source, str | bytes | os.PathLike):
        return None
    path = os.fsdecode(source)
    if os.path.isdir(path):
        return _opened(path, "parquet")
    suffix = os.path.splitext(path.removesuffix(".gz"))[1].lower()
    return _opened(path, FORMATS[suffix]) if suffix in FORMATS else None


def _opened(path, form):
    try:
        return ds.dataset(path, format=form)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise FormatError(path, f"cannot be read as {form} ({error})") from error


class TableSource:
    """The rows of a table.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        The table.
    label, qid, weight : str or None
        Names of the columns with labels, queries and weights.
    columns : sequence of str or None
        Names of the columns that are features; None takes all others.
    name : str
        Name of the table in messages.
    """

    may_be_dense = True

    def __init__(self, dataset, label, *, qid=None, weight=None, columns=None, name="source"):
        self._dataset, self.name = dataset, name
        self._belongings = {"label": label, "qid": qid, "weight": weight}
        self._fields = self._choose(columns)
        self._categories = self._collect_categories()
        self._starts, self.names, used = {}, [], 0
        for field in self._fields:
            self._starts[field.name] = used
            categories = self._categories.get(field.name)
            self.names += [field.name] if categories is None else [f"{field.name}={one}" for one in categories]
            used = len(self.names)
        self.n_features = used

    def _choose(self, columns):
        """Return the fields of the features."""
        schema, given = self._dataset.schema, [one for one in self._belongings.values() if one is not None]
        known = ", ".join(schema.names)
        if self._belongings["label"] is None:
            raise OptionError(f"label must name the column with the labels of a table; its columns are {known}.")
        for name in [*given, *(columns or [])]:
            if schema.get_field_index(name) < 0:
                raise OptionError(f"{self.name} has no column {name!r}, or several; its columns are {known}.")
        if len(set(given)) < len(given):
            raise OptionError(f"label, qid and weight must be different columns, got {', '.join(given)}.")
        if columns is not None and set(columns) & set(given):
            raise OptionError(f"columns must not contain those of label, qid and weight, got {', '.join(columns)}.")
        names = [name for name in schema.names if name not in given] if columns is None else list(columns)
        fields = [schema.field(name) for name in names]
        for field in fields:
            if not (_is_categorical(field.type) or _is_numeric(field.type)):
                raise ValueError(
                    f"column {field.name!r} of {self.name} has the type {field.type}; features must be numbers, "
                    "strings or categories. Convert it, or leave it out by naming the columns."
                )
        if not fields:
            raise ValueError(f"{self.name} has no column for features beside {', '.join(given)}.")
        return fields

    def _collect_categories(self):
        """Return the values of each categorical column, in ascending order."""
        names = [field.name for field in self._fields if _is_categorical(field.type)]
        found = {name: set() for name in names}
        if names:
            for batch in self._scan(names):
                for name in names:
                    found[name].update(pc.unique(_decoded(batch.column(name))).to_pylist())
        return {name: pa.array(sorted(values - {None}), pa.string()) for name, values in found.items()}

    def _scan(self, names):
        options = {"batch_size": _ROWS_PER_BATCH, "batch_readahead": _BATCHES_AHEAD, "fragment_readahead": 1}
        try:
            yield from self._dataset.to_batches(columns=names, **options)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise FormatError(self.name, f"cannot be read ({error})") from error

    def parts(self):
        """Yield (record batch, number of rows before it)."""
        names = [field.name for field in self._fields] + [one for one in self._belongings.values() if one is not None]
        n_before = 0
        with task(f"reading {os.path.basename(self.name)}", self._dataset.count_rows(), "rows") as reading:
            for batch in self._scan(names):
                yield batch, n_before
                n_before += batch.num_rows
                reading.advance(batch.num_rows)

    def receive(self, batch, n_before, slot):
        """Return the rows of a record batch."""
        X = self._sparse(batch, n_before) if self._categories else self._dense(batch, n_before)
        checks = {"label": checked_labels, "qid": checked_queries, "weight": checked_weights}
        belongings = []
        for what, name in self._belongings.items():
            array = None
            if name is not None:
                column = batch.column(name)
                _refuse_missing(column, name, n_before)
                array = checks[what](_to_numpy(column), n_before)
            belongings.append(array)
        return received(Chunk(checked_matrix(X), *belongings), n_before, self.names)

    def _dense(self, batch, n_before):
        columns = [_numbers(batch.column(field.name), field.name, n_before) for field in self._fields]
        return np.stack(columns, axis=1, dtype=np.result_type(*columns)) if len(columns) > 1 else columns[0][:, None]

    def _sparse(self, batch, n_before):
        """Return the rows as CSR: values of numeric columns other than zero, and a one for each category."""
        rows, columns, values = [], [], []
        for field in self._fields:
            column, start = batch.column(field.name), self._starts[field.name]
            if field.name in self._categories:
                _refuse_missing(column, field.name, n_before)
                categories = pc.index_in(_decoded(column), value_set=self._categories[field.name])
                rows.append(np.arange(batch.num_rows, dtype=np.int32))
                columns.append(categories.to_numpy(zero_copy_only=False) + np.int32(start))
                values.append(np.ones(batch.num_rows))
            else:
                numbers = _numbers(column, field.name, n_before)
                stored = np.flatnonzero(numbers).astype(np.int32)
                rows.append(stored)
                columns.append(np.full(len(stored), start, np.int32))
                values.append(numbers[stored].astype(np.float64))
        places = np.concatenate(rows), np.concatenate(columns)
        return csr_array((np.concatenate(values), places), shape=(batch.num_rows, self.n_features))


def _is_categorical(kind):
    return (
        pa.types.is_dictionary(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
    )


def _is_numeric(kind):
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def _decoded(column):
    """Return a column of categories as strings."""
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return column.cast(pa.string())


def _refuse_missing(column, name, n_before):
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise ValueError(f"row {n_before + row}, column {name!r} is missing; fill it in, or leave the row out.")


def _numbers(column, name, n_before):
    """Return a numeric column as an array."""
    _refuse_missing(column, name, n_before)
    return checked_matrix(column.to_numpy(zero_copy_only=False)[:, None])[:, 0]


def _to_numpy(column):
    """Return a column of labels, queries or weights as an array, strings as objects."""
    if _is_categorical(column.type):
        return np.array(_decoded(column).to_pylist(), dtype=object)
    return column.to_numpy(zero_copy_only=False)
