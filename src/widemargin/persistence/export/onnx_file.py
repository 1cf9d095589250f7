"""`export_onnx`: a fitted model, or a pipeline that ends with one, as an ONNX file."""

import json
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from widemargin._runtime.argument_types import FilePath
from widemargin._runtime.atomic_file import replacing
from widemargin._runtime.version import __version__
from widemargin.persistence.export.extra import require
from widemargin.persistence.export.scorer import MAX_BYTES, scorer_of
from widemargin.persistence.model_file import plain_model

if TYPE_CHECKING:
    import onnx

INPUT = "X"
_ML_OPSET = 3  # of the operators that skl2onnx uses besides; the one that came with our opset
_DTYPES = {"float32": np.float32, "float64": np.float64}


def export_onnx(
    model: Any, path: FilePath | None = None, *, dtype: Literal["float64", "float32"] = "float64"
) -> "onnx.ModelProto":
    """Write a fitted model as an ONNX graph, which onnxruntime and other servers of models compute without Python.

    The graph takes `X`, a dense matrix of rows in the given type, any number of them, and returns by name

    - `label`: the predicted class of each row, in the type of `classes_`, or 1 and -1 of one-class models;
    - `decision`: what `decision_function` returns, in the same shape;
    - `probabilities`: what `predict_proba` returns, if the model was fitted with probabilities;
    - `prediction`, instead of all these, of regressions and RankSVM: what `predict` returns.

    Parameters
    ----------
    model : any estimator of widemargin, or a Pipeline that ends with one
        A fitted model. For a LinearSVCCV or LinearSVRCV the selected model is exported, and for an estimator of
        `widemargin.dask` the ordinary one. The other steps of a pipeline, such as a StandardScaler, are converted by
        skl2onnx; see also `register_onnx_converters`.
    path : str or path, default=None
        File to write; a file of that name is replaced only when the new one is complete. None writes no file.
    dtype : {"float64", "float32"}, default="float64"
        The type of rows, of results, and of vectors and kernel values; sums over features of linear models, sums over
        vectors and what follows from them are computed in double precision either way. In "float64", results differ
        from those of the model in rounding only. In "float32", kernel values have seven digits, and an error in the
        last of them adds up over vectors: the label of a row may change if its decision value is that close to zero.

    Returns
    -------
    onnx.ModelProto
        The graph, of opset 17. Its metadata say which estimator it is, and the certified `gap_` and names of
        features, if the model has them.

    Raises
    ------
    ImportError
        If onnx, or for a pipeline skl2onnx, is not installed: they come with the extra `export`.
    TypeError
        If the model is not one of these, its kernel is precomputed or a Python function, or its labels are neither
        numbers, booleans nor strings.
    NotFittedError
        If the model has not been fitted.
    ValueError
        If `dtype` is unknown, the model is not valid, or takes more than the 2 GB that a file holds.
    OSError
        If the file cannot be written; an existing file is then unchanged.

    Notes
    -----
    Kernel values of all rows of a call are in memory at the same time: rows times vectors times 8 bytes. NaN and
    infinity, which the model refuses, give results without a meaning.

    Examples
    --------
    >>> import onnxruntime
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC, export_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> graph = export_onnx(SVC().fit(X, y), "iris.onnx")
    >>> session = onnxruntime.InferenceSession("iris.onnx", providers=["CPUExecutionProvider"])
    >>> session.run(["label"], {"X": X[::50]})[0].tolist()
    [0, 1, 2]
    """
    if dtype not in _DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(map(repr, _DTYPES))}, got {dtype!r}.")
    make = _pipeline_graph if isinstance(model, Pipeline) else _model_graph
    made = make(model, np.dtype(_DTYPES[dtype]))
    content = _serialized(made)
    if path is not None:
        with replacing(path) as file:
            file.write(content)
    return made


def _serialized(made):
    """Return the content of a file; ValueError if it exceeds what a file holds."""
    n_bytes = made.ByteSize()
    if not 0 < n_bytes <= MAX_BYTES:
        raise ValueError(
            f"The graph takes {n_bytes / 1e9:.1f} GB, and an ONNX file holds at most 2 GB: use dtype='float32', "
            "compress the model, or fit it with a basis."
        )
    return made.SerializeToString()


def _model_graph(model, dtype):
    """Return the ModelProto of a fitted model."""
    scorer = scorer_of(model)
    require("onnx", "export_onnx")
    from onnx import checker, helper

    from widemargin.persistence.export.onnx_graph import IR_VERSION, OPSET, TYPES, Graph
    from widemargin.persistence.export.onnx_outcomes import add_outputs, outputs_of

    graph, outputs = Graph(dtype), outputs_of(scorer, dtype)
    results = add_outputs(graph, scorer, INPUT)
    for output in outputs:
        graph.identity(results[output.name], output.name)
    shapes = [["n"] if output.n_columns is None else ["n", output.n_columns] for output in outputs]
    made = helper.make_model(
        helper.make_graph(
            graph.nodes,
            scorer.name,
            [helper.make_tensor_value_info(INPUT, TYPES[dtype], ["n", scorer.n_features])],
            [
                helper.make_tensor_value_info(output.name, TYPES[output.dtype], shape)
                for output, shape in zip(outputs, shapes, strict=True)
            ],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="widemargin",
        producer_version=__version__,
    )
    _add_metadata(made, model)
    _serialized(made)
    checker.check_model(made, full_check=True)
    return made


def _pipeline_graph(pipeline, dtype):
    """Return the ModelProto of a fitted pipeline."""
    check_is_fitted(pipeline)
    *steps, (name, model) = pipeline.steps
    scorer_of(model)  # refuses what cannot be exported, before skl2onnx does in its words
    n_features = getattr(pipeline, "n_features_in_", None)
    if n_features is None:
        raise ValueError(
            "The first step of the pipeline does not say how many features it takes: call register_onnx_converters, "
            "and skl2onnx.to_onnx with the types of the inputs."
        )
    require("skl2onnx", "export_onnx of a Pipeline")
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    from widemargin.persistence.export.onnx_graph import OPSET
    from widemargin.persistence.export.skl2onnx_converters import register_onnx_converters

    register_onnx_converters()
    kind = FloatTensorType if dtype == np.float32 else DoubleTensorType
    rows, plain = (INPUT, kind([None, n_features])), Pipeline([*steps, (name, plain_model(model))])
    made = to_onnx(plain, initial_types=[rows], target_opset={"": OPSET, "ai.onnx.ml": _ML_OPSET})
    made.producer_name, made.producer_version = "widemargin", __version__
    _add_metadata(made, model)
    return made


def _add_metadata(made, model):
    """Add what the graph does not say: the estimator, its gap, and the names of its features."""
    from onnx import helper

    facts = {"estimator": type(model).__name__}
    if hasattr(model, "gap_"):
        facts["gap"] = repr(float(model.gap_))
    if hasattr(model, "feature_names_in_"):
        facts["feature_names"] = json.dumps(list(model.feature_names_in_))
    helper.set_model_props(made, facts)
