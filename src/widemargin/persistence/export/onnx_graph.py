"""A graph of ONNX operators that grows node by node.

Operators are those of opset 17 whose definition is the same in all later ones, so that the nodes also fit into the
graphs of skl2onnx. An operator that takes numbers in both precisions takes those of the graph.
"""

from typing import NamedTuple

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8  # of the file: the one that came with the opset
TYPES = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(bool): TensorProto.BOOL,
    np.dtype(object): TensorProto.STRING,
}
_LAST_AXIS = np.array([-1])


class Output(NamedTuple):
    """An output of a graph: its name, the numpy dtype of its values (object for strings), and its number of columns.

    There are no columns, `n_columns` None, if there is one value for each row.
    """

    name: str
    dtype: np.dtype
    n_columns: int | None


class Graph:
    """Nodes and constants; every method returns the name of the value that it has added.

    Parameters
    ----------
    dtype : numpy dtype
        float32 or float64, of rows, and of constants that are not integers, booleans or strings.
    prefix : str
        The beginning of all names.
    """

    def __init__(self, dtype, prefix=""):
        self.dtype, self.prefix = np.dtype(dtype), prefix
        self.nodes, self.constants, self._count = [], [], [0]

    def in_dtype(self, dtype):
        """Return the same graph for constants of another type."""
        return self._sharing(dtype, self.nodes)

    def body(self):
        """Return the graph of the body of a loop, which refers to values of this graph, and has its constants there."""
        return self._sharing(self.dtype, [])

    def _sharing(self, dtype, nodes):
        graph = Graph(dtype, self.prefix)
        graph.nodes, graph.constants, graph._count = nodes, self.constants, self._count
        return graph

    def name(self, word):
        """Return a name that no value has yet."""
        self._count[0] += 1
        return f"{self.prefix}{word}_{self._count[0]}"

    def constant(self, values):
        """Add a constant: numbers in the type of the graph, integers as int64, booleans and strings."""
        values = np.asarray(values)
        kind = values.dtype.kind
        values = values.astype(self.dtype if kind == "f" else np.int64 if kind in "iu" else values.dtype)
        name = self.name("constant")
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values).reshape(values.shape), name))
        return name

    def add(self, operator, *inputs, **attributes):
        """Add a node. Inputs are names of values, or numbers and arrays, which become constants."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        output = self.name(operator.lower())
        self.nodes.append(helper.make_node(operator, names, [output], name=f"{output}_node", **attributes))
        return output

    def cast(self, value, dtype=None):
        """Add a conversion to another type, that of the graph by default."""
        return self.add("Cast", value, to=TYPES[np.dtype(self.dtype if dtype is None else dtype)])

    def to_double(self, value):
        """Add a conversion of a value in the type of the graph to double precision, unless it is that already."""
        return value if self.dtype == np.float64 else self.cast(value, np.float64)

    def sum(self, values, length):
        """Add the sum over the last axis, which has this length and is kept with length one.

        It is a product, as sums of no rows (`ReduceSum` of onnxruntime 1.31) have the wrong shape.
        """
        return self.add("MatMul", values, np.ones((length, 1)))

    def count(self, booleans, length):
        """Add the number of true values along the last axis, which has this length and is removed, as int64."""
        return self.cast(self.add("Squeeze", self.sum(self.cast(booleans), length), _LAST_AXIS), np.int64)

    def column(self, values, k):
        """Add column k of values (n_rows, n_columns), as (n_rows, 1)."""
        return self.add("Gather", values, np.array([k]), axis=1)

    def flat(self, values):
        """Add values (n_rows, 1) as (n_rows,)."""
        return self.add("Reshape", values, _LAST_AXIS)

    def largest(self, values):
        """Add the number of the largest column, (n_rows,); the first of several."""
        return self.add("ArgMax", values, axis=1, keepdims=0)

    def identity(self, value, name):
        """Give a value another name."""
        self.nodes.append(helper.make_node("Identity", [value], [name], name=f"{self.prefix}{name}_node"))
        return name
