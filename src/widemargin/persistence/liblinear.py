"""Reading and writing LIBLINEAR's model text.

    solver_type L2R_L2LOSS_SVC_DUAL
    nr_class 2
    label 1 -1              (classification only, integers)
    nr_feature 3
    bias 1                  (B, the value of a constant feature; negative if there is none)
    rho 0.2                 (ONECLASS_SVM only, whose bias is negative: a row is an outlier if its score is below rho)
    w
    0.5                     (a line per feature, then one for the constant feature; one number per class)
    # sha256=...            (our checksum; LIBLINEAR does not read beyond the weights)

The predicted class is the one with the largest score. With two classes there is one score, and LIBLINEAR predicts
label[0] if it is positive. Here a positive score means classes_[1], the larger label, so that the weights change their
sign if the file lists the smaller label first. MCSVM_CS has two columns even for two classes, and LIBLINEAR uses the
first; the second is its negative, and our weights are their difference, twice the first. For regression and one-class
models nr_class is 2 and there are no labels.
"""

import re

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier

from widemargin.errors import FormatError
from widemargin.models.elastic_net import has_sparse_penalty
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.models.linear_one_class import LinearOneClassSVM
from widemargin.persistence.linear_fields import check_weights
from widemargin.persistence.text import (
    CHECKSUM,
    Header,
    check_checksum,
    check_complete,
    first_word,
    integer_labels,
    number,
    with_checksum,
)

_CRAMMER_SINGER = "MCSVM_CS"
_CLASSIFIERS = {
    "L2R_L2LOSS_SVC_DUAL": {"penalty": "l2", "loss": "squared_hinge", "dual": True},
    "L2R_L2LOSS_SVC": {"penalty": "l2", "loss": "squared_hinge", "dual": False},
    "L2R_L1LOSS_SVC_DUAL": {"penalty": "l2", "loss": "hinge", "dual": True},
    "L1R_L2LOSS_SVC": {"penalty": "l1", "loss": "squared_hinge", "dual": False},
    "L1R_LR": {"penalty": "l1", "loss": "log_loss", "dual": False},
    "L2R_LR_DUAL": {"penalty": "l2", "loss": "log_loss", "dual": True},
    "L2R_LR": {"penalty": "l2", "loss": "log_loss", "dual": False},
    _CRAMMER_SINGER: {"multi_class": "crammer_singer"},
}
_REGRESSORS = {
    "L2R_L2LOSS_SVR": {"loss": "squared_epsilon_insensitive", "dual": False},
    "L2R_L2LOSS_SVR_DUAL": {"loss": "squared_epsilon_insensitive", "dual": True},
    "L2R_L1LOSS_SVR_DUAL": {"loss": "epsilon_insensitive", "dual": True},
}
_ONE_CLASS = "ONECLASS_SVM"
_CHECKSUM_LINE = re.compile(rb"# " + CHECKSUM + rb"\s*")
_KEYS = ("solver_type", "nr_class", "label", "nr_feature", "bias", "rho", "w")


def recognises(head):
    """Return whether a file with these first bytes is LIBLINEAR's model text."""
    return first_word(head) in _KEYS


def write(model):
    """Return LIBLINEAR's model text, as bytes, of a fitted model."""
    coef, intercept = model.coef_.toarray() if issparse(model.coef_) else model.coef_, np.asarray(model.intercept_)
    check_weights(model, {"coef_": coef, "intercept_": intercept})
    coef = np.atleast_2d(coef).astype(np.float64)
    bias, W, is_one_class = -1.0, coef.T, isinstance(model, LinearOneClassSVM)
    if (intercept.ndim or intercept) and not is_one_class:
        bias = float(model.intercept_scaling) if model.penalize_intercept else 1.0
        W = np.vstack([W, _weights_of_constant(np.broadcast_to(intercept, len(coef)), bias)])
    solver = _solver_type(model)
    if solver == _CRAMMER_SINGER and len(coef) == 1:
        W = W * np.array([0.5, -0.5])
    lines = [f"solver_type {solver}", f"nr_class {max(len(coef), 2)}"]
    if is_classifier(model):
        lines.append("label " + " ".join(map(str, _labels_of(model))))
    lines += [f"nr_feature {coef.shape[1]}", f"bias {bias:.17g}"]
    lines += [f"rho {model.offset_[0]:.17g}", "w"] if is_one_class else ["w"]
    lines += [" ".join([f"{weight:.17g}" for weight in row]) for row in W.tolist()]
    return with_checksum(("\n".join([*lines, "# "])).encode("ascii"), b"\n")


def _weights_of_constant(intercept, bias):
    """Return intercept / bias, the weights of the constant feature; ValueError if they are not finite.

    `fit` computes the intercept as bias * w, rounded. Then bias times the value returned here is the same intercept to
    the bit: the quotient is the floating point number nearest to intercept / bias, so that its product with bias is no
    farther from the intercept than bias * w was.
    """
    with np.errstate(all="ignore"):
        weight = intercept.astype(np.float64) / bias
    if not bias > 0 or not np.isfinite(weight).all():
        raise ValueError(f"intercept_ / intercept_scaling must be finite to be written, got {intercept} / {bias}.")
    return weight


