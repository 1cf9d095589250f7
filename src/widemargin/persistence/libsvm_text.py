"""Reading and writing LIBSVM's model text; `LibsvmModel` holds its content.

    svm_type c_svc
    kernel_type rbf
    gamma 0.5               (degree, gamma, coef0: those that the kernel has)
    nr_class 3              (2 for regression and one-class models)
    total_sv 2
    rho 0.1 0.2 0.3         (one number per pair of classes)
    label 3 1 2             (classification only, integers, in any order)
    probA 1 1 1             (with probabilities; for regression the Laplace scale, without probB)
    probB 0 0 0
    prob_density_marks ...  (one-class with probabilities: 10 numbers)
    nr_sv 1 1 0             (classification only: number of support vectors of each label)
    SV
    0.5 -1 1:0.25 3:1       (nr_class - 1 coefficients, then the vector; precomputed kernels: 0:number of the row)

LIBSVM ignores the rest of the line after `SV`. We use it for properties of the model that the support vectors below do
not show, so that a model is restored to the bit:

    dense            the support vectors are a dense array; without it they are sparse
    float32          they have single precision; without it double precision
    features=N       the number of features, if the last one is zero in all support vectors
    ties=ascending   of classes with equally many votes the smallest label wins, not the first one in the file, and
                     probabilities are coupled in that order
    sha256=...       the checksum (see `persistence.text`)

The support vectors are parsed by the compiled reader of data files. For this, a line with several coefficients is
split, so that each coefficient but the last is on a line of its own.
"""

import io
import re
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, issparse

from widemargin.data.svmlight.mistakes import LARGEST_INDEX
from widemargin.data.svmlight.reader import read_svmlight
from widemargin.data.svmlight.writer import write_svmlight
from widemargin.errors import FormatError
from widemargin.persistence.kernel_fields import N_MARKS
from widemargin.persistence.text import CHECKSUM, Header, check_checksum, check_complete, shown, with_checksum

KEYS = (
    "svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho", "label",
    "probA", "probB", "prob_density_marks", "nr_sv", "SV",
)  # fmt: skip
CLASSIFIERS, REGRESSORS, ONE_CLASS = ("c_svc", "nu_svc"), ("epsilon_svr", "nu_svr"), "one_class"
_TYPES = (*CLASSIFIERS, *REGRESSORS, ONE_CLASS)
_NUMBERS_OF = {  # the parameters of each kernel
    "linear": (),
    "polynomial": ("degree", "gamma", "coef0"),
    "rbf": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
    "precomputed": (),
}
_MAX_NUMBERS_PER_ENTRY = 32  # size of a dense array per entry of the text; bounds the memory that a file can claim
_WORDS = re.compile(
    rb"(?P<dense>dense)? ?(?P<float32>float32)? ?(?:features=(?P<features>[0-9]{1,10}))? ?"
    rb"(?P<ascending>ties=ascending)? ?(?:" + CHECKSUM + rb")?"
)
_BYTES_OF_ROWS = b"0123456789+-.eE: \t\r\n"


@dataclass(frozen=True)
class LibsvmModel:
    """The content of a model text: arrays in LIBSVM's layout and in the file's order of labels."""

    svm_type: str
    kernel: str
    numbers: dict  # degree, gamma, coef0
    rho: np.ndarray  # (n_pairs,)
    coefficients: np.ndarray  # (n_classes - 1, n_vectors)
    vectors: np.ndarray | csr_array | None  # (n_vectors, n_features); None if precomputed
    n_features: int | None  # None if unknown, which happens only without vectors
    rows: np.ndarray | None = None  # precomputed: the training row of each vector, from 0
    labels: np.ndarray | None = None  # (n_classes,)
    n_support: np.ndarray | None = None  # (n_classes,)
    probA: np.ndarray | None = None  # (n_pairs,), or (1,) for regression
    probB: np.ndarray | None = None
    marks: np.ndarray | None = None  # (10,)
    ties_ascend: bool = False  # whether the smallest label wins a tie of votes, not the first one in the file


