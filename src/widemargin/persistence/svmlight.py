"""Reading and writing SVM-light's model text, which SVM-rank and SVM-perf use too.

    SVM-light Version V6.20
    0 # kernel type                               (0: linear; for others see `svmlight_kernel`)
    3 # kernel parameter -d                       (and three more parameters of other kernels)
    ...
    empty# kernel parameter -u                    (free text of at most 49 characters)
    78 # highest feature index
    12 # number of training documents
    2 # number of support vectors plus 1
    0.5 # threshold b, each following line is a SV (starting with alpha*y)
    1 3:-0.498 77:0.5375 #                        (a line per support vector: coefficient, features, comment)

The decision value is Σ coefficient K(support vector, x) − b. Of a linear model we write one vector, w, with coefficient
1, and of a model with a kernel its support vectors or basis points. A checksum is the comment of the last line (see
`text`). Each program accepts only its own version, which is V6.20 in SVM-light 6.20, SVM-Perf 3.00 and SVM-rank.

The programs print decision values, not labels, so that the format stores neither labels nor the kind of model. We store
both in the free text: the estimator's name, then the two class labels, which must be integers, then the measure of a
MeasureSVC. If the free text is not ours, the caller says what kind of model it is, and the classes are −1 and 1.
"""

import io
import re

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import is_classifier

from widemargin.data.svmlight.compression import LONGEST_MAGIC, compression_of
from widemargin.data.svmlight.reader import read_svmlight
from widemargin.errors import FormatError
from widemargin.models.cutting_plane.measure import MeasureSVC
from widemargin.models.cutting_plane.ordinal import OrdinalSVC
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.kernel.base import KernelModel
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.persistence import svmlight_kernel
from widemargin.persistence.kernel_fields import arrays_of, check_arrays
from widemargin.persistence.linear_fields import check_measure, check_weights
from widemargin.persistence.text import check_checksum, check_complete, integer_labels, number, shown, with_checksum
from widemargin.persistence.vector_fields import check_numbers, check_vectors, vector_arrays

ESTIMATORS = (LinearSVC, LinearSVR, *svmlight_kernel.ESTIMATORS)
TASKS = {"classification": LinearSVC, "regression": LinearSVR, "rank": RankSVM}  # that a caller may ask for

_START = b"SVM-light Version "
_VERSION = re.compile(rb"SVM-light Version V[56]\.[0-9]{1,4}[ \r]*")
_WRITTEN_VERSION = "V6.20"
_COMMENTS = (
    "kernel type", "kernel parameter -d", "kernel parameter -g", "kernel parameter -s", "kernel parameter -r",
    "kernel parameter -u", "highest feature index", "number of training documents",
    "number of support vectors plus 1", "threshold b, each following line is a SV (starting with alpha*y)",
)  # fmt: skip
_KERNEL, _FREE_TEXT, _HIGHEST, _N_ROWS, _N_VECTORS, _THRESHOLD = 0, 5, 6, 7, 8, 9  # positions in _COMMENTS
_DENSE = "dense"  # in the free text of a machine whose support vectors were an array, so that it predicts to the bit
_MAX_NUMBERS_PER_BYTE = 64  # of such an array, which bounds the memory that a small file can claim
_LONGEST_FREE_TEXT = 49  # SVM-light reads it into 50 bytes
_INTEGER = re.compile(rb"[0-9]{1,19}")
_LABEL = re.compile(r"-?[0-9]{1,10}")
_INT32 = np.iinfo(np.int32)
# A file of n bytes may state at most so many features, which bounds the memory that a small file can claim.
_MAX_FEATURES_OF_ANY_FILE, _MAX_FEATURES_PER_BYTE = 1 << 20, 16


def recognises(head):
    """Return whether a file with these first bytes is SVM-light's model text."""
    return head.startswith(_START)