def _solver_type(model):
    """Return LIBLINEAR's name of the problem that a model solves; dual="auto" becomes a dual solver, if any."""
    if isinstance(model, LinearOneClassSVM):
        return _ONE_CLASS
    known = _CLASSIFIERS if is_classifier(model) else _REGRESSORS
    if is_classifier(model) and model.multi_class == "crammer_singer" and _has_own_loss(model):
        return _CRAMMER_SINGER
    wanted = {name: getattr(model, name) for name in ("penalty", "loss") if hasattr(model, name)}
    wanted["dual"] = model.dual is not False and not has_sparse_penalty(model)
    for name, settings in known.items():
        if settings == wanted:
            return name
    raise ValueError(f"LIBLINEAR has no solver for {', '.join(f'{key}={value!r}' for key, value in wanted.items())}.")


def _has_own_loss(model):
    """Return whether a model of Crammer and Singer's kind was fitted with their loss, whatever its `loss` says."""
    return len(model.classes_) > 2 or (model.penalty == "l2" and model.loss in ("hinge", "squared_hinge"))


def _labels_of(model):
    """Return the labels in LIBLINEAR's order: of two classes, the one with the positive score is first."""
    labels = integer_labels(model.classes_, "LIBLINEAR")
    return labels[::-1] if len(labels) == 2 else labels


def read(content, path):
    """Return the model from LIBLINEAR's model text; FormatError with the line of the first error."""
    check_complete(content, path)
    header = Header(content, path, "LIBLINEAR", _KEYS)
    if header.n_words("w"):
        header.refuse("w", "the weights must begin on the next line.")
    solver = _solver_in(header)
    n_classes = header.integer("nr_class", at_least=2)
    n_features = header.integer("nr_feature", at_least=1)
    bias = header.number("bias")
    labels = header.labels(n_classes) if solver in _CLASSIFIERS else _no_labels(header, n_classes)
    n_columns = 1 if n_classes == 2 and solver != _CRAMMER_SINGER else n_classes
    W = _read_weights(_weights_text(content, header), n_features + (bias >= 0), n_columns, header)
    if solver == _ONE_CLASS:
        return _one_class_model(header, W, n_features, bias)
    if not bias > 0:  # a constant feature that is 0 does not change the scores
        W, settings = W[:n_features], {"fit_intercept": False}
    else:
        W[-1], settings = _intercept(header, W[-1], bias), {"intercept_scaling": bias}
    if solver in _REGRESSORS:
        return _keep(LinearSVR(**_REGRESSORS[solver], **settings), W, n_features)
    model = LinearSVC(**_CLASSIFIERS[solver], **settings)
    order = np.argsort(labels)
    model.classes_ = labels[order]
    model._class_order = np.argsort(order)
    if n_classes > 2:
        return _keep(model, W[:, order], n_features)
    factor = 2.0 if solver == _CRAMMER_SINGER else 1.0
    return _keep(model, (factor if order[0] == 1 else -factor) * W[:, :1], n_features)


def _one_class_model(header, W, n_features, bias):
    """Return the LinearOneClassSVM of a file."""
    if bias >= 0:
        header.refuse("bias", f"bias must be negative in a model of {_ONE_CLASS}, which has rho instead, got {bias:g}.")
    model = LinearOneClassSVM()
    model.offset_ = np.array([header.number("rho")])
    model.coef_, model.intercept_ = np.ascontiguousarray(W.T), -model.offset_
    model.n_features_in_ = n_features
    return model


def _solver_in(header):
    """Return the solver's name; FormatError if LIBLINEAR has no solver of that name."""
    name = header.choice("solver_type", {**_CLASSIFIERS, **_REGRESSORS, _ONE_CLASS: None})
    if "rho" in header and name != _ONE_CLASS:
        header.refuse("rho", f"rho belongs to {_ONE_CLASS}, not to {name}.")
    return name


def _no_labels(header, n_classes):
    """Raise FormatError if the header of a regression or one-class model has entries of a classifier."""
    if n_classes != 2:
        header.refuse("nr_class", f"nr_class must be 2 for regression and for one class, got {n_classes}.")
    if "label" in header:
        header.refuse("label", "a model for regression or of one class has no labels.")


def _intercept(header, weights, bias):
    """Return bias * weights; FormatError if it is not finite."""
    with np.errstate(over="ignore"):
        intercept = bias * weights
    if not np.isfinite(intercept).all():
        header.refuse("bias", "bias times its weight is not finite.")
    return intercept


def _keep(model, W, n_features):
    """Set coef_, intercept_ and n_features_in_ of a model from W, which has one column per output."""
    coef = np.ascontiguousarray(W[:n_features].T)
    model.coef_ = coef if is_classifier(model) else coef.ravel()
    model.intercept_ = W[n_features].copy() if len(W) > n_features else 0.0
    model.n_features_in_ = n_features
    return model


def _weights_text(content, header):
    """Return the lines after the header, without a last line that holds the checksum, which is verified."""
    last = content.rfind(b"\n", 0, len(content) - 1) + 1
    if last < header.end or not _CHECKSUM_LINE.fullmatch(content, last):
        return content[header.end :]
    check_checksum(content, last, len(content), header.path)
    return content[header.end : last]


def _read_weights(text, n_rows, n_columns, header):
    """Return the weights (n_rows, n_columns); lines and numbers are counted before memory is allocated."""
    lines = text.split(b"\n")[:-1]
    if len(lines) != n_rows:
        rule = f"nr_feature and bias require {n_rows} lines of weights, the file has {len(lines)}."
        header.refuse("nr_feature", rule)
    for k, line in enumerate(lines):
        if len(line.split()) != n_columns:
            rule = f"the line must hold {n_columns} numbers, got {len(line.split())}."
            raise FormatError(header.path, rule, header.length + k + 1)
    W = np.empty((n_rows, n_columns))
    for k, line in enumerate(lines):
        W[k] = [number(token, header.path, header.length + k + 1) for token in line.split()]
    return W
