"""The layout of a row-block file: an Arrow IPC file, one record batch per block of rows.

    column     type                                                    present
    label      int8 .. int64, float32, float64, or dictionary of str   always
    qid        int64                                                   in data for ranking
    weight     float64                                                 if rows have weights
    indices    list<uint16> or list<uint32>                            sparse rows: columns of stored values, ascending
    values     list<uint8>, list<float32> or list<float64>             sparse rows, unless every stored value is one
    features   fixed_size_list<uint8 | float32 | float64>[n_features]  dense rows

Each type is the narrowest that holds the data of the whole file without loss. The schema's metadata has one key,
`widemargin`, with a JSON object: version, rows, features, names of the features, the statistics that solvers want, and
a checksum of all this and of the types of the columns. The metadata of each batch has the number of its block, the byte
where it begins and two checksums (XXH3, 64 bits): of all its columns, and of label, qid and weight alone, which are
read first. Any Arrow implementation reads these files. Files of other writers have neither checksums nor statistics,
and are refused.
"""

import base64
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import xxhash
from scipy.sparse import issparse

from widemargin.data.blocks.row_blocks import Block
from widemargin.data.blocks.row_blocks import to_scipy as to_scipy
from widemargin.data.rows import DenseRows, SparseRows, ones

VERSION = 1
_METADATA_KEY = b"widemargin"
_VALUE_TYPES = (None, np.dtype(np.uint8), np.dtype(np.float32), np.dtype(np.float64))  # None: every value is one
_LABEL_TYPES = tuple(map(np.dtype, (np.int8, np.int16, np.int32, np.int64)))
BELONGINGS = ("label", "qid", "weight")  # columns with what belongs to a row besides its features
COLUMNS_WITH_STATISTICS = 1 << 16  # of wider data, statistics of columns would dwarf the schema


class Chunk(NamedTuple):
    """Consecutive rows on their way into a file: X, an array or CSR, with what belongs to each row."""

    X: Any
    label: np.ndarray
    qid: np.ndarray | None = None
    weight: np.ndarray | None = None

    def part(self, rows):
        """Return the Chunk of some rows, in the order given."""
        return Chunk(self.X[rows], self.label[rows], *(one if one is None else one[rows] for one in self[2:]))


@dataclass(frozen=True, eq=False)
class Layout:
    """Types of the columns of a file.

    `value_type` is None if every stored value is one; `index_type` is None if rows are dense. `label_type` is a NumPy
    type, or a tuple of strings: the classes, in ascending order.
    """

    n_features: int
    index_type: np.dtype | None
    value_type: np.dtype | None
    label_type: np.dtype | tuple[str, ...]
    has_qid: bool = False
    has_weight: bool = False

    def __eq__(self, other):
        """Compare field by field, by name: for NumPy, None is float64."""
        return isinstance(other, Layout) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))

    @property
    def is_sparse(self):
        """Whether rows are stored by their values other than zero."""
        return self.index_type is not None

    @property
    def types(self):
        """The types as words, which a file keeps besides its schema."""
        label = "classes" if isinstance(self.label_type, tuple) else str(self.label_type)
        return [str(self.index_type), str(self.value_type), label, self.has_qid, self.has_weight]

    @property
    def schema(self):
        """The Arrow schema, without metadata."""
        if isinstance(self.label_type, tuple):
            label = pa.dictionary(pa.int32(), pa.string())
        else:
            label = pa.from_numpy_dtype(self.label_type)
        fields = [("label", label)]
        fields += [("qid", pa.int64())] if self.has_qid else []
        fields += [("weight", pa.float64())] if self.has_weight else []
        if not self.is_sparse:
            features = pa.list_(pa.from_numpy_dtype(self.value_type), self.n_features)
            return pa.schema([*fields, ("features", features)])
        fields += [("indices", pa.list_(pa.from_numpy_dtype(self.index_type)))]
        fields += [] if self.value_type is None else [("values", pa.list_(pa.from_numpy_dtype(self.value_type)))]
        return pa.schema(fields)

    @classmethod
    def of_schema(cls, schema):
        """Return the Layout that a file has by its schema.

        Raises
        ------
        ValueError
            If columns are missing or have other types.
        """
        kinds = {one.name: one.type for one in schema}
        label = kinds.get("label")
        if label is None:
            raise ValueError(f"it has no column 'label'; its columns are {', '.join(schema.names)}.")
        label_type = () if pa.types.is_dictionary(label) else np.dtype(label.to_pandas_dtype())  # classes: metadata
        shared = {"label_type": label_type, "has_qid": "qid" in kinds, "has_weight": "weight" in kinds}
        if "features" in kinds and pa.types.is_fixed_size_list(kinds["features"]):
            kind = kinds["features"]
            return cls(kind.list_size, None, np.dtype(kind.value_type.to_pandas_dtype()), **shared)
        if "indices" not in kinds or not pa.types.is_list(kinds["indices"]):
            raise ValueError(
                "it has neither a column 'features' of lists of one length nor a column 'indices' of lists; its "
                f"columns are {', '.join(f'{one.name}: {one.type}' for one in schema)}."
            )
        values = np.dtype(kinds["values"].value_type.to_pandas_dtype()) if "values" in kinds else None
        return cls(0, np.dtype(kinds["indices"].value_type.to_pandas_dtype()), values, **shared)