def write(model):
    """Return SVM-light's model text, as bytes, of a fitted model."""
    _check_place(model)
    if isinstance(model, KernelModel) or hasattr(model, "basis_"):
        return _write_expansion(model)
    coef, intercept = model.coef_.toarray() if issparse(model.coef_) else model.coef_, np.asarray(model.intercept_)
    check_weights(model, {"coef_": coef, "intercept_": intercept})
    w, b = coef.ravel().astype(np.float64), 0.0 - float(intercept.ravel()[0])
    free_text = _free_text(model)
    values = [0, 3, 1, 1, 1, free_text, len(w), 1, 2, f"{b:.17g}"]
    lines = [f"{_START.decode()}{_WRITTEN_VERSION}"]
    lines += [_header_line(place, value) for place, value in enumerate(values)]
    text = "\n".join([*lines, _vector(w, np.flatnonzero(w))])
    if len(w) > _max_features(len(text)):  # written with its zeros, the file is large enough for so many features
        text = "\n".join([*lines, _vector(w, np.arange(len(w)))])
    return with_checksum(text.encode("ascii"), b"\n")


def _write_expansion(model):
    """Return the text of a kernel machine, or of a cutting plane model with a kernel."""
    svmlight_kernel.check_machine(model)
    vectors, coefficients = svmlight_kernel.expansion_of(model)
    if isinstance(model, KernelModel):
        check_arrays(model, arrays_of(model, keep_dual=False))
    else:
        check_weights(model, {"intercept_": np.asarray(model.intercept_)})
        check_numbers("basis_coef_", coefficients, [(vectors.shape[0],)])
        check_vectors("basis_", vector_arrays("basis_", vectors), (vectors.shape[0], model.n_features_in_))
    n_features, b = model.n_features_in_, 0.0 - float(np.ravel(model.intercept_)[0])
    lines = svmlight_kernel.vector_lines(model)
    counts = [n_features, svmlight_kernel.number_of_rows(model), len(lines) + 1, f"{b:.17g}"]
    values = [*svmlight_kernel.kernel_values(model), _free_text(model), *counts]
    header = [f"{_START.decode()}{_WRITTEN_VERSION}"]
    header += [_header_line(place, value) for place, value in enumerate(values)]
    text = "\n".join([*header, *lines])
    is_short = n_features * len(lines) > _MAX_NUMBERS_PER_BYTE * len(text) and not issparse(vectors)
    if is_short or n_features > _max_features(len(text)):
        raise ValueError(
            f"SVM-light's text of {len(lines)} support vectors is too short for {n_features} features: its reader "
            'would refuse it. Save with format="widemargin".'
        )
    return with_checksum(f"{text} ".encode("ascii"), b"\n") if lines else f"{text}\n".encode("ascii")


def _header_line(place, value):
    """Return a line of the header, with spaces as SVM-light writes them."""
    before = "" if place == _FREE_TEXT else " "
    after = "" if place in (_KERNEL, _THRESHOLD) else " "
    return f"{value}{before}# {_COMMENTS[place]}{after}"


def _check_place(model):
    """Raise TypeError if a kernel machine has a basis, or a model has more than one weight vector and one threshold."""
    if isinstance(model, KernelModel) and hasattr(model, "basis_"):
        raise TypeError(
            f"SVM-light's text of a {type(model).__name__} has support vectors, and this one has coefficients of basis "
            'points. Save with format="widemargin" or format="libsvm".'
        )
    if isinstance(model, OrdinalSVC):
        raise TypeError(
            "SVM-light's text has one threshold, and no place for thresholds_ of an OrdinalSVC. "
            'Save with format="widemargin".'
        )
    if is_classifier(model) and len(model.classes_) > 2:
        other = "libsvm" if isinstance(model, KernelModel) else "liblinear"
        raise TypeError(
            f"SVM-light's text has one weight vector, and no place for {len(model.classes_)} classes. "
            f'Save with format="widemargin" or format="{other}".'
        )


def _free_text(model):
    """Return the free text of a model: the names of its estimator, labels and measure."""
    words = [type(model).__name__]
    if is_classifier(model):
        words += map(str, integer_labels(model.classes_, "SVM-light"))
    if isinstance(model, MeasureSVC):
        words.append(model.measure)
    has_vectors = isinstance(model, KernelModel) or hasattr(model, "basis_")
    if has_vectors and not issparse(svmlight_kernel.expansion_of(model)[0]):
        words.append(_DENSE)
    text = " ".join(words)
    if len(text) > _LONGEST_FREE_TEXT:
        raise ValueError(
            f"SVM-light's text has {_LONGEST_FREE_TEXT} characters for labels and measure, {text!r} has {len(text)}. "
            'Use shorter labels, or save with format="widemargin".'
        )
    return text


