"""Wild numbers and broken inputs, a case for each estimator and abuse; run as a script it judges the cases it is given.

A case ends well if it is refused by a ValueError or TypeError that names the culprit, or if it leaves a model of finite
numbers whose status is honest. The script reads numbers of cases from its standard input, one per line, and answers
with a line of JSON when it begins a case and another when it has judged it, so that whoever reads them knows which case
ended the process.
"""

import inspect
import json
import re
import resource
import sys
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba.core import event
from scipy.sparse import coo_matrix, csc_matrix, csr_array, csr_matrix, issparse
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning

import widemargin

MEMORY_LIMIT = 3 << 30  # bytes of address space, of which importing Numba takes a third
CPU_LIMIT = 10.0  # seconds of a case, compilation apart
ESTIMATORS = [
    name
    for name in sorted(widemargin.__all__)
    if isinstance(getattr(widemargin, name), type) and issubclass(getattr(widemargin, name), BaseEstimator)
]
_N_ROWS, _N_COLUMNS = 24, 4


@dataclass
class Inputs:
    """What a case hands over: training rows, targets, arguments of `fit`, parameters, and rows to predict."""

    X: Any
    y: Any
    arguments: dict = field(default_factory=dict)
    parameters: dict = field(default_factory=dict)
    new_rows: Any = None


@dataclass(frozen=True)
class Abuse:
    """A change of good inputs.

    `culprits` is a pattern that the message of a refusal must contain; None: there is nothing to refuse.
    `needs` is an argument of `fit` or a parameter without which the abuse does not apply.
    """

    change: Any
    culprits: str | None
    needs: str | None = None


def good_inputs(name):
    """Return inputs that the estimator of this name can be fitted to."""
    rng, estimator = np.random.default_rng(7), getattr(widemargin, name)
    X = rng.standard_normal((_N_ROWS, _N_COLUMNS))
    score = X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * rng.standard_normal(_N_ROWS)
    if is_classifier(estimator()):
        y = (score > np.median(score)).astype(int)
    elif is_regressor(estimator()) or name == "RankSVM":
        y = np.round(score, 2)
    else:
        y = None
    return Inputs(X, y)


def _with_cell(X, value, dtype=None):
    X = X.astype(dtype or X.dtype)
    X[3, 1] = value
    return X


def _scaled_column(X, factor):
    X = X.copy()
    X[:, 2] *= factor
    return X


def _zero_rows(X):
    X = X.copy()
    X[::2] = 0.0
    return X


def _constant_column(X):
    X = X.copy()
    X[:, 1] = 3.0
    return X