@dataclass(frozen=True)
class Summary:
    """What is known of all rows of a file before any is read.

    `n_stored` counts stored values, `squared_lengths` is the mean of the squared number of stored values of a row,
    `longest_row` the largest number of them, `largest_norm` the largest squared norm of a row. `columns` has arrays
    `mean`, `deviation` and `max_abs` with a number per column, or is empty if there are too many columns.
    Every block but the last has `rows_per_block` rows. `is_shuffled` says that rows, or whole queries, are in random
    order, so that a part of the file is a random sample.
    """

    n_rows: int
    n_features: int
    n_stored: int
    squared_lengths: float
    longest_row: int
    largest_norm: float
    is_shuffled: bool
    rows_per_block: int
    names: tuple[str, ...] | None = None
    columns: dict[str, np.ndarray] = field(default_factory=dict)

    def to_metadata(self, layout):
        """Return the metadata of the schema."""
        words = {"version": VERSION, **asdict(replace(self, columns={}))}
        if self.n_features <= COLUMNS_WITH_STATISTICS:
            words["columns"] = {name: _encoded(numbers) for name, numbers in self.columns.items()}
        words["classes"] = list(layout.label_type) if isinstance(layout.label_type, tuple) else None
        words["types"] = layout.types
        words["checksum"] = _checksum_of_words(words)
        return {_METADATA_KEY: json.dumps(words).encode()}

    @classmethod
    def of_metadata(cls, metadata, layout):
        """Return (Summary, classes) of a schema's metadata, or (None, None) if another program wrote the file.

        `layout` is that of the schema.

        Raises
        ------
        ValueError
            If a later version of widemargin wrote the file, or the metadata are not those that were written.
        """
        if not metadata or _METADATA_KEY not in metadata:
            return None, None
        words = json.loads(metadata[_METADATA_KEY])
        check = _checksum_of_words({name: word for name, word in words.items() if name != "checksum"})
        version, classes = words.pop("version"), words.pop("classes")
        if version != VERSION:
            raise ValueError(f"it has version {version} of the format; this widemargin reads version {VERSION}.")
        if words.pop("checksum", None) not in (None, check) or words.pop("types", layout.types) != layout.types:
            raise ValueError("its metadata are damaged.")
        words["columns"] = {name: _decoded(text) for name, text in words["columns"].items()}
        words["names"] = words["names"] and tuple(words["names"])
        return cls(**words), classes


def value_type(X):
    """Return the narrowest type for the stored values of X without loss; None if every one is one (sparse X only)."""
    values = X.data if issparse(X) else X
    if issparse(X) and (values == 1).all():
        return None
    if values.dtype == np.uint8:
        return values.dtype
    with np.errstate(invalid="ignore", over="ignore"):
        for narrow in _VALUE_TYPES[1:-1]:
            if ((cast := values.astype(narrow)) == values).all() and not _has_negative_zero(values, cast):
                return narrow
    return _VALUE_TYPES[-1]


def widest(one, other):
    """Return the value type that holds the values of both."""
    return max(one, other, key=lambda kind: 0 if kind is None else kind.itemsize)  # None == float64 for NumPy


