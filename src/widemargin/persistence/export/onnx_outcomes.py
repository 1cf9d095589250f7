"""Labels, decision values and probabilities as nodes of an ONNX graph, from the values of a function.

Each function adds the nodes of one kind of outcome (`scorer`), and returns the names of its results by those of the
outputs: "label", "decision", "probabilities", or "prediction". All of this is in double precision, and converted in the
end.
"""

import numpy as np

from widemargin.models.calibration import BIN_PROBABILITIES
from widemargin.models.multiclass import vote_changes
from widemargin.persistence.export.onnx_graph import Output
from widemargin.persistence.export.onnx_probabilities import add_couplings, add_pair_probabilities
from widemargin.persistence.export.onnx_scores import add_function
from widemargin.persistence.export.scorer import Inlier, LargestScore, Number, Ordered, Pairs, SecondIfPositive

_OF_TWO = 2


def outputs_of(scorer, dtype):
    """Return the Outputs of the graph of a Scorer, in order."""
    outcome, dtype = scorer.outcome, np.dtype(dtype)
    if isinstance(outcome, Number):
        return [Output("prediction", dtype, None)]
    n_decisions, n_probabilities = _COLUMNS[type(outcome)](outcome)
    labels = np.dtype(np.int64) if scorer.classes is None else scorer.classes.dtype
    outputs = [Output("label", labels, None), Output("decision", dtype, n_decisions)]
    return [*outputs, Output("probabilities", dtype, n_probabilities)] if n_probabilities else outputs


def _columns_of_classes(outcome):
    n_classes = len(outcome.classes)
    return n_classes if n_classes > _OF_TWO else None, n_classes if getattr(outcome, "logistic", False) else None


def _columns_of_pairs(outcome):
    n_classes = len(outcome.classes)
    n_columns = n_classes if outcome.one_against_rest else n_classes * (n_classes - 1) // 2
    return n_columns if n_classes > _OF_TWO else None, n_classes if outcome.has_probabilities else None


def _columns_of_inliers(outcome):
    return None, None if outcome.marks is None else _OF_TWO


_COLUMNS = {
    SecondIfPositive: _columns_of_classes,
    LargestScore: _columns_of_classes,
    Ordered: _columns_of_classes,
    Pairs: _columns_of_pairs,
    Inlier: _columns_of_inliers,
}


def add_outputs(graph, scorer, X):
    """Add the nodes of a Scorer at the rows X; return the names of values by those of the outputs."""
    exact, values = graph.in_dtype(np.float64), add_function(graph, scorer.function, X)
    found = _ADDERS[type(scorer.outcome)](exact, scorer.outcome, values, graph.to_double(X))
    if graph.dtype == np.float64:
        return found
    return {name: value if name == "label" else graph.cast(value) for name, value in found.items()}


def _labels(graph, classes, numbers):
    """Add the labels of classes by their numbers."""
    return graph.add("Gather", classes, numbers)


def _add_number(graph, outcome, values, X):
    return {"prediction": graph.flat(values)}


def _add_two(graph, outcome, values, X):
    decision = graph.flat(values)
    is_second = graph.cast(graph.add("Greater", decision, 0.0), np.int64)
    found = {"label": _labels(graph, outcome.classes, is_second), "decision": decision}
    if outcome.logistic:
        of_both = graph.add("Concat", graph.add("Neg", values), values, axis=1)
        found["probabilities"] = graph.add("Sigmoid", of_both)
    return found


def _add_largest(graph, outcome, values, X):
    found = {"label": _labels(graph, outcome.classes, graph.largest(values)), "decision": values}
    if outcome.logistic:  # logarithms first, min(f, 0) − log(1 + exp(−|f|)), which do not underflow
        tail = graph.add("Exp", graph.add("Neg", graph.add("Abs", values)))
        logs = graph.add("Sub", graph.add("Min", values, 0.0), graph.add("Log", graph.add("Add", tail, 1.0)))
        found["probabilities"] = graph.add("Softmax", logs, axis=1)
    return found


