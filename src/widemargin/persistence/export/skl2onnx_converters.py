"""Converters of our estimators for skl2onnx, which converts pipelines of scikit-learn to ONNX.

The nodes are those of `export_onnx`: a parser declares the outputs of a model, and a converter adds its nodes to the
container of skl2onnx, under names that no other operator has.
"""

import numpy as np

from widemargin.persistence.export.extra import require
from widemargin.persistence.tensors import ESTIMATORS


def register_onnx_converters() -> None:
    """Make skl2onnx convert the estimators of this package, alone or within pipelines and column transformers.

    `export_onnx` does this by itself for a Pipeline of numbers. After this call, `skl2onnx.to_onnx` converts other
    compositions as well, such as a pipeline whose input are strings. Outputs have the names of `export_onnx`.

    Raises
    ------
    ImportError
        If skl2onnx is not installed: it comes with the extra `export`.

    Examples
    --------
    >>> import numpy as np
    >>> from skl2onnx import to_onnx
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from widemargin import SVC, register_onnx_converters
    >>> register_onnx_converters()
    >>> X, y = load_iris(return_X_y=True)
    >>> graph = to_onnx(make_pipeline(StandardScaler(), SVC()).fit(X, y), X[:1])
    >>> [output.name for output in graph.graph.output]
    ['label', 'decision']
    """
    require("skl2onnx", "register_onnx_converters")
    from skl2onnx import update_registered_converter

    for name, estimator in ESTIMATORS.items():
        update_registered_converter(estimator, f"Widemargin{name}", _keep_types, _convert, parser=_parse)


def _dtype_of(inputs):
    """Return the precision of a graph with these inputs."""
    from skl2onnx.common.data_types import DoubleTensorType

    return np.dtype(np.float64 if isinstance(inputs[0].type, DoubleTensorType) else np.float32)


def _parse(scope, model, inputs, custom_parsers=None):
    """Declare the operator of a model and its outputs, which are returned."""
    from skl2onnx.common import data_types

    from widemargin.persistence.export.onnx_outcomes import outputs_of
    from widemargin.persistence.export.scorer import scorer_of

    kinds = {
        np.dtype(np.float32): data_types.FloatTensorType,
        np.dtype(np.float64): data_types.DoubleTensorType,
        np.dtype(np.int64): data_types.Int64TensorType,
        np.dtype(bool): data_types.BooleanTensorType,
        np.dtype(object): data_types.StringTensorType,
    }
    operator = scope.declare_local_operator(f"Widemargin{type(model).__name__}", model)
    operator.inputs = inputs
    for output in outputs_of(scorer_of(model), _dtype_of(inputs)):
        shape = [None] if output.n_columns is None else [None, output.n_columns]
        operator.outputs.append(scope.declare_local_variable(output.name, kinds[output.dtype](shape)))
    return operator.outputs


def _keep_types(operator):
    """Leave the types of outputs as they are: the parser has set them."""


def _convert(scope, operator, container):
    """Add the nodes and constants of a model to the container of skl2onnx."""
    from onnx import helper

    from widemargin.persistence.export.onnx_graph import OPSET, Graph
    from widemargin.persistence.export.onnx_outcomes import add_outputs, outputs_of
    from widemargin.persistence.export.scorer import scorer_of

    dtype, scorer = _dtype_of(operator.inputs), scorer_of(operator.raw_operator)
    graph = Graph(dtype, prefix=f"{scope.get_unique_operator_name('widemargin')}_")
    parts = [graph.cast(variable.onnx_name) for variable in operator.inputs]  # integers become numbers
    X = parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)
    results = add_outputs(graph, scorer, X)
    for output, variable in zip(outputs_of(scorer, dtype), operator.outputs, strict=True):
        name = f"{graph.prefix}{output.name}_node"
        graph.nodes.append(helper.make_node("Identity", [results[output.name]], [variable.onnx_name], name=name))
    container.nodes.extend(graph.nodes)
    container.initializers.extend(graph.constants)
    container.node_domain_version_pair_sets.add(("", OPSET))