def write_text(machine):
    """Return LIBSVM's model text as bytes."""
    lines = [f"svm_type {machine.svm_type}", f"kernel_type {machine.kernel}"]
    lines += [_line(key, [machine.numbers[key]]) for key in _NUMBERS_OF[machine.kernel]]
    n_columns, n_vectors = machine.coefficients.shape
    lines += [f"nr_class {n_columns + 1}", f"total_sv {n_vectors}", _line("rho", machine.rho)]
    fields = {
        "label": machine.labels,
        "probA": machine.probA,
        "probB": machine.probB,
        "prob_density_marks": machine.marks,
        "nr_sv": machine.n_support,
    }
    lines += [_line(key, values) for key, values in fields.items() if values is not None]
    entries = _entries_of(machine)
    lines.append(" ".join(["SV", *_words_of(machine, entries), ""]))
    return with_checksum("\n".join(lines).encode("ascii"), b"\n" + _rows_text(machine, entries))


def _line(key, values):
    return " ".join([key, *(f"{value:.17g}" for value in np.asarray(values).tolist())])


def _entries_of(machine):
    """Return the entries to be written, as CSR: the nonzeros; all entries of a dense array with very few nonzeros."""
    if machine.rows is not None:
        serial, n = machine.rows + 1.0, len(machine.rows)
        return csr_array((serial, np.zeros(n, dtype=np.int64), np.arange(n + 1)), shape=(n, 1))
    if issparse(machine.vectors):
        X = csr_array(machine.vectors, dtype=np.float64, copy=True)
        X.sum_duplicates()
        return X
    vectors = np.asarray(machine.vectors, dtype=np.float64)
    is_written = (vectors != 0) | np.signbit(vectors)
    if np.count_nonzero(is_written) * _MAX_NUMBERS_PER_ENTRY < is_written.size:
        is_written[:] = True
    rows, columns = np.nonzero(is_written)
    indptr = np.searchsorted(rows, np.arange(len(vectors) + 1))
    return csr_array((vectors[rows, columns], columns, indptr), shape=vectors.shape)


def _words_of(machine, entries):
    """Return the words that follow `SV`."""
    words = []
    if machine.vectors is not None and not issparse(machine.vectors):
        words.append("dense")
    if machine.vectors is not None and machine.vectors.dtype == np.float32:
        words.append("float32")
    columns = entries.indices if machine.rows is None else machine.rows
    if machine.n_features is not None and machine.n_features != columns.max(initial=-1) + 1:
        words.append(f"features={machine.n_features}")
    if machine.ties_ascend:
        words.append("ties=ascending")
    return words


def _rows_text(machine, entries):
    """Return the lines after `SV`; each number has the fewest digits, at most 17, that identify it."""
    n_columns, n_vectors = machine.coefficients.shape
    if n_vectors == 0:
        return b""
    # Written as data rows whose labels are the coefficients; the vector belongs to the row of its last coefficient.
    indptr = np.zeros(n_columns * n_vectors + 1, dtype=np.int64)
    indptr[1:] = np.repeat(entries.indptr[:-1], n_columns)
    indptr[n_columns::n_columns] = entries.indptr[1:]
    X = csr_array((entries.data, entries.indices, indptr), shape=(n_columns * n_vectors, entries.shape[1]))
    file = io.BytesIO()
    write_svmlight(file, X, machine.coefficients.T.ravel(), zero_based=machine.rows is not None)
    text = np.frombuffer(file.getbuffer(), dtype=np.uint8)
    ends = np.flatnonzero(text == ord("\n")).reshape(n_vectors, n_columns)
    text[ends[:, :-1]] = ord(" ")
    return text.tobytes()


