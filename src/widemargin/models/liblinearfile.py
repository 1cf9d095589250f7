"""LIBLINEAR's model text.

    solver_type L2R_L2LOSS_SVC_DUAL
    nr_class 2
    label 1 -1              (classes only, integers)
    nr_feature 3
    bias 1                  (B: the constant feature, last among the weights; negative if there is none)
    w
    0.5                     (a line per feature, then one for B; a number per class)

The prediction is the label of the largest score. For two classes there is one score, and label[0] if it is positive;
here it is classes_[1], the larger label, so that a model is negated if the file names the smaller one first. MCSVM_CS
has two columns even for two classes, of which LIBLINEAR uses the first. For regression nr_class is 2, without labels.
"""

import math
import re

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier

from widemargin.errors import FormatError
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.models.tensorfile import check_weights

_CRAMMER_SINGER = "MCSVM_CS"
_CLASSIFIERS = {
    "L2R_L2LOSS_SVC_DUAL": {"penalty": "l2", "loss": "squared_hinge", "dual": True},
    "L2R_L2LOSS_SVC": {"penalty": "l2", "loss": "squared_hinge", "dual": False},
    "L2R_L1LOSS_SVC_DUAL": {"penalty": "l2", "loss": "hinge", "dual": True},
    "L1R_L2LOSS_SVC": {"penalty": "l1", "loss": "squared_hinge", "dual": False},
    _CRAMMER_SINGER: {"multi_class": "crammer_singer"},
}
_REGRESSORS = {
    "L2R_L2LOSS_SVR": {"loss": "squared_epsilon_insensitive", "dual": False},
    "L2R_L2LOSS_SVR_DUAL": {"loss": "squared_epsilon_insensitive", "dual": True},
    "L2R_L1LOSS_SVR_DUAL": {"loss": "epsilon_insensitive", "dual": True},
}
_REFUSED = {
    "L2R_LR": "logistic regression",
    "L2R_LR_DUAL": "logistic regression",
    "L1R_LR": "logistic regression",
    "ONECLASS_SVM": "a linear one-class model",
}
_KEYS = ("solver_type", "nr_class", "label", "nr_feature", "bias", "rho", "w")
_INTEGER = re.compile(rb"[-+]?[0-9]{1,10}")
_NUMBER = re.compile(rb"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_INT32 = np.iinfo(np.int32)


def recognises(head):
    """Return whether a file with these first bytes is LIBLINEAR's text."""
    words = head.split(None, 1)
    return bool(words) and words[0].decode("latin-1") in _KEYS


def write(model):
    """Return the bytes of LIBLINEAR's text for a fitted model."""
    coef, intercept = model.coef_.toarray() if issparse(model.coef_) else model.coef_, np.asarray(model.intercept_)
    check_weights(model, {"coef_": coef, "intercept_": intercept})
    coef = np.atleast_2d(coef).astype(np.float64)
    bias, W = -1.0, coef.T
    if intercept.ndim or intercept:
        bias = float(model.intercept_scaling)
        W = np.vstack([W, _weights_of_constant(np.broadcast_to(intercept, len(coef)), bias)])
    lines = [f"solver_type {_solver_type(model)}", f"nr_class {max(len(coef), 2)}"]
    if is_classifier(model):
        lines.append("label " + " ".join(map(str, _labels_of(model))))
    lines += [f"nr_feature {coef.shape[1]}", f"bias {bias:.17g}", "w"]
    lines += [" ".join([f"{weight:.17g}" for weight in row]) for row in W.tolist()]
    return ("\n".join(lines) + "\n").encode("ascii")


def _weights_of_constant(intercept, bias):
    """Return intercept / bias, finite.

    If intercept is bias * w rounded, as `fit` makes it, then bias times this is that intercept again, to the bit: the
    quotient is the number nearest to intercept / bias, so its product is no farther from the intercept than w's was.
    """
    with np.errstate(all="ignore"):
        weight = intercept.astype(np.float64) / bias
    if not bias > 0 or not np.isfinite(weight).all():
        raise ValueError(f"intercept_ / intercept_scaling must be finite to be written, got {intercept} / {bias}.")
    return weight


def _solver_type(model):
    """Return LIBLINEAR's name for the problem that a model solves; `dual="auto"` is the dual there."""
    known = _CLASSIFIERS if is_classifier(model) else _REGRESSORS
    if is_classifier(model) and model.multi_class == "crammer_singer" and len(model.classes_) > 2:
        return _CRAMMER_SINGER
    wanted = {name: getattr(model, name) for name in ("penalty", "loss") if hasattr(model, name)}
    wanted["dual"] = model.dual is not False
    for name, settings in known.items():
        if settings == wanted:
            return name
    raise ValueError(f"LIBLINEAR has no solver for {', '.join(f'{key}={value!r}' for key, value in wanted.items())}.")


def _labels_of(model):
    """Return the labels as LIBLINEAR orders its weights: of two classes, that of the positive score first."""
    classes = model.classes_
    whole = classes.dtype.kind in "iu" or (classes.dtype.kind == "f" and np.all(classes == np.floor(classes)))
    if not whole or classes.min() < _INT32.min or classes.max() > _INT32.max:
        raise TypeError(
            f"LIBLINEAR's labels are 32-bit integers, got classes_ {classes[:3].tolist()} of type {classes.dtype}. "
            'Encode y as integers before fit, or save with format="widemargin".'
        )
    labels = [int(label) for label in classes]
    return labels[::-1] if len(labels) == 2 else labels


def read(content, path):
    """Return the model in the bytes of LIBLINEAR's text, or raise FormatError with the line of the first mistake."""
    lines = content.split(b"\n")
    if lines.pop():
        raise FormatError(path, "the last line does not end with a newline: the file is cut short.", len(lines) + 1)
    header = _Header(lines, path)
    solver = header.solver_type()
    n_classes = header.integer("nr_class", at_least=2)
    n_features = header.integer("nr_feature", at_least=1)
    bias = header.number("bias")
    labels = header.labels(n_classes) if solver in _CLASSIFIERS else header.no_labels(n_classes)
    n_columns = 1 if n_classes == 2 and solver != _CRAMMER_SINGER else n_classes
    W = _read_weights(lines[header.length :], n_features + (bias >= 0), n_columns, header)
    if not bias > 0:  # a constant feature of 0 adds nothing
        W, settings = W[:n_features], {"fit_intercept": False}
    else:
        W[-1], settings = header.intercept(W[-1], bias), {"intercept_scaling": bias}
    if solver in _REGRESSORS:
        return _keep(LinearSVR(**_REGRESSORS[solver], **settings), W, n_features)
    model = LinearSVC(**_CLASSIFIERS[solver], **settings)
    order = np.argsort(labels)
    model.classes_ = labels[order]
    if n_classes > 2:
        return _keep(model, W[:, order], n_features)
    return _keep(model, W[:, :1] if order[0] == 1 else -W[:, :1], n_features)


def _keep(model, W, n_features):
    """Set coef_, intercept_ and n_features_in_ from weights, one column per output."""
    coef = np.ascontiguousarray(W[:n_features].T)
    model.coef_ = coef if is_classifier(model) else coef.ravel()
    model.intercept_ = W[n_features].copy() if len(W) > n_features else 0.0
    model.n_features_in_ = n_features
    return model


def _read_weights(lines, n_rows, n_columns, header):
    """Return the weights (n_rows, n_columns); lines and numbers are counted before memory is taken."""
    if len(lines) != n_rows:
        rule = f"nr_feature and bias call for {n_rows} lines of weights, the file has {len(lines)}."
        header.refuse("nr_feature", rule)
    for k, line in enumerate(lines):
        if len(line.split()) != n_columns:
            rule = f"the line must hold {n_columns} numbers, got {len(line.split())}."
            raise FormatError(header.path, rule, header.length + k + 1)
    W = np.empty((n_rows, n_columns))
    for k, line in enumerate(lines):
        W[k] = [_number(token, header.path, header.length + k + 1) for token in line.split()]
    return W


def _number(token, path, line):
    """Return a finite number, or raise FormatError."""
    value = float(token) if _NUMBER.fullmatch(token) else math.nan
    if not math.isfinite(value):
        raise FormatError(path, f"{_shown(token)} is not a finite number.", line)
    return value


def _shown(token):
    return repr(token[:40].decode("ascii", "backslashreplace"))


class _Header:
    """The lines before the weights, each a key and its words; `length` counts them, the line `w` included."""

    def __init__(self, lines, path):
        self.path, self._fields = path, {}
        for number, line in enumerate(lines, 1):
            key, *words = line.split() or [b""]
            key = key.decode("latin-1")
            if key not in _KEYS:
                raise FormatError(path, f"{_shown(line)} is not a line of a LIBLINEAR header.", number)
            if key in self._fields:
                raise FormatError(path, f"{key} is given twice.", number)
            self._fields[key] = number, words
            if key == "w":
                break
        else:
            raise FormatError(path, "the header must end with a line `w`: the file is cut short.", len(lines))
        self.length = number
        if words:
            self.refuse("w", "the weights must begin on the next line.")

    def refuse(self, key, rule):
        """Raise FormatError at the line of a key."""
        raise FormatError(self.path, rule, self._fields[key][0])

    def words(self, key, n_words):
        """Return the words after a key, which must be as many."""
        if key not in self._fields:
            raise FormatError(self.path, f"the header lacks {key}.", self.length)
        words = self._fields[key][1]
        if len(words) != n_words:
            self.refuse(key, f"{key} must have {n_words} values, got {len(words)}.")
        return words

    def integer(self, key, at_least):
        """Return the integer after a key."""
        (word,) = self.words(key, 1)
        if not _INTEGER.fullmatch(word) or not at_least <= int(word) <= _INT32.max:
            self.refuse(key, f"{key} must be an integer from {at_least} to {_INT32.max}, got {_shown(word)}.")
        return int(word)

    def number(self, key):
        """Return the number after a key."""
        (word,) = self.words(key, 1)
        return _number(word, self.path, self._fields[key][0])

    def intercept(self, weights, bias):
        """Return bias * weights, finite."""
        with np.errstate(over="ignore"):
            intercept = bias * weights
        if not np.isfinite(intercept).all():
            self.refuse("bias", "bias times its weight is not finite.")
        return intercept

    def solver_type(self):
        """Return the solver's name, if a model of ours can be made of it."""
        (word,) = self.words("solver_type", 1)
        name = word.decode("ascii", "backslashreplace")
        if name in _REFUSED:
            self.refuse("solver_type", f"{name} is {_REFUSED[name]}, which widemargin has no estimator for.")
        if name not in _CLASSIFIERS and name not in _REGRESSORS:
            self.refuse("solver_type", f"solver_type must be one of LIBLINEAR's, got {_shown(word)}.")
        if "rho" in self._fields:
            self.refuse("rho", f"rho belongs to ONECLASS_SVM, not to {name}.")
        return name

    def labels(self, n_classes):
        """Return the labels, distinct integers."""
        words = self.words("label", n_classes)
        for word in words:
            if not _INTEGER.fullmatch(word) or not _INT32.min <= int(word) <= _INT32.max:
                self.refuse("label", f"labels must be 32-bit integers, got {_shown(word)}.")
        labels = np.array([int(word) for word in words])
        if len(np.unique(labels)) < n_classes:
            self.refuse("label", "labels must be distinct.")
        return labels

    def no_labels(self, n_classes):
        """Refuse what only classes have."""
        if n_classes != 2:
            self.refuse("nr_class", f"nr_class must be 2 for regression, got {n_classes}.")
        if "label" in self._fields:
            self.refuse("label", "a model for regression has no labels.")