def _vector(w, features):
    """Return the line of the weight vector w, with these features only."""
    return " ".join(["1", *(f"{j + 1}:{w[j]:.17g}" for j in features.tolist()), "# "])


def _max_features(n_bytes):
    """Return the largest number of features that a file of so many bytes may state."""
    return _MAX_FEATURES_OF_ANY_FILE + _MAX_FEATURES_PER_BYTE * n_bytes


def read(content, path, task=None):
    """Return the model from SVM-light's model text; FormatError with the line of the first error.

    `task`, a key of TASKS, is the kind of model. None: the one that the free text names, otherwise a classifier.
    """
    check_complete(content, path)
    header = _Header(content, path)
    check_checksum(content, max(header.end, content.rfind(b"#")), len(content), path)
    kernel = _kernel_in(header)
    header.integer(_N_ROWS)
    n_features, b = header.integer(_HIGHEST, at_least=1), header.number(_THRESHOLD)
    if n_features > _max_features(len(content)):
        header.refuse(_HIGHEST, f"{n_features} features are more than a file of {len(content)} bytes can show.")
    model = _model_of(header, kernel, task)
    if is_classifier(model) and not hasattr(model, "classes_"):
        model.classes_ = np.array([-1, 1])
    model.n_features_in_ = n_features
    model.intercept_ = 0.0 - b if isinstance(model, RankSVM) else np.array([0.0 - b])
    if isinstance(model, KernelModel) or kernel != "linear":
        return _read_expansion(model, content[header.end :], kernel, header)
    w = _read_vectors(content[header.end :], n_features, header)
    model.coef_ = w[np.newaxis] if is_classifier(model) else w
    return model


class _Header:
    """The header: the version, and lines `value # comment` whose values are accessed by position in _COMMENTS.

    Attributes
    ----------
    path : str
    end : int
        Number of bytes of the header.
    length : int
        Number of lines of the header.
    """

    length = 1 + len(_COMMENTS)

    def __init__(self, content, path):
        self.path = path
        lines = content.split(b"\n", self.length)
        if len(lines) <= self.length:
            raise FormatError(path, f"the header has {self.length} lines: the file is cut short.", len(lines))
        if not _VERSION.fullmatch(lines[0]):
            raise FormatError(path, f"{shown(lines[0])} is no version of SVM-light from 5.00 to 6.99.", 1)
        self.end = len(content) - len(lines[-1])
        self._values = []
        for place, words in enumerate(_COMMENTS):
            value, sign, comment = lines[1 + place].partition(b"#")
            self._values.append(value.strip())
            if not sign or b" ".join(comment.split()) != words.encode():
                self.refuse(place, f"the line must be `value # {words}`, got {shown(lines[1 + place])}.")

    def refuse(self, place, rule):
        """Raise FormatError at the line of a value."""
        raise FormatError(self.path, rule, 2 + place)

    def integer(self, place, at_least=0):
        """Return an integer, which must be at least `at_least`."""
        value = self._values[place]
        if not _INTEGER.fullmatch(value) or int(value) < at_least:
            self.refuse(place, f"{_COMMENTS[place]} must be an integer from {at_least}, got {shown(value)}.")
        return int(value)

    def number(self, place):
        """Return a finite number."""
        return number(self._values[place], self.path, 2 + place)

    def words(self, place):
        """Return the words of a free text."""
        return self._values[place].decode("ascii", "backslashreplace").split()


def _kernel_in(header):
    """Return the name of the kernel; FormatError for kernels that are functions of the user, and unknown ones."""
    kernel = header.integer(_KERNEL)
    if kernel >= len(svmlight_kernel.KERNELS):
        name = "a function of the user" if kernel == len(svmlight_kernel.KERNELS) else "unknown"
        header.refuse(_KERNEL, f"the kernel is {name} (type {kernel}); types 0 to 3 can be read.")
    return svmlight_kernel.KERNELS[kernel]


