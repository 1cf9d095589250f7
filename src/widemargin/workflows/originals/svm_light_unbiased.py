"""`svm_learn -b 0` with a kernel: a machine without an intercept.

On the basis of all rows, the kernel machine is a linear machine in the features z(x) of `kernels.basis`, and linear
machines need no intercept. Dual coordinate descent has w = Σ_i β_i z(x_i), so that f(x) = Σ_i β_i K(x_i, x).
"""

import numpy as np
from scipy.sparse import csr_array

from widemargin.data.products import squared_norms
from widemargin.kernels.basis import Basis
from widemargin.kernels.values import KernelValues
from widemargin.models.kernel.svc import SVC
from widemargin.models.kernel.svr import SVR
from widemargin.persistence.svmlight_kernel import restore
from widemargin.workflows.errors import FileError
from widemargin.workflows.originals.svm_light_facts import kernel_of

_MOST_ROWS_OF_BASIS = 20_000  # whose kernel matrix and its factor take 6.4 GB


def basis_of(X, what):
    """Return all rows as points of a basis; a FileError if they are too many, which says what they are for."""
    if X.shape[0] > _MOST_ROWS_OF_BASIS:
        raise FileError(
            f"{what} needs the kernel matrix of all rows, up to {_MOST_ROWS_OF_BASIS:,}, and there are {X.shape[0]:,}"
        )
    return csr_array(X)


def is_unbiased_kernel(settings):
    """Return whether the machine has a kernel other than the linear one, and no intercept."""
    return not settings.intercept and settings.kernel != "linear"


def features_of(settings, X):
    """Return the rows that a machine is fitted to: X, or the features of a kernel machine without an intercept."""
    if not is_unbiased_kernel(settings):
        return X
    kernel = kernel_of(settings)
    basis = Basis.of(kernel, basis_of(X, "-b 0 with a kernel"))
    if not len(basis):
        raise ValueError("no row has a function other than zero: K(x, x) is zero or negative for all of them.")
    values = KernelValues(kernel, basis.vectors, np.float64)
    bound = values.bound(np.array([squared_norms(X).max(initial=0.0)]))
    return np.ascontiguousarray(basis.map(bound).features(values.of(csr_array(X))))


def machine_of_rows(settings, X, beta, classes):
    """Return the kernel machine f(x) = Σ beta_i K(x_i, x), a SVC with these classes, or a SVR."""
    is_classification = settings.task == "classification"
    model = SVC(C=settings.C) if is_classification else SVR(C=settings.C, epsilon=settings.epsilon)
    if is_classification:
        model.classes_ = classes
    numbers = settings.kernel_numbers
    gamma = numbers.get("gamma", 1.0)
    values = (numbers.get("degree", 3), gamma, gamma, numbers.get("coef0", 1.0))
    model.n_features_in_, model.shape_fit_, model.intercept_ = X.shape[1], X.shape, np.zeros(1)
    used = np.flatnonzero(beta)
    return restore(model, settings.kernel, values, csr_array(X)[used], beta[used])