def read_text(content, path):
    """Return the LibsvmModel of a model text; FormatError with the line of the first error."""
    check_complete(content, path)
    header = Header(content, path, "LIBSVM", KEYS)
    check_checksum(content, content.rfind(b"\n", 0, header.end - 1) + 1, header.end, path)
    svm_type = header.choice("svm_type", _TYPES)
    kernel = header.choice("kernel_type", _NUMBERS_OF)
    n_classes = header.integer("nr_class", at_least=2)
    n_vectors = header.integer("total_sv", at_least=0)
    fields = {"rho": header.numbers("rho", n_classes * (n_classes - 1) // 2)}
    fields |= (_classes_in if svm_type in CLASSIFIERS else _no_classes_in)(header, svm_type, n_classes, n_vectors)
    numbers, words = _numbers_in(header, kernel), _words_in(header, kernel)
    options = {"dtype": np.float32 if words["float32"] else np.float64, "zero_based": "auto"}
    if kernel == "precomputed":
        options["zero_based"] = True
    coefficients, X = _read_rows(content[header.end :], header, (n_vectors, n_classes - 1), options)
    rows = _rows_in(X, header) if kernel == "precomputed" else None
    n_shown = X.shape[1] if rows is None else int(rows.max(initial=-1)) + 1
    n_features = _n_features(header, words, n_shown, n_vectors)
    vectors = None
    if kernel != "precomputed":
        vectors = csr_array((X.data, X.indices, X.indptr), shape=(n_vectors, n_features or 0))
        vectors = _array(vectors, header) if words["dense"] else vectors
    return LibsvmModel(
        svm_type,
        kernel,
        numbers,
        **fields,
        coefficients=coefficients,
        vectors=vectors,
        n_features=n_features,
        rows=rows,
        ties_ascend=words["ascending"] is not None,
    )


def _words_in(header, kernel):
    """Return the words that follow `SV`, by name; None for those that are absent."""
    text = b" ".join(header.words("SV", header.n_words("SV")))
    words = _WORDS.fullmatch(text)
    if not words or (
        kernel == "precomputed" and (words["dense"] or words["float32"])
    ):  # a precomputed kernel has no vectors
        header.refuse("SV", f"{shown(text)} must not follow SV.")
    return words.groupdict()


def _n_features(header, words, n_shown, n_vectors):
    """Return the number of features from the header, else from the vectors; None if there are no vectors."""
    n_shown = max(n_shown, 1)  # vectors may be empty
    if words["features"] is None:
        return n_shown if n_vectors else None
    n_features = int(words["features"])
    if not n_shown <= n_features <= LARGEST_INDEX:
        header.refuse("SV", f"features must be from {n_shown} to {LARGEST_INDEX}, got {n_features}.")
    return n_features


def _numbers_in(header, kernel):
    """Return degree, gamma and coef0 from the header; those that the kernel has must be present."""
    needed = _NUMBERS_OF[kernel]
    numbers = {}
    if "degree" in needed or "degree" in header:
        numbers["degree"] = header.integer("degree", at_least=0)
    for key in ("gamma", "coef0"):
        if key in needed or key in header:
            numbers[key] = header.number(key)
    if numbers.get("gamma", 0.0) < 0:
        header.refuse("gamma", f"gamma must not be negative, got {numbers['gamma']}.")
    return numbers


def _classes_in(header, svm_type, n_classes, n_vectors):
    """Return the fields that only classifiers have."""
    if "prob_density_marks" in header:
        header.refuse("prob_density_marks", f"prob_density_marks belong to {ONE_CLASS}, not to {svm_type}.")
    fields = {"labels": header.labels(n_classes), "n_support": np.array(header.integers("nr_sv", n_classes, 0))}
    if fields["n_support"].sum() != n_vectors:
        header.refuse("nr_sv", f"nr_sv adds up to {fields['n_support'].sum()}, but total_sv is {n_vectors}.")
    if "probA" in header or "probB" in header:
        fields |= {key: header.numbers(key, n_classes * (n_classes - 1) // 2) for key in ("probA", "probB")}
    return fields


def _no_classes_in(header, svm_type, n_classes, n_vectors):
    """Return the fields that only regression and one-class models have; FormatError for fields of classifiers."""
    if n_classes != 2:
        header.refuse("nr_class", f"nr_class must be 2 for {svm_type}, got {n_classes}.")
    for key in ("label", "nr_sv", "probB", "probA" if svm_type == ONE_CLASS else "prob_density_marks"):
        if key in header:
            header.refuse(key, f"a model of type {svm_type} has no {key}.")
    if "probA" in header:
        scale = header.numbers("probA", 1)
        if scale[0] < 0:
            header.refuse("probA", f"probA is the scale of a distribution and must not be negative, got {scale[0]}.")
        return {"probA": scale}
    if "prob_density_marks" in header:
        marks = header.numbers("prob_density_marks", N_MARKS)
        if (np.diff(marks) < 0).any():
            header.refuse("prob_density_marks", "prob_density_marks must not decrease.")
        return {"marks": marks}
    return {}


def _read_rows(text, header, shape, options):
    """Return the coefficients (n_columns, n_vectors) and the entries (CSR) from the lines after `SV`."""
    n_vectors, n_columns = shape
    n_lines = text.count(b"\n")
    if n_lines != n_vectors:
        header.refuse("total_sv", f"total_sv is {n_vectors}, but {n_lines} lines follow `SV`.")
    if n_vectors == 0:
        return np.empty((n_columns, 0)), csr_array((0, 0))
    if text.translate(None, _BYTES_OF_ROWS):
        _refuse_words(text, header)
    try:
        file = io.BytesIO(_one_coefficient_per_line(text, n_columns))
        X, coefficients, _ = read_svmlight(file, **options)
    except FormatError as error:
        _refuse_counts(text, header, n_columns)
        line = header.length + (error.line + n_columns - 1) // n_columns
        raise FormatError(header.path, error.rule.replace("label", "coefficient", 1), line) from error
    if len(coefficients) != n_columns * n_vectors:
        _refuse_counts(text, header, n_columns)
    X = csr_array((X.data, X.indices, X.indptr[::n_columns].copy()), shape=(n_vectors, X.shape[1]))
    return np.ascontiguousarray(coefficients.reshape(n_vectors, n_columns).T), X


def _one_coefficient_per_line(text, n_columns):
    """Return the text with a newline after each coefficient of a line but the last one."""
    if n_columns == 1:
        return text
    lines = text.split(b"\n")
    if b"  " in text or b"\t" in text or b"\n " in text or text.startswith(b" "):
        lines = [b" ".join(line.split()) for line in lines]
    return b"\n".join([line.replace(b" ", b"\n", n_columns - 1) for line in lines])


def _refuse_words(text, header):
    """Raise FormatError at the first word that contains a byte which cannot be part of a number."""
    for k, line in enumerate(text.split(b"\n")):
        if line.translate(None, _BYTES_OF_ROWS):
            word = next(word for word in re.split(rb"[ \t\r]", line) if word.translate(None, _BYTES_OF_ROWS))
            rule = f"{shown(word)} is neither a finite number nor index:value of one."
            raise FormatError(header.path, rule, header.length + k + 1)


def _refuse_counts(text, header, n_columns):
    """Raise FormatError at the first line, if any, that does not begin with `n_columns` coefficients."""
    for k, line in enumerate(text.split(b"\n")[:-1]):
        n_found = sum(1 for word in line.split() if b":" not in word)
        if n_found != n_columns:
            rule = f"the line must begin with {n_columns} coefficients, got {n_found}."
            raise FormatError(header.path, rule, header.length + k + 1)


def _rows_in(X, header):
    """Return the training rows, from 0, that a precomputed kernel's entries `0:number` refer to."""
    n_entries = np.diff(X.indptr)
    k = np.flatnonzero(n_entries != 1)
    if not len(k):
        serial = X.data
        k = np.flatnonzero((X.indices != 0) | (serial < 1) | (serial != np.floor(serial)) | (serial > 2**31 - 1))
    if len(k):
        rule = "the vector of a precomputed kernel must be 0:number, the number of a training row from 1."
        raise FormatError(header.path, rule, header.length + int(k[0]) + 1)
    return X.data.astype(np.int64) - 1


def _array(X, header):
    """Return sparse rows as a dense array; FormatError if the text has too few entries for an array of this size."""
    if X.shape[0] * X.shape[1] > _MAX_NUMBERS_PER_ENTRY * X.nnz:
        required, size = f"one number in {_MAX_NUMBERS_PER_ENTRY}", f"{X.shape[0]} x {X.shape[1]}"
        header.refuse("SV", f"dense vectors must spell out {required}, got {X.nnz} for {size}.")
    vectors = np.zeros(X.shape, dtype=X.dtype)
    vectors[np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices] = X.data  # X.toarray() loses -0.0
    return vectors
