"""Probabilities of kernel classifiers as nodes of an ONNX graph, as `models.calibration` computes them.

The coupling of more than two classes is the same iteration, a `Loop` in which rows that have converged stay.
"""

from functools import partial

import numpy as np
from onnx import TensorProto, helper

from widemargin.models.calibration import COUPLING_TOL, MAX_COUPLING_SWEEPS, MIN_PAIRWISE_PROBABILITY
from widemargin.models.multiclass import pair_indices

_SECOND_AXIS, _LAST_AXIS = np.array([1]), np.array([-1])


def add_pair_probabilities(graph, outcome, decisions):
    """Add the probabilities of the first class of each pair, (n_rows, n_pairs), from its decision values."""
    if outcome.sigmoids is not None:
        A, B = outcome.sigmoids
        return graph.add("Sigmoid", graph.add("Neg", graph.add("Add", graph.add("Mul", decisions, A), B)))
    return _add_isotonic(graph, outcome.curves, decisions)


def _add_isotonic(graph, curves, decisions):
    """Add the values of isotonic functions, linear between points, from p_j + slope_j (f − x_j) right of point j."""
    n_points = max(map(len, curves))
    x = np.full((len(curves), n_points), np.inf)
    tables = np.zeros((3, len(curves), n_points))  # x_j, p_j and slopes; the last slope of a curve is 0
    for k, curve in enumerate(curves):
        x[k, : len(curve)] = curve[:, 0]
        tables[:2, k, : len(curve)] = curve.T
        with np.errstate(over="ignore"):
            slopes = np.diff(curve[:, 1]) / np.diff(curve[:, 0])
        tables[2, k, : len(curve) - 1] = np.where(np.isfinite(slopes), slopes, 0.0)
    reached = graph.add("GreaterOrEqual", graph.add("Unsqueeze", decisions, _LAST_AXIS), x)
    point = graph.add("Max", graph.add("Sub", graph.count(reached, n_points), np.array([1])), np.array([0]))
    point = graph.add("Add", point, n_points * np.arange(len(curves)))
    begin, low, slope = (graph.add("Gather", table.ravel(), point) for table in tables)
    beyond = graph.add("Max", graph.add("Sub", decisions, begin), 0.0)
    return graph.add("Add", low, graph.add("Mul", slope, beyond))


def add_couplings(graph, of_first, order):
    """Add the probabilities of classes, (n_rows, n_classes), from those of the first classes of pairs.

    Classes are coupled in the given order, as the iteration stops before their order makes no difference.
    """
    n_classes = len(order)
    rest = graph.add("Sub", 1.0, of_first)
    first, second = pair_indices(n_classes)
    place = np.zeros((n_classes, n_classes), dtype=np.int64)  # of r_ij among the columns of [r_ij of pairs, r_ji]
    place[first, second], place[second, first] = np.arange(len(first)), len(first) + np.arange(len(first))
    place = place[np.ix_(order, order)]
    one_way = graph.add("Gather", graph.add("Concat", of_first, rest, axis=1), place[pair_indices(n_classes)], axis=1)
    # Clipped before the other way is subtracted from 1, in the order of the classes.
    one_way = graph.add("Max", graph.add("Min", one_way, 1.0 - MIN_PAIRWISE_PROBABILITY), MIN_PAIRWISE_PROBABILITY)
    other_way = graph.add("Sub", 1.0, one_way)
    if n_classes == 2:
        p = graph.add("Concat", one_way, other_way, axis=1)
    else:
        p = _add_coupling_loop(graph, *_add_quadratic(graph, one_way, other_way, n_classes), n_classes)
        p = graph.add("Div", p, graph.sum(p, n_classes))
    return graph.add("Gather", p, np.argsort(order), axis=1)