def _add_ordered(graph, outcome, values, X):
    rank = graph.count(graph.add("Greater", values, outcome.thresholds), len(outcome.thresholds))
    found = {"label": _labels(graph, outcome.classes, rank)}
    if len(outcome.classes) == _OF_TWO:
        return found | {"decision": graph.flat(graph.add("Sub", values, outcome.thresholds))}
    lower, upper = np.append(-np.inf, outcome.thresholds), np.append(outcome.thresholds, np.inf)
    above, below = graph.add("Sub", values, lower), graph.add("Sub", upper, values)
    return found | {"decision": graph.add("Min", above, below)}


def _add_pairs(graph, outcome, values, X):
    n_classes, found = len(outcome.classes), {}
    if outcome.has_probabilities:
        of_first = add_pair_probabilities(graph, outcome, values)
        found["probabilities"] = add_couplings(graph, of_first, outcome.order)
    if n_classes == _OF_TWO:
        decision = graph.add("Neg", graph.flat(values))
    else:
        decision = _against_rest(graph, values, n_classes) if outcome.one_against_rest else values
    if outcome.by_probability:
        number = graph.largest(found["probabilities"])
    elif outcome.break_ties and n_classes > _OF_TWO:
        number = graph.largest(decision)
    else:
        votes = _votes(graph, graph.add("Greater", values, 0.0), n_classes)
        in_order = graph.add("Gather", votes, outcome.order, axis=1)
        number = graph.add("Gather", outcome.order, graph.largest(in_order))
    return {"label": _labels(graph, outcome.classes, number), "decision": decision, **found}


def _votes(graph, for_first, n_classes):
    """Add the number of votes of each class; `for_first` says whether a pair votes for its first class."""
    changes, votes_as_second = vote_changes(n_classes)
    return graph.add("Add", graph.add("MatMul", graph.cast(for_first), changes), votes_as_second.astype(np.float64))


def _against_rest(graph, values, n_classes):
    """Add a score of each class: its votes plus c / (3 (|c| + 1)), see `models.multiclass.one_against_rest`."""
    confidence = graph.add("MatMul", values, vote_changes(n_classes)[0])
    size = graph.add("Mul", graph.add("Add", graph.add("Abs", confidence), 1.0), 3.0)
    votes = _votes(graph, graph.add("GreaterOrEqual", values, 0.0), n_classes)
    return graph.add("Add", votes, graph.add("Div", confidence, size))


def _add_inlier(graph, outcome, values, X):
    rounding = outcome.rounding
    if outcome.terms is not None:
        norms = graph.add("Sqrt", graph.sum(graph.add("Mul", X, X), outcome.n_features))
        terms = graph.add("Mul", add_function(graph, outcome.terms, norms), outcome.rounding_of_terms)
        rounding = graph.add("Add", terms, rounding)
    is_zero = graph.add("LessOrEqual", graph.add("Abs", values), rounding)
    rounded = graph.add("Where", is_zero, 0.0, values)
    decision = graph.flat(rounded)
    is_inlier = graph.cast(graph.add("GreaterOrEqual", decision, 0.0), np.int64)
    found = {"label": graph.add("Gather", np.array([-1, 1]), is_inlier), "decision": decision}
    if outcome.marks is not None:
        bins = graph.count(graph.add("GreaterOrEqual", rounded, outcome.marks), len(outcome.marks))
        both = np.column_stack([BIN_PROBABILITIES, 1.0 - BIN_PROBABILITIES])
        found["probabilities"] = graph.add("Gather", both, bins)
    return found


_ADDERS = {
    Number: _add_number,
    SecondIfPositive: _add_two,
    LargestScore: _add_largest,
    Ordered: _add_ordered,
    Pairs: _add_pairs,
    Inlier: _add_inlier,
}