def label_type(labels):
    """Return the narrowest type of numeric labels without loss."""
    if not np.issubdtype(labels.dtype, np.integer) and not (labels == np.round(labels)).all():
        return np.dtype(np.float32 if (labels.astype(np.float32) == labels).all() else np.float64)
    low, high = (int(labels.min()), int(labels.max())) if len(labels) else (0, 0)
    for narrow in _LABEL_TYPES:
        limits = np.iinfo(narrow)
        if limits.min <= low and high <= limits.max:
            return narrow
    return np.dtype(np.float64)


def encode(chunk, layout):
    """Return the record batch of a Chunk; labels of classes are given by their numbers."""
    columns = [_encoded_labels(chunk.label, layout)]
    columns += [pa.array(chunk.qid, pa.int64())] if layout.has_qid else []
    columns += [pa.array(chunk.weight, pa.float64())] if layout.has_weight else []
    if layout.is_sparse:
        offsets = pa.array(chunk.X.indptr.astype(np.int32))
        lists = [chunk.X.indices.astype(layout.index_type, copy=False)]
        lists += [] if layout.value_type is None else [chunk.X.data.astype(layout.value_type, copy=False)]
        columns += [pa.ListArray.from_arrays(offsets, pa.array(one)) for one in lists]
    else:
        values = np.ascontiguousarray(chunk.X, dtype=layout.value_type).ravel()
        columns += [pa.FixedSizeListArray.from_arrays(pa.array(values), layout.n_features)]
    return pa.record_batch(columns, schema=layout.schema)


def decode(batch, constant=0.0):
    """Return the Block of a record batch; rows have a constant column if `constant` is not zero."""
    columns = {name: batch.column(name) for name in batch.schema.names}
    if "features" in columns:
        kind = columns["features"].type
        rows = DenseRows(_numbers(columns["features"].flatten()).reshape(-1, kind.list_size), constant)
    else:
        indices = columns["indices"]
        offsets = _numbers(indices.offsets)
        first, last = offsets[0], offsets[-1]
        offsets = (offsets - first if first else offsets).view(np.uint32)
        columns_of_values = _numbers(indices.values)[first:last]
        values = _numbers(columns["values"].values)[first:last] if "values" in columns else ones(last - first)
        rows = SparseRows(values, columns_of_values, offsets, constant)
    return Block(rows, *decode_belongings(batch))


def decode_belongings(batch):
    """Return label, qid and weight of a record batch, None for those that it does not have."""
    columns = {name: batch.column(name) for name in batch.schema.names}
    label = columns["label"]
    columns["label"] = label.indices if pa.types.is_dictionary(label.type) else label
    return tuple(_numbers(columns[name]) if name in columns else None for name in BELONGINGS)


def checksum_of_belongings(batch):
    """Return the checksum of label, qid and weight of a batch, as text."""
    return checksum(batch.select([name for name in batch.schema.names if name in BELONGINGS]))


def checksum(batch):
    """Return the checksum of a batch's columns, as text."""
    total = xxhash.xxh3_64()
    for column in batch.columns:
        for array in _parts(column):
            total.update(np.ascontiguousarray(array))
    return total.hexdigest()


def _parts(column):
    """Return the arrays that a column is made of."""
    if pa.types.is_dictionary(column.type):
        return [_numbers(column.indices)]
    if pa.types.is_list(column.type):
        return [_numbers(column.offsets), _numbers(column.values)]
    return [_numbers(column.flatten() if pa.types.is_fixed_size_list(column.type) else column)]


def _numbers(array):
    return array.to_numpy(zero_copy_only=True)


def _encoded_labels(label, layout):
    if isinstance(layout.label_type, tuple):
        return pa.DictionaryArray.from_arrays(pa.array(label, pa.int32()), pa.array(layout.label_type, pa.string()))
    return pa.array(label.astype(layout.label_type))


def _has_negative_zero(values, cast):
    """Return whether a cast to unsigned integers loses the sign of a zero."""
    return cast.dtype == np.uint8 and bool(np.signbit(values).any())


def _checksum_of_words(words):
    return xxhash.xxh3_64(json.dumps(words).encode()).hexdigest()


def _encoded(numbers):
    return base64.b64encode(np.ascontiguousarray(numbers, dtype="<f8").tobytes()).decode()


def _decoded(text):
    return np.frombuffer(base64.b64decode(text), dtype="<f8")