_NUMERIC_ROWS = {  # what becomes of X, dense and sparse; wild numbers may be refused, the rest must be fitted
    "X*1e300": (lambda X: X * 1e300, True),
    "X*1e200": (lambda X: X * 1e200, True),
    "X*1e154": (lambda X: X * 1e154, True),
    "X*1e100": (lambda X: X * 1e100, True),
    "X*1e20": (lambda X: X * 1e20, True),
    "X*1e-20": (lambda X: X * 1e-20, True),
    "X*1e-160": (lambda X: X * 1e-160, True),
    "X*1e-320": (lambda X: X * 1e-320, True),
    "X float32 denormal": (lambda X: (X * 1e-40).astype(np.float32), True),
    "X float32 huge": (lambda X: np.clip(X * 1e38, -3e38, 3e38).astype(np.float32), True),
    "X float32": (lambda X: X.astype(np.float32), False),
    "X cell 1e300": (lambda X: _with_cell(X, 1e300), True),
    "X cell 1e-320": (lambda X: _with_cell(X, 1e-320), False),
    "X column 1e200": (lambda X: _scaled_column(X, 1e200), True),
    "X column 1e-200": (lambda X: _scaled_column(X, 1e-200), False),
    "X columns 1e-300..1e300": (lambda X: X * np.array([1e-300, 1e-100, 1e100, 1e300]), True),
    "X NaN": (lambda X: _with_cell(X, np.nan), True),
    "X inf": (lambda X: _with_cell(X, np.inf), True),
    "X -inf": (lambda X: _with_cell(X, -np.inf), True),
    "X zeros": (lambda X: X * 0.0, True),
    "X zero rows": (_zero_rows, False),
    "X constant column": (_constant_column, False),
    "X constant": (lambda X: X * 0.0 + 2.0, True),
    "X equal rows": (lambda X: np.tile(X[0], (len(X), 1)), True),
    "X int": (lambda X: np.round(X * 3).astype(int), False),
    "X int64 huge": (lambda X: (X * 1e18).astype(np.int64), True),
    "X bool": (lambda X: X > 0.0, False),
    "X no columns": (lambda X: X[:, :0], True),
}
_OTHER_ROWS = {
    "X object None": lambda X: _with_cell(X, None, object),
    "X object NaN": lambda X: _with_cell(X, np.nan, object),
    "X object text": lambda X: _with_cell(X, "high", object),
    "X text": lambda X: X.astype(str).astype("U8").view("U8") + "x",
    "X complex": lambda X: X + 1j,
    "X dates": lambda X: X.astype("datetime64[s]"),
    "X one-dimensional": lambda X: X[:, 0],
    "X three-dimensional": lambda X: X[:, :, np.newaxis],
    "X None": lambda X: None,
    "X nested lists": lambda X: [[1.0, 2.0], [3.0]] * (len(X) // 2),
}
_ROWS = r"\bX\b|array|[Ii]nput|features?|sparse|dtype|numeric|convert|float|complex|dimension"


def _malformed(kind, broken):
    """Return a change that breaks the arrays of a sparse matrix after it was made."""

    def change(inputs):
        X = kind(inputs.X)
        broken(X)
        return X

    return change


def _set(name, position, value):
    def broken(X):
        getattr(X, name)[position] = value

    return broken


def _replace_array(name, value):
    def broken(X):
        setattr(X, name, value(getattr(X, name)))

    return broken


def _swap_entries(X):
    X.indices[:2], X.data[:2] = X.indices[1::-1].copy(), X.data[1::-1].copy()
    X.has_sorted_indices = X.has_canonical_format = True  # which is a lie


def _repeat_entry(X):
    X.indices[1] = X.indices[0]
    X.has_canonical_format = True  # which is a lie


def _with_64_bits(X):
    X = csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


_BREAKS = {
    "index 99": (_set("indices", 5, 99), True),
    "index -1": (_set("indices", 5, -1), True),
    "index -2**31": (_set("indices", 5, -(2**31)), True),
    "index 2**31-1": (_set("indices", 5, 2**31 - 1), True),
    "index = columns": (_set("indices", -1, _N_COLUMNS), True),
    "indptr falls": (_set("indptr", 3, 40), True),
    "indptr negative": (_set("indptr", 3, -5), True),
    "indptr ends late": (_set("indptr", -1, 10**6), True),
    "indptr begins late": (_set("indptr", 0, 2), True),
    "indptr begins below 0": (_set("indptr", 0, -2), True),
    "indptr 2**31-1": (_set("indptr", 2, 2**31 - 1), True),
    "data shorter": (_replace_array("data", lambda data: data[:-3]), True),
    "indices shorter": (_replace_array("indices", lambda indices: indices[:-3]), True),
    "indptr shorter": (_replace_array("indptr", lambda indptr: indptr[:-3]), True),
    "indptr longer": (_replace_array("indptr", lambda indptr: np.append(indptr, indptr[-1])), True),
    "indices float": (_replace_array("indices", lambda indices: indices + 0.5), True),
    "data object": (_replace_array("data", lambda data: data.astype(object)), True),
    "data None": (_replace_array("data", lambda data: np.where(data > 0, None, 1.0)), True),
    "data text": (_replace_array("data", lambda data: data.astype(str)), True),
    "data complex": (_replace_array("data", lambda data: data + 1j), True),
    "data two-dimensional": (_replace_array("data", lambda data: data.reshape(2, -1)), True),
    "NaN": (_set("data", 5, np.nan), True),
    "unsorted": (_swap_entries, False),
    "repeated": (_repeat_entry, False),
}
_KINDS = {"csr": csr_matrix, "csr_array": csr_array, "csr64": _with_64_bits, "csc": csc_matrix}
_STRUCTURE = r"\bX\b|indices|indptr|index|sparse|data|dtype|complex|float|convert|[Ii]nput"


def _sparse_breaks():
    """Return abuses of the structure of sparse matrices, of the rows to fit and of those to predict."""
    made = {}
    for kind, make in _KINDS.items():
        for name, (broken, is_wrong) in _BREAKS.items():
            if kind == "csr64" or not name.endswith("2**31"):
                change = _malformed(make, broken)
                culprits = _STRUCTURE if is_wrong else None
                made[f"X {kind} {name}"] = Abuse(_setting("X", change), culprits)
                made[f"predict {kind} {name}"] = Abuse(_setting("new_rows", change), culprits)
    made["X coo column 99"] = Abuse(_setting("X", _malformed(coo_matrix, _set("col", 3, 99))), _STRUCTURE)
    made["X coo row -1"] = Abuse(_setting("X", _malformed(coo_matrix, _set("row", 3, -1))), _STRUCTURE)
    return made


def _setting(name, change):
    """Return a change of inputs that sets one of them to what `change` makes of them all."""

    def change_inputs(inputs):
        setattr(inputs, name, change(inputs))

    return change_inputs


def _row_abuses():
    made = {}
    for name, (change, may_refuse) in _NUMERIC_ROWS.items():
        dense = lambda inputs, change=change: change(inputs.X)  # noqa: E731
        sparse = lambda inputs, change=change: csr_array(change(inputs.X))  # noqa: E731
        culprits = _ROWS + r"|overflow|\bC\b|scale|gamma|kernel|variance|nu\b|classes" if may_refuse else None
        made[name] = Abuse(_setting("X", dense), culprits)
        made[f"{name} sparse"] = Abuse(_setting("X", sparse), culprits)
        made[f"predict {name}"] = Abuse(_setting("new_rows", dense), culprits)
        made[f"predict {name} sparse"] = Abuse(_setting("new_rows", sparse), culprits)
    for name, change in _OTHER_ROWS.items():
        made[name] = Abuse(_setting("X", lambda inputs, change=change: change(inputs.X)), _ROWS)
        made[f"predict {name}"] = Abuse(_setting("new_rows", lambda inputs, change=change: change(inputs.X)), _ROWS)
    return made


def _few_rows(n_rows):
    def change(inputs):
        inputs.X = inputs.X[:n_rows]
        inputs.y = None if inputs.y is None else inputs.y[:n_rows]

    return change


def _of_y(change):
    """Return a change of inputs whose y is replaced."""
    return _setting("y", lambda inputs: change(np.asarray(inputs.y)))


def _with_object(value, position=3):
    def change(y):
        y = np.asarray(y, dtype=object)
        y[position] = value
        return y

    return change


def _with_number(value):
    def change(y):
        y = y.astype(float)
        y[3] = value
        return y

    return change


_TARGETS = {
    "y object None": _with_object(None),
    "y object NaN": _with_object(np.nan),
    "y object inf": _with_object(np.inf),
    "y object text": _with_object("high"),
    "y object list": lambda y: np.array([*([one] for one in y.tolist()), None], dtype=object)[:-1],
    "y all None": lambda y: np.full(len(y), None),
    "y None": lambda y: None,
    "y NaN": _with_number(np.nan),
    "y inf": _with_number(np.inf),
    "y -inf": _with_number(-np.inf),
    "y 1e300": _with_number(1e300),
    "y 1e-320": _with_number(1e-320),
    "y*1e300": lambda y: y * 1e300,
    "y*1e150": lambda y: y * 1e150,
    "y*1e20": lambda y: y * 1e20,
    "y*1e-300": lambda y: y * 1e-300,
    "y*1e-320": lambda y: y * 1e-320,
    "y zeros": lambda y: y * 0,
    "y constant": lambda y: y * 0 + 5,
    "y text": lambda y: np.array([f"class {one}" for one in y.tolist()]),
    "y bytes": lambda y: y.astype("S4"),
    "y complex": lambda y: y + 1j,
    "y dates": lambda y: (np.arange(len(y)) % 2).astype("datetime64[D]"),
    "y short": lambda y: y[:-1],
    "y empty": lambda y: y[:0],
    "y two columns": lambda y: np.stack([y, y], axis=1),
    "y scalar": lambda y: 1.0,
    "y bool": lambda y: y > 0,
    "y masked": lambda y: np.ma.masked_array(y, mask=np.arange(len(y)) == 3),
    "y int64 extreme": lambda y: np.where(y > 0, np.iinfo(np.int64).max, np.iinfo(np.int64).min),
    "y float32": lambda y: y.astype(np.float32),
}
_WEIGHTS = {
    "weight NaN": lambda n: np.where(np.arange(n) == 3, np.nan, 1.0),
    "weight inf": lambda n: np.where(np.arange(n) == 3, np.inf, 1.0),
    "weight object None": lambda n: np.where(np.arange(n) == 3, None, 1.0),
    "weight text": lambda n: np.full(n, "heavy"),
    "weight complex": lambda n: np.ones(n) + 1j,
    "weight negative": lambda n: np.where(np.arange(n) == 3, -1.0, 1.0),
    "weight all negative": lambda n: -np.ones(n),
    "weight zeros": np.zeros,
    "weight 1e300": lambda n: np.full(n, 1e300),
    "weight cell 1e300": lambda n: np.where(np.arange(n) == 3, 1e300, 1.0),
    "weight 1e-300": lambda n: np.full(n, 1e-300),
    "weight 1e-320": lambda n: np.full(n, 1e-320),
    "weight 1e-300..1e300": lambda n: np.logspace(-300, 300, n),
    "weight one positive": lambda n: (np.arange(n) == 3) * 1.0,
    "weight short": lambda n: np.ones(n - 1),
    "weight two columns": lambda n: np.ones((n, 2)),
    "weight empty": lambda n: np.ones(0),
    "weight 1e300 scalar": lambda n: 1e300,
}
_QUERIES = {
    "qid NaN": lambda n: np.where(np.arange(n) == 3, np.nan, 1.0),
    "qid None": lambda n: np.where(np.arange(n) == 3, None, 1),
    "qid inf": lambda n: np.where(np.arange(n) > 12, np.inf, 1.0),
    "qid text": lambda n: np.where(np.arange(n) > 12, "b", "a"),
    "qid mixed": lambda n: np.array(["b"] * 12 + [1] * (n - 12), dtype=object),
    "qid apart": lambda n: np.arange(n) % 2,
    "qid alone": np.arange,
    "qid short": lambda n: np.ones(n - 1),
    "qid two columns": lambda n: np.ones((n, 2)),
    "qid scalar": lambda n: 1,
    "qid objects": lambda n: np.array([object()] * n),
    "qid lists": lambda n: [[1]] * (n - 1) + [[1, 2]],
    "qid NaT": lambda n: np.full(n, np.datetime64("NaT")),
    "qid complex": lambda n: np.ones(n) + 1j,
}
_PARAMETERS = {
    "C": [1e-320, 1e-300, 1e-100, 1e-20, 1e20, 1e100, 1e200, 1e300, 1e308, np.inf, np.nan, 0.0, -1.0, "1", 10**400],
    "tol": [0.0, 1e-320, 1e-20, 1e300, np.inf, np.nan, -1.0, "small"],
    "epsilon": [1e-320, 1e20, 1e300, np.inf, np.nan, -1.0],
    "gamma": [0.0, 1e-320, 1e-300, 1e20, 1e300, np.inf, np.nan, -1.0, "wide", 10**400],
    "nu": [0.0, 1e-320, 1e-300, 1e-10, 0.999999, 1.0, 1.5, np.nan],
    "coef0": [1e20, 1e200, 1e300, -1e300, np.inf, np.nan],
    "degree": [0, 1000, 10**9, 10**30, -1, 2.5],
    "intercept_scaling": [1e-320, 1e-300, 1e-100, 1e100, 1e200, 1e300, np.inf, np.nan, 0.0],
    "max_iter": [1, 2, 0, -2, 10**30, np.nan],
    "max_seconds": [0.0, 1e-300, 1e300, np.inf, np.nan, -1.0],
    "cache_size": [1e-300, 1e-6, 1e300, np.inf, np.nan, 0.0],
    "working_set": [2, 10**9, 1],
    "n_jobs": [0, -1, -(10**9), 10**30, 2.5],
    "random_state": [-1, 2**32, 2**400],
    "class_weight": [
        {0: 1e300}, {0: 1e-300}, {0: 0.0}, {0: -1.0}, {0: np.nan}, {0: np.inf}, {0: None}, {0: "x"}, {7: 1.0}, "heavy",
    ],
    "measure": ["precision@0", "precision@1000000", "recall@-1", "f2", "", "precision@nan", "precision@" + 30 * "9"],
    "Cs": [[], [np.nan], [1e-300, 1e300], [0.0], [-1.0], [np.inf], None, ["x"], [[1.0, 2.0]], [1e308]],
}  # fmt: skip


def _target_abuses():
    made = {name: Abuse(_of_y(change), r"\by\b|label|class|target|array|numeric|complex|convert|samples|nu\b", "y")
            for name, change in _TARGETS.items()}  # fmt: skip
    for n_rows in (0, 1, 2, 3):
        made[f"{n_rows} rows"] = Abuse(_few_rows(n_rows), r"sample|class|rows|pair|splits|cv|y\b|nu\b")
    for needed, table in (("sample_weight", _WEIGHTS), ("qid", _QUERIES)):
        for name, make in table.items():

            def change(inputs, make=make, needed=needed):
                inputs.arguments[needed] = make(_N_ROWS)

            words = {"sample_weight": r"sample_weight|weights|\bweigh\b", "qid": r"\bqid\b|\bquery\b"}
            made[name] = Abuse(change, words[needed], needed)
    return made


def _parameter_abuses():
    made = {}
    for name, values in _PARAMETERS.items():
        for value in values:

            def change(inputs, name=name, value=value):
                inputs.parameters[name] = value

            shown = "10**400" if isinstance(value, int) and value > 10**300 else repr(value)
            culprits = rf"\b{name}\b|\bX\b|features|precision@"
            made[f"{name}={shown}"] = Abuse(change, culprits, name)
    return made


ABUSES = {**_row_abuses(), **_sparse_breaks(), **_target_abuses(), **_parameter_abuses()}
_LINEAR = [{"solver": solver} for solver in ("auto", "dcd", "avsf", "climb", "newton", "ocas", "svmperf")]
_LINEAR += [{"solver": solver, "penalize_intercept": False} for solver in ("auto", "newton", "ocas", "svmperf")]
_KERNELS = [
    {"kernel": kernel, "solver": solver}
    for kernel in ("linear", "poly", "rbf", "sigmoid")
    for solver in ("svmlight", "smo")
]
_PLANES = [{"solver": "ocas"}, {"solver": "svmperf"}]
SETTINGS = {
    "LinearSVC": [{**one, "loss": loss} for one in _LINEAR for loss in ("hinge", "squared_hinge")],
    "LinearSVR": [{**one, "loss": f"{kind}epsilon_insensitive"} for one in _LINEAR for kind in ("", "squared_")],
    "LinearSVCCV": [{}, {"solver": "dcd", "loss": "hinge"}],
    "LinearSVRCV": [{}, {"solver": "dcd"}],
    "SVC": _KERNELS, "NuSVC": _KERNELS, "SVR": _KERNELS, "NuSVR": _KERNELS, "OneClassSVM": _KERNELS,
    "TransductiveSVC": [{"kernel": "linear"}, {"kernel": "rbf"}],
    "RankSVM": _PLANES, "OrdinalSVC": _PLANES, "ROCAreaSVC": _PLANES, "MeasureSVC": _PLANES,
    "LinearOneClassSVM": [{"solver": solver} for solver in ("newton", "ocas", "svmperf")],
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """An abuse of an estimator with some settings."""

    estimator: str
    settings: tuple
    abuse: str

    def __str__(self):
        shown = ", ".join(str(value) for _, value in self.settings)
        return f"{self.estimator}({shown}) {self.abuse}"


def all_cases():
    """Return every case, with default parameters first."""
    return [
        Case(name, tuple(settings.items()), abuse)
        for name in ESTIMATORS
        for settings in [{}, *(each for each in SETTINGS[name] if each)]
        for abuse, what in ABUSES.items()
        if _applies(name, what.needs)
    ]


def _applies(name, needs):
    estimator = getattr(widemargin, name)
    if needs == "y":
        return name not in ("OneClassSVM", "LinearOneClassSVM")
    if needs in ("sample_weight", "qid"):
        return needs in inspect.signature(estimator.fit).parameters
    return needs is None or needs in estimator._get_param_names()


def judge(case):
    """Return (whether the case ended well, what happened)."""
    abuse, inputs = ABUSES[case.abuse], good_inputs(case.estimator)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with np.errstate(all="ignore"):
            abuse.change(inputs)
        try:
            model = getattr(widemargin, case.estimator)(**{**dict(case.settings), **inputs.parameters})
            model.fit(inputs.X, inputs.y, **inputs.arguments)
            outputs = predictions(model, inputs.X if inputs.new_rows is None else inputs.new_rows)
        except Exception as error:
            return _judge_refusal(error, abuse.culprits)
    return _judge_model(model, outputs, told)


def _judge_refusal(error, culprits):
    text = f"{type(error).__name__}: {error}"
    if not isinstance(error, (ValueError, TypeError)):
        return False, f"raised {text}"
    if culprits is None:
        return False, f"refused what is good: {text}"
    if not re.search(culprits, str(error), re.IGNORECASE):
        return False, f"unclear: {text}"
    return True, f"refused: {text}"


def predictions(model, rows):
    """Return all that a model has to say of rows."""
    names = ("predict", "decision_function", "score_samples", "position")
    return {name: getattr(model, name)(rows) for name in names if hasattr(model, name)}


def _judge_model(model, outputs, told):
    for name, values in {**vars(model), **outputs}.items():
        if (name.endswith("_") or name in outputs) and not _is_finite(values):
            return False, f"{name} is not finite (status {model.status_}): {str(values)[:200]}"
    short = model.status_ != "converged"
    if short and not any(issubclass(one.category, ConvergenceWarning) for one in told):
        return False, f"status {model.status_} without a warning"
    if not short and getattr(model, "stopping", None) == "gap" and not model.gap_ <= model.tol:
        return False, f"converged with gap {model.gap_}, asked {model.tol}"
    numeric = [one for one in told if issubclass(one.category, RuntimeWarning)]
    if numeric:
        return (
            False,
            f"{numeric[0].category.__name__}: {numeric[0].message} ({numeric[0].filename}:{numeric[0].lineno})",
        )
    return True, f"fitted: {model.status_}"


def _is_finite(values):
    """Whether all numbers in a fitted attribute are finite; of a history the model's own line, the last."""
    if issparse(values):
        return bool(np.isfinite(values.data).all())
    if isinstance(values, np.ndarray) and values.dtype.names:
        return all(_is_finite(values[-1:][name]) for name in values.dtype.names)
    if isinstance(values, (list, tuple)):
        return all(map(_is_finite, values))
    if isinstance(values, dict):
        return all(map(_is_finite, values.values()))
    if isinstance(values, (float, np.floating)) or (isinstance(values, np.ndarray) and values.dtype.kind == "f"):
        return bool(np.isfinite(values).all())
    return True


def main():
    """Judge the cases whose numbers come in, each within limits of memory and time."""
    cases = all_cases()
    numbers = [int(line) for line in sys.stdin.read().split()]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in numbers:
        print(json.dumps({"begins": number}), flush=True)
        begun, compiling = time.process_time(), event.TimingListener()
        event.register("numba:compile", compiling)
        good, outcome = judge(cases[number])
        event.unregister("numba:compile", compiling)
        seconds = time.process_time() - begun - (compiling.duration if compiling.done else 0.0)
        print(json.dumps({"judged": number, "good": good, "outcome": outcome, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
