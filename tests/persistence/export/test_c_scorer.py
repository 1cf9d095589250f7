"""C files: the weights to the bit, and the results of the model, compiled with all warnings as errors."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from tests.persistence.export.fitted_models import LINEAR, NEW, fitted
from tests.persistence.export.test_numpy_scorer import with_short_weights

from widemargin import export_c

STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2"]
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler, cc")
_ROW = np.ctypeslib.ndpointer(np.float64, ndim=1, flags="C")


class Library:
    """The functions of a compiled file, as functions of rows."""

    def __init__(self, model, folder, prefix="svm"):
        number = len(list(folder.iterdir()))  # a library of a name that is open already would not be opened
        source, library = folder / f"{number}.c", folder / f"{number}.so"
        export_c(model, source, prefix=prefix)
        subprocess.run(["cc", *STRICT, "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
        self.model, self.library, self.prefix = model, ctypes.CDLL(str(library)), prefix
        self.text = source.read_text(encoding="ascii")

    def has(self, name):
        return hasattr(self.library, f"{self.prefix}_{name}")

    def predict(self, rows):
        function = getattr(self.library, f"{self.prefix}_predict")
        function.argtypes = [_ROW]
        is_class = hasattr(self.model, "classes_")
        function.restype = ctypes.c_int if is_class or hasattr(self.model, "offset_") else ctypes.c_double
        values = np.array([function(row) for row in np.ascontiguousarray(rows)])
        return self.model.classes_[values] if is_class else values

    def fill(self, name, rows, shape):
        function = getattr(self.library, f"{self.prefix}_{name}")
        function.argtypes, function.restype = [_ROW, _ROW], None
        found = np.full((len(rows), int(np.prod(shape))), np.nan)
        for row, out in zip(np.ascontiguousarray(rows), found, strict=True):
            function(row, out)
        return found.reshape(len(rows), *shape)


@needs_compiler
@pytest.mark.parametrize("name", [name for name in LINEAR if name != "SVR, linear"])
def test_compiled_results_are_those_of_the_model_to_the_bit_where_nothing_is_rounded(name, tmp_path):
    model, Z = with_short_weights(fitted(name)), np.round(4 * NEW)
    library = Library(model, tmp_path)
    assert np.array_equal(library.predict(Z), model.predict(Z))
    has_decision = hasattr(model, "decision_function") and name != "RankSVM"
    assert library.has("decision_function") == has_decision
    if has_decision:
        expected = model.decision_function(Z)
        assert np.array_equal(library.fill("decision_function", Z, expected.shape[1:]), expected)
    assert library.has("predict_proba") == hasattr(model, "predict_proba")
    if hasattr(model, "predict_proba"):
        p = library.fill("predict_proba", Z, (len(model.classes_),))
        np.testing.assert_allclose(p, model.predict_proba(Z), rtol=1e-12, atol=0)


@needs_compiler
@pytest.mark.parametrize("name", LINEAR)
def test_compiled_results_are_those_of_the_model_up_to_rounding(name, tmp_path):
    model = fitted(name)
    library = Library(model, tmp_path)
    found, expected = library.predict(NEW), model.predict(NEW)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    else:
        assert found.tolist() == expected.tolist()


@needs_compiler
def test_probabilities_do_not_overflow(tmp_path):
    for name in ("LinearSVC, logistic", "LinearSVC, logistic, four"):
        model, Z = fitted(name), 1e4 * NEW
        p = Library(model, tmp_path).fill("predict_proba", Z, (len(model.classes_),))
        np.testing.assert_allclose(p, model.predict_proba(Z), atol=1e-12)


@needs_compiler
def test_labels_are_in_the_file(tmp_path):
    words = Library(fitted("LinearSVC, words"), tmp_path, prefix="wine")
    names = (ctypes.c_char_p * 4).in_dll(words.library, "wine_labels")
    assert [name.decode() for name in names] == fitted("LinearSVC, words").classes_.tolist()
    numbers = Library(fitted("LinearSVC"), tmp_path)
    assert list((ctypes.c_longlong * 2).in_dll(numbers.library, "svm_labels")) == [-3, 7]
    halves = Library(fitted("LinearSVC, numbers"), tmp_path)
    assert list((ctypes.c_double * 2).in_dll(halves.library, "svm_labels")) == [-1.0, 2.0]


@needs_compiler
def test_a_program_may_have_two_models(tmp_path):
    for prefix, name in (("one", "LinearSVC, logistic"), ("two", "LinearSVR")):
        export_c(fitted(name), tmp_path / f"{prefix}.c", prefix=prefix)
    main = "int one_predict(const double *); double two_predict(const double *);\n"
    main += "int main(void) { double x[4] = {0}; return one_predict(x) > 1 || two_predict(x) > 1e9; }\n"
    (tmp_path / "main.c").write_text(main)
    sources = [tmp_path / name for name in ("one.c", "two.c", "main.c")]
    subprocess.run(["cc", *STRICT, "-o", tmp_path / "program", *sources, "-lm"], check=True)
    subprocess.run([tmp_path / "program"], check=True)


def test_extreme_labels_and_strings_are_written_so_that_a_compiler_takes_them(tmp_path):
    from copy import deepcopy

    model = deepcopy(fitted("LinearSVC"))
    model.classes_ = np.array([-(2**63), 2**63 - 1])
    export_c(model, tmp_path / "model.c")
    assert "{-9223372036854775807LL - 1, 9223372036854775807LL}" in (tmp_path / "model.c").read_text()
    model.classes_ = np.array(['P_coef??/"\\', "svm"])
    export_c(model, tmp_path / "model.c", prefix="other")
    assert r'{"P_coef\077\077/\042\134", "svm"}' in (tmp_path / "model.c").read_text()
    model.classes_ = np.array(["a\0b", "svm"], dtype=object)
    with pytest.raises(TypeError, match="has a null character, which ends a string in C"):
        export_c(model, tmp_path / "model.c")


@pytest.mark.parametrize("prefix", ["", "2x", "a-b", "_x", "ä", None])
def test_a_prefix_must_be_a_word_of_c(prefix, tmp_path):
    with pytest.raises(ValueError, match="prefix must be letters, digits and underscores of ASCII"):
        export_c(fitted("LinearSVC"), tmp_path / "model.c", prefix=prefix)


def test_models_that_are_not_linear_are_refused(tmp_path):
    with pytest.raises(TypeError, match="export_c writes models with a weight for each feature; this SVC has the ker"):
        export_c(fitted("SVC"), tmp_path / "model.c")
    assert not list(tmp_path.iterdir())
