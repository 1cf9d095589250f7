"""Values of functions and of kernels as nodes of an ONNX graph.

Kernel values are computed in the precision of the graph, by one matrix product of all rows with all vectors, and summed
in double precision: sums of thousands of terms that cancel would lose three digits more in single precision.

    rbf    exp(2 γ <x − m, v − m> − γ |x − m|² − γ |v − m|²)    m: the mean of the vectors, so that little cancels

No product of matrices is multiplied by a number, which belongs into one of the matrices: onnxruntime would do both at
once with the number in single precision.

The operators SVMClassifier and SVMRegressor of ONNX are not used: their results have single precision, and they have no
place for the probabilities and ties of our models.
"""

from itertools import pairwise

import numpy as np

from widemargin.models.multiclass import pair_indices
from widemargin.persistence.export.scorer import LinearFunction


def add_function(graph, function, X):
    """Add the values of a LinearFunction or KernelFunction at the rows X, (n_rows, n_outputs), in double precision."""
    exact = graph.in_dtype(np.float64)
    if isinstance(function, LinearFunction):
        return exact.add("Add", exact.add("MatMul", graph.to_double(X), function.weights.T), function.intercept)
    values = graph.to_double(_ADDERS[function.kernel.name](graph, function.kernel, function.vectors, X))
    if function.ends is None:
        return exact.add("Add", exact.add("MatMul", values, function.coefficients.T), function.intercept)
    return exact.add("Add", _add_pair_sums(exact, function, values), function.intercept)


def _add_pair_sums(graph, function, values):
    """Add the sums over the vectors of the two classes of each pair, from kernel values: see `models.multiclass`.

    A class without vectors has a sum of zeros, with the first vector.
    """
    n_classes = len(function.ends) - 1
    sums = []
    for begin, end in pairwise(function.ends.tolist()):
        table = function.coefficients[:, begin:end] if begin < end else np.zeros((n_classes - 1, 1))
        begin, end = (begin, end) if begin < end else (0, 1)
        of_class = graph.add("Slice", values, np.array([begin]), np.array([end]), np.array([1]))
        sums.append(graph.add("MatMul", of_class, table.T))
    table = graph.add("Concat", *sums, axis=1)  # column c (n_classes − 1) + k: line k of class c
    first, second = pair_indices(n_classes)
    with_first = graph.add("Gather", table, first * (n_classes - 1) + second - 1, axis=1)
    with_second = graph.add("Gather", table, second * (n_classes - 1) + first, axis=1)
    return graph.add("Add", with_first, with_second)


def _add_rbf(graph, kernel, vectors, X):
    centre = vectors.mean(axis=0)
    vectors = vectors - centre
    centred = graph.add("Sub", X, centre)
    products = graph.add("MatMul", centred, 2.0 * kernel.gamma * vectors.T)
    norms = graph.add("MatMul", graph.add("Mul", centred, centred), np.full((len(centre), 1), kernel.gamma))
    exponents = graph.add("Sub", graph.add("Sub", products, norms), kernel.gamma * np.square(vectors).sum(axis=1))
    return graph.add("Exp", graph.add("Min", exponents, 0.0))


def _add_inner(graph, kernel, vectors, X):
    """Add gamma <x, v> + coef0."""
    return graph.add("Add", graph.add("MatMul", X, kernel.gamma * vectors.T), kernel.coef0)


def _add_poly(graph, kernel, vectors, X):
    """Add (gamma <x, v> + coef0)^degree by repeated squaring: powers of negative numbers need no `Pow`."""
    power, left, result = _add_inner(graph, kernel, vectors, X), kernel.degree, None
    if not left:
        return graph.add("Add", graph.add("Mul", power, 0.0), 1.0)
    while left:
        if left % 2:
            result = power if result is None else graph.add("Mul", result, power)
        left //= 2
        power = graph.add("Mul", power, power) if left else power
    return result


def _add_sigmoid(graph, kernel, vectors, X):
    return graph.add("Tanh", _add_inner(graph, kernel, vectors, X))


_ADDERS = {"rbf": _add_rbf, "poly": _add_poly, "sigmoid": _add_sigmoid}