def _add_quadratic(graph, one_way, other_way, n_classes):
    """Add Q (n_rows, n_classes, n_classes) of the objective ½ p'Qp, and the starting point p = 1 / n_classes."""
    first, second = pair_indices(n_classes)
    pairs = np.arange(len(first))
    beside = graph.add("Neg", graph.add("Mul", one_way, other_way))  # Q_ij = −r_ij r_ji
    is_of_class = np.zeros((2, len(first), n_classes))
    is_of_class[0, pairs, second] = is_of_class[1, pairs, first] = 1.0
    squares = [graph.add("Mul", way, way) for way in (one_way, other_way)]
    diagonal = graph.add("Add", *map(partial(graph.add, "MatMul"), squares, is_of_class))  # Q_tt = Σ_j r_jt²
    place = np.zeros((n_classes, n_classes), dtype=np.int64)
    place[first, second] = place[second, first] = pairs
    place[np.diag_indices(n_classes)] = len(first) + np.arange(n_classes)
    entries = graph.add("Gather", graph.add("Concat", beside, diagonal, axis=1), place.ravel(), axis=1)
    Q = graph.add("Reshape", entries, np.array([-1, n_classes, n_classes]))
    return Q, graph.add("Add", graph.add("Mul", diagonal, 0.0), 1.0 / n_classes)


def _add_coupling_loop(graph, Q, start, n_classes):
    """Add the result of the sweeps of `couple`, p (n_rows, n_classes), which for each row stop at the tolerance."""
    body = graph.body()
    number, go_on, p = (body.name(word) for word in ("sweep", "go_on", "p"))
    Qp = body.add("Squeeze", body.add("MatMul", Q, body.add("Unsqueeze", p, _LAST_AXIS)), _LAST_AXIS)
    pQp = body.sum(body.add("Mul", p, Qp), n_classes)
    too_far = body.add("GreaterOrEqual", body.add("Abs", body.add("Sub", Qp, pQp)), COUPLING_TOL / n_classes)
    is_active = body.add("Greater", body.sum(body.cast(too_far), n_classes), 0.0)
    swept = p
    for t in range(n_classes):
        swept, Qp, pQp = _add_coupling_step(body, Q, (swept, Qp, pQp), np.arange(n_classes) == t)
    found = body.add("Where", is_active, swept, p)
    n_active = body.add("ReduceSum", body.cast(is_active), keepdims=0)
    still = body.add("Greater", n_active, 0.0)
    inside = helper.make_graph(
        body.nodes,
        body.name("coupling"),
        [
            helper.make_tensor_value_info(number, TensorProto.INT64, []),
            helper.make_tensor_value_info(go_on, TensorProto.BOOL, []),
            helper.make_tensor_value_info(p, TensorProto.DOUBLE, [None, n_classes]),
        ],
        [
            helper.make_tensor_value_info(still, TensorProto.BOOL, []),
            helper.make_tensor_value_info(found, TensorProto.DOUBLE, [None, n_classes]),
        ],
    )
    return graph.add("Loop", np.array(max(MAX_COUPLING_SWEEPS, n_classes)), np.array(True), start, body=inside)


def _add_coupling_step(body, Q, point, is_class):
    """Add the update of the probability of one class; return p, Q p and p'Q p, whose invariants it keeps."""
    (p, Qp, pQp), t = point, int(np.argmax(is_class))
    line = body.add("Squeeze", body.add("Gather", Q, np.array([t]), axis=1), _SECOND_AXIS)  # Q is symmetric
    curvature, slope = body.column(line, t), body.column(Qp, t)
    step = body.add("Div", body.add("Sub", pQp, slope), curvature)
    total = body.add("Add", step, 1.0)
    change = body.add("Mul", step, body.add("Add", body.add("Mul", step, curvature), body.add("Mul", slope, 2.0)))
    pQp = body.add("Div", body.add("Add", pQp, change), body.add("Mul", total, total))
    Qp = body.add("Div", body.add("Add", Qp, body.add("Mul", step, line)), total)
    p = body.add("Div", body.add("Add", p, body.add("Mul", step, is_class.astype(np.float64))), total)
    return p, Qp, pQp