def _model_of(header, kernel, task):
    """Return the estimator of a task or, without one, that of the free text or a classifier; without weights."""
    tasks = TASKS if kernel == "linear" else svmlight_kernel.TASKS
    if task is not None:
        return tasks[task]()
    name, *words = header.words(_FREE_TEXT) or [""]
    estimator = next((each for each in ESTIMATORS if each.__name__ == name), None)
    if estimator is None:
        return tasks["classification"]()
    if kernel != "linear" and estimator not in svmlight_kernel.ESTIMATORS:
        header.refuse(_FREE_TEXT, f"a {name} is linear, and this model has the kernel {kernel}.")
    model = estimator()
    if is_classifier(model):
        model.classes_ = _labels(header, words[:2])
        words = words[2:]
    if isinstance(model, MeasureSVC) and words:
        model.measure, *words = words
        try:
            check_measure(model)
        except ValueError as error:
            header.refuse(_FREE_TEXT, str(error))
    if (isinstance(model, KernelModel) or kernel != "linear") and words == [_DENSE]:
        words = []
    if words:
        header.refuse(
            _FREE_TEXT, f"{shown(words[0].encode())} must not follow the name, labels and measure of a {name}."
        )
    return model


def _labels(header, words):
    """Return two labels, ascending 32-bit integers."""
    if len(words) != 2 or not all(map(_LABEL.fullmatch, words)):
        header.refuse(_FREE_TEXT, "a classifier's name must be followed by two integer labels.")
    first, second = map(int, words)
    if not _INT32.min <= first < second <= _INT32.max:
        header.refuse(_FREE_TEXT, f"labels must be ascending 32-bit integers, got {first} and {second}.")
    return np.array([first, second])


def _read_expansion(model, text, kernel, header):
    """Return a kernel machine, or a cutting plane model with a kernel, with the vectors of a text."""
    numbers = [header.number(place) for place in range(_KERNEL + 1, _FREE_TEXT)]
    broken = svmlight_kernel.check_numbers(kernel, numbers)
    if broken is not None:
        header.refuse(_KERNEL + 1, broken)
    X, alpha = _read_lines(text, model.n_features_in_, header)
    if X is None:
        X, alpha = csr_array((0, model.n_features_in_)), np.empty(0)
    X.resize(X.shape[0], model.n_features_in_)
    if header.words(_FREE_TEXT)[-1:] == [_DENSE]:
        if X.shape[0] * X.shape[1] > _MAX_NUMBERS_PER_BYTE * len(text):
            header.refuse(_FREE_TEXT, f"a dense array of {X.shape[0]} x {X.shape[1]} is larger than the file can show.")
        X = X.toarray()
    return svmlight_kernel.restore(model, kernel, numbers, X, np.asarray(alpha))


def _read_vectors(text, n_features, header):
    """Return the weight vector, Σ coefficient times support vector over the lines of a text."""
    X, alpha = _read_lines(text, n_features, header)
    w = np.zeros(n_features)
    if X is None:
        return w
    with np.errstate(all="ignore"):
        w[: X.shape[1]] = X.T @ alpha
    if not np.isfinite(w).all():
        raise FormatError(header.path, "the sum of the support vectors is not finite.", header.length + 1)
    return w


def _read_lines(text, n_features, header):
    """Return the support vectors of a text, None if there are none, and their coefficients."""
    n_vectors = header.integer(_N_VECTORS, at_least=1) - 1
    X, alpha = _parse_vectors(text, header) if text.strip() else (None, ())
    if len(alpha) != n_vectors:
        rule = f"number of support vectors plus 1 requires {n_vectors} lines, the file has {len(alpha)}."
        header.refuse(_N_VECTORS, rule)
    if X is not None and X.shape[1] > n_features:
        header.refuse(_HIGHEST, f"highest feature index is {n_features}, but the file has a feature {X.shape[1]}.")
    return X, alpha


def _parse_vectors(text, header):
    """Return support vectors and their coefficients; their lines have the format of a data file."""
    if compression_of(text[:LONGEST_MAGIC]) is not None:  # the reader would decompress it, to any size
        raise FormatError(header.path, "a support vector must begin with its coefficient.", header.length + 1)
    try:
        X, alpha, query = read_svmlight(io.BytesIO(text), zero_based=False)
    except FormatError as error:
        line = None if error.line is None else header.length + error.line
        raise FormatError(header.path, error.rule, line, error.column) from error
    if query is not None:
        raise FormatError(header.path, "support vectors have no qid.", header.length + 1)
    return X, alpha
