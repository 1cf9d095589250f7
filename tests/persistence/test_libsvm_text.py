"""LIBSVM's text is read as written; broken text is refused with its line."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from widemargin import FormatError
from widemargin.persistence.model_file import load_model, save_model

TEXT = b"""svm_type c_svc
kernel_type polynomial
degree 2
gamma 0.5
coef0 -1
nr_class 3
total_sv 4
rho 0.1 -0.2 3e-1
label 7 5 6
probA 1 -2 3
probB -1 .5 +4.
nr_sv 1 2 1
SV
0.5 1 1:0.25 3:1 
-0.5 0 2:1e-3 
-1 0.25
1 -1 1:1 2:2 3:3 
"""  # noqa: W291
REGRESSION = b"""svm_type epsilon_svr
kernel_type linear
nr_class 2
total_sv 2
rho 0.5
probA 0.25
SV
1 1:0.5 3:1 
-1 2:-2 
"""  # noqa: W291
ONE_CLASS = b"""svm_type one_class
kernel_type precomputed
nr_class 2
total_sv 2
rho 0.5
prob_density_marks -5 -4 -3 -2 -1 1 2 3 4 5
SV
1 0:3 
0.5 0:7 
"""  # noqa: W291
DENSE = b"""svm_type nu_svr
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 2
rho 0.5
SV dense float32 features=4
1 1:0.5 3:1 
-1 2:-2 
"""  # noqa: W291
TEXTS = [TEXT, REGRESSION, ONE_CLASS, DENSE]


def refusal(content, path):
    """Return the line and rule with which a file is refused."""
    path.write_bytes(content)
    with pytest.raises(FormatError, match=str(path)) as refused:
        load_model(path)
    return refused.value.line, refused.value.rule


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("blank", [b" ", b"  ", b"\t", b" \t "])
def test_text_is_read_as_written(blank, newline, tmp_path):
    (tmp_path / "model").write_bytes(TEXT.replace(b" ", blank).replace(b"\n", newline))
    loaded = load_model(tmp_path / "model")
    assert loaded.classes_.tolist() == [5, 6, 7]
    assert loaded._class_order.tolist() == [2, 0, 1]
    assert (loaded.kernel, loaded.degree, loaded.gamma, loaded._gamma, loaded.coef0) == ("poly", 2, 0.5, 0.5, -1.0)
    np.testing.assert_array_equal(loaded.n_support_, [2, 1, 1])
    vectors = [[0, 1e-3, 0], [0, 0, 0], [1, 2, 3], [0.25, 0, 1]]
    np.testing.assert_array_equal(loaded.support_vectors_.toarray(), vectors)
    # 5 against 6 keeps its sign, 5 against 7 and 6 against 7 are negated.
    np.testing.assert_array_equal(loaded.dual_coef_.toarray(), [[0, 0.25, -1, -0.5], [0.5, 1, -1, -1]])
    np.testing.assert_array_equal(loaded.intercept_, [-0.3, 0.1, -0.2])
    np.testing.assert_array_equal(loaded.probA_, [3, 1, -2])
    np.testing.assert_array_equal(loaded.probB_, [4, 1, -0.5])


def test_other_texts_are_read_as_written(tmp_path):
    (tmp_path / "regression").write_bytes(REGRESSION)
    loaded = load_model(tmp_path / "regression")
    assert (loaded.laplace_scale_, loaded.n_features_in_, loaded.intercept_.tolist()) == (0.25, 3, [-0.5])
    (tmp_path / "one class").write_bytes(ONE_CLASS)
    loaded = load_model(tmp_path / "one class")
    assert (loaded.support_.tolist(), loaded.n_features_in_, loaded.offset_.tolist()) == ([2, 6], 7, [0.5])
    np.testing.assert_array_equal(loaded.density_marks_, [-5, -4, -3, -2, -1, 1, 2, 3, 4, 5])
    (tmp_path / "dense").write_bytes(DENSE)
    vectors = load_model(tmp_path / "dense").support_vectors_
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, [[0.5, 0, 1, 0], [0, -2, 0, 0]])


def test_support_vectors_may_be_empty(tmp_path):
    (tmp_path / "model").write_bytes(REGRESSION.replace(b"1:0.5 3:1", b"").replace(b"2:-2", b""))
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict([[7.0], [0.0]]), [-0.5, -0.5])


def test_keys_may_come_in_any_order(tmp_path):
    header, vectors = TEXT.split(b"SV\n")
    lines = header.splitlines(keepends=True)
    (tmp_path / "model").write_bytes(b"".join([lines[0], *lines[:0:-1]]) + b"SV\n" + vectors)
    np.testing.assert_array_equal(load_model(tmp_path / "model").intercept_, [-0.3, 0.1, -0.2])


def test_indices_that_count_from_zero_are_columns_as_in_data_files(tmp_path):
    (tmp_path / "model").write_bytes(REGRESSION.replace(b"1:0.5 3:1", b"0:0.5 3:1").replace(b"2:-2", b"1:-2"))
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.support_vectors_.toarray(), [[0.5, 0, 0, 1], [0, -2, 0, 0]])


@pytest.mark.parametrize("text", TEXTS)
def test_text_cut_short_anywhere_is_refused(text, tmp_path):
    for length in range(len(text)):
        refusal(text[:length], tmp_path / "model")


@pytest.mark.parametrize(
    ("old", "new", "line", "rule"),
    [
        (b"c_svc", b"c_svm", 1, "svm_type must be one of LIBSVM's, got 'c_svm'"),
        (b"c_svc", b"", 1, "svm_type must have 1 values, got 0"),
        (b"c_svc", b"one_class", 6, "nr_class must be 2 for one_class, got 3"),
        (b"polynomial", b"poly", 2, "kernel_type must be one of LIBSVM's, got 'poly'"),
        (b"polynomial", b"rbf\xff", 2, r"kernel_type must be one of LIBSVM's, got 'rbf\\xff'"),
        (b"kernel_type polynomial\n", b"", 12, "the header lacks kernel_type"),
        (b"degree 2\n", b"", 12, "the header lacks degree"),
        (b"degree 2", b"degree -2", 3, "degree must be an integer from 0"),
        (b"degree 2", b"degree 2.5", 3, "degree must be an integer from 0"),
        (b"degree 2", b"degree " + b"9" * 5000, 3, "degree must be an integer from 0"),
        (b"gamma 0.5", b"gamma -0.5", 4, "gamma must not be negative, got -0.5"),
        (b"gamma 0.5", b"gamma nan", 4, "'nan' is not a finite number"),
        (b"gamma 0.5", b"gamma 1e999", 4, "'1e999' is not a finite number"),
        (b"gamma 0.5\n", b"", 12, "the header lacks gamma"),
        (b"coef0 -1", b"coef0 -1 2", 5, "coef0 must have 1 values, got 2"),
        (b"coef0 -1", b"coef0 0x10", 5, "'0x10' is not a finite number"),
        (b"coef0 -1\n", b"coef0 -1\ncoef0 -1\n", 6, "coef0 is given twice"),
        (b"nr_class 3", b"nr_class 1", 6, "nr_class must be an integer from 2"),
        (b"nr_class 3", b"nr_class 2", 8, "rho must have 1 values, got 3"),
        (b"nr_class 3", b"nr_class 2147483647", 8, "rho must have 2305843005992468481 values, got 3"),
        (b"nr_class 3\n", b"", 12, "the header lacks nr_class"),
        (b"total_sv 4", b"total_sv 5", 12, "nr_sv adds up to 4, but total_sv is 5"),
        (b"total_sv 4", b"total_sv 2147483647", 12, "nr_sv adds up to 4, but total_sv is 2147483647"),
        (b"total_sv 4", b"total_sv -4", 7, "total_sv must be an integer from 0"),
        (b"total_sv 4", b"total_sv four", 7, "total_sv must be an integer from 0 to 2147483647, got 'four'"),
        (b"total_sv 4\n", b"", 12, "the header lacks total_sv"),
        (b"rho 0.1 -0.2 3e-1", b"rho 0.1 -0.2", 8, "rho must have 3 values, got 2"),
        (b"rho 0.1 -0.2 3e-1", b"rho 0.1 -0.2 inf", 8, "'inf' is not a finite number"),
        (b"rho 0.1 -0.2 3e-1\n", b"", 12, "the header lacks rho"),
        (b"label 7 5 6", b"label 7 5 7", 9, "labels must be distinct"),
        (b"label 7 5 6", b"label 7 5 6.5", 9, "labels must be 32-bit integers, got '6.5'"),
        (b"label 7 5 6", b"label 7 5 2147483648", 9, "labels must be 32-bit integers"),
        (b"label 7 5 6", b"label 7 5", 9, "label must have 3 values, got 2"),
        (b"label 7 5 6\n", b"", 12, "the header lacks label"),
        (b"probA 1 -2 3\n", b"", 12, "the header lacks probA"),
        (b"probB -1 .5 +4.\n", b"", 12, "the header lacks probB"),
        (b"probB -1 .5 +4.", b"probB -1 .5 four", 11, "'four' is not a finite number"),
        (b"probB -1 .5 +4.", b"probB -1 .5", 11, "probB must have 3 values, got 2"),
        (b"nr_sv 1 2 1", b"nr_sv 1 2 2", 12, "nr_sv adds up to 5, but total_sv is 4"),
        (b"nr_sv 1 2 1", b"nr_sv 1 4 -1", 12, "nr_sv must be an integer from 0"),
        (b"nr_sv 1 2 1", b"nr_sv 1 2", 12, "nr_sv must have 3 values, got 2"),
        (b"nr_sv 1 2 1\n", b"", 12, "the header lacks nr_sv"),
        (b"nr_sv 1 2 1\n", b"nr_sv 1 2 1\n\n", 13, "'' is not a line of a LIBSVM header"),
        (b"nr_sv 1 2 1\n", b"nr_sv 1 2 1\nbias 1\n", 13, "'bias 1' is not a line of a LIBSVM header"),
        (b"nr_sv 1 2 1\n", b"nr_sv 1 2 1\nprob_density_marks 1\n", 13, "prob_density_marks belong to one_class"),
        (b"SV\n", b"SV 0.5\n", 13, "'0.5' must not follow SV"),
        (b"SV\n", b"SV dense dense\n", 13, "'dense dense' must not follow SV"),
        (b"SV\n", b"SV features=2\n", 13, "features must be from 3 to 2147483646, got 2"),
        (b"SV\n", b"SV features=9999999999\n", 13, "features must be from 3 to 2147483646, got 9999999999"),
        (b"SV\n", b"SV dense features=2147483646\n", 13, "dense vectors must spell out one number in 32"),
        (b"SV\n", b"", 13, "is not a line of a LIBSVM header"),
        (b"0.5 1 1:0.25", b"0.5 1:0.25", 14, "the line must begin with 2 coefficients, got 1"),
        (b"0.5 1 1:0.25", b"0.5 1 1 1:0.25", 14, "the line must begin with 2 coefficients, got 3"),
        (b"0.5 1 1:0.25", b"1:0.25", 14, "the line must begin with 2 coefficients, got 0"),
        (b"0.5 1 1:0.25", b"0.5 nan 1:0.25", 14, "'nan' is neither a finite number nor index:value of one"),
        (b"0.5 1 1:0.25", b"0.5 1e999 1:0.25", 14, "coefficient '1e999' is too large"),
        (b"0.5 1 1:0.25", b"0.5 1-1 1:0.25", 14, "coefficient must be a number, got '1-1'"),
        (b"2:1e-3", b"2:inf", 15, "'2:inf' is neither a finite number nor index:value of one"),
        (b"2:1e-3", b"2:1e999", 15, "value '1e999' is too large"),
        (b"2:1e-3", b"2:", 15, "value must be a number, got ''"),
        (b"2:1e-3", b":1", 15, "index must be an integer, got ''"),
        (b"2:1e-3", b"2:1:1", 15, "value must be a number, got '1:1'"),
        (b"2:1e-3", b"-2:1", 15, "index '-2' is negative"),
        (b"2:1e-3", b"2.5:1", 15, "index must be an integer, got '2.5'"),
        (b"2:1e-3", b"99999999999:1", 15, "is too large; the largest is 2147483646"),
        (b"2:1e-3", b"2:1 # 3:1", 15, "'#' is neither a finite number nor index:value of one"),
        (b"2:1e-3", b"qid:1 2:1", 15, "'qid:1' is neither a finite number nor index:value of one"),
        (b"2:1e-3", b"2:1\0", 15, r"'2:1\x00' is neither a finite number"),
        (b"2:1e-3", b"2:1 \f 3:1", 15, r"'\x0c' is neither a finite number"),
        (b"-1 0.25\n", b"-1\n", 16, "the line must begin with 2 coefficients, got 1"),
        (b"-1 0.25\n", b"-1 \n", 16, "the line must begin with 2 coefficients, got 1"),
        (b"-1 0.25\n", b"\n", 16, "the line must begin with 2 coefficients, got 0"),
        (b"-1 0.25\n", b"  \n", 16, "the line must begin with 2 coefficients, got 0"),
        (b"-1 0.25\n", b"", 7, "total_sv is 4, but 3 lines follow `SV`"),
        (b"-1 0.25\n", b"-1 0.25\n-1 0.25\n", 7, "total_sv is 4, but 5 lines follow `SV`"),
        (b"-1 0.25\n", b"-1\r0.25\n", 16, "a carriage return stands alone"),
        (b"1:1 2:2 3:3", b"1:1 3:2 2:3", 17, "indices must increase, got 2 after 3"),
        (b"1:1 2:2 3:3", b"1:1 2:2 2:3", 17, "index 2 occurs twice in the row"),
        (b"3:3 \n", b"3:3 ", 17, "the last line does not end with a newline"),
        (b"3:3 \n", b"3:3 \n\n", 7, "total_sv is 4, but 5 lines follow `SV`"),
    ],
)
def test_a_broken_rule_is_named_with_its_line(old, new, line, rule, tmp_path):
    assert TEXT.count(old) == 1
    found, message = refusal(TEXT.replace(old, new), tmp_path / "model")
    assert rule in message
    assert found == line


@pytest.mark.parametrize(
    ("text", "old", "new", "line", "rule"),
    [
        (REGRESSION, b"nr_class 2\n", b"nr_class 3\n", 5, "rho must have 3 values, got 1"),
        (REGRESSION, b"SV\n", b"label 1 2\nSV\n", 7, "a model of type epsilon_svr has no label"),
        (REGRESSION, b"SV\n", b"nr_sv 1 1\nSV\n", 7, "a model of type epsilon_svr has no nr_sv"),
        (REGRESSION, b"SV\n", b"probB 1\nSV\n", 7, "a model of type epsilon_svr has no probB"),
        (
            REGRESSION,
            b"SV\n",
            b"prob_density_marks 1\nSV\n",
            7,
            "a model of type epsilon_svr has no prob_density_marks",
        ),
        (REGRESSION, b"probA 0.25", b"probA -1", 6, "probA is the scale of a distribution and must not be negative"),
        (REGRESSION, b"probA 0.25", b"probA 1 1", 6, "probA must have 1 values, got 2"),
        (REGRESSION, b"total_sv 2", b"total_sv 0", 4, "total_sv is 0, but 2 lines follow `SV`"),
        (REGRESSION, b"total_sv 2", b"total_sv 2147483647", 4, "total_sv is 2147483647, but 2 lines follow `SV`"),
        (REGRESSION, b"-1 2:-2 \n", b"\n", 9, "the line must begin with 1 coefficients, got 0"),
        (REGRESSION, b"-1 2:-2 \n", b"-1 -1 2:-2 \n", 9, "the line must begin with 1 coefficients, got 2"),
        (ONE_CLASS, b"SV\n", b"probA 1\nSV\n", 7, "a model of type one_class has no probA"),
        (ONE_CLASS, b" -5 -4", b" -4 -5", 6, "prob_density_marks must not decrease"),
        (ONE_CLASS, b" -5 -4", b" -4", 6, "prob_density_marks must have 10 values, got 9"),
        (ONE_CLASS, b"0:3", b"0:0", 8, "the vector of a precomputed kernel must be 0:number"),
        (ONE_CLASS, b"0:3", b"0:2147483648", 8, "the vector of a precomputed kernel must be 0:number"),
        (ONE_CLASS, b"0:7", b"0:1.5", 9, "the vector of a precomputed kernel must be 0:number"),
        (ONE_CLASS, b"0:7", b"1:7", 9, "the vector of a precomputed kernel must be 0:number"),
        (ONE_CLASS, b"0:7", b"0:7 1:1", 9, "the vector of a precomputed kernel must be 0:number"),
        (ONE_CLASS, b"0:7", b"", 9, "the vector of a precomputed kernel must be 0:number"),
        (ONE_CLASS, b"SV\n", b"SV dense\n", 7, "'dense' must not follow SV"),
        (ONE_CLASS, b"SV\n", b"SV features=6\n", 7, "features must be from 7"),
    ],
)
def test_a_broken_rule_of_other_models_is_named_with_its_line(text, old, new, line, rule, tmp_path):
    assert text.count(old) == 1
    found, message = refusal(text.replace(old, new), tmp_path / "model")
    assert rule in message
    assert found == line


def test_a_file_within_a_file_is_not_unpacked(tmp_path):
    for magic in (b"\x1f\x8b", b"BZh9", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf"):
        line, rule = refusal(REGRESSION.replace(b"SV\n1", b"SV\n" + magic), tmp_path / "model")
        assert line == 8
        assert "is neither a finite number" in rule


def test_many_labels_and_many_empty_lines_take_no_memory(tmp_path):
    n = 1000  # classes; 1 million lines of n coefficients would take 8 GB
    pairs = n * (n - 1) // 2
    labels, rho = " ".join(map(str, range(n))), "0 " * pairs
    counts = "0 " * (n - 1) + "1000000"
    header = f"svm_type c_svc\nkernel_type linear\nnr_class {n}\ntotal_sv 1000000\nrho {rho}\nlabel {labels}\n"
    content = header.encode() + f"nr_sv {counts}\nSV\n".encode() + b"\n" * 1_000_000
    assert refusal(content, tmp_path / "model") == (9, "the line must begin with 999 coefficients, got 0.")


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), text=st.sampled_from(TEXTS))
def test_changed_bytes_are_refused_or_give_a_whole_model(data, text, tmp_path):
    damaged = bytearray(text)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text) - 1))
        stop = start + data.draw(st.integers(0, 3))
        likely = st.sampled_from([b"0", b"9", b"-", b".", b"e", b":", b" ", b"\n", b"\r", b"#", b"nan", b"1e308", b""])
        damaged[start:stop] = data.draw(st.one_of(likely, st.binary(max_size=2)))
    (tmp_path / "model").write_bytes(damaged)
    try:
        loaded = load_model(tmp_path / "model")
    except FormatError:
        return
    if getattr(loaded, "n_features_in_", 1) > 10**6:
        return  # a row would not fit
    rows = np.zeros((1, getattr(loaded, "n_features_in_", 1)))
    with np.errstate(all="ignore"):  # numbers near the largest may overflow on the way
        assert len(loaded.predict(rows)) == 1
    save_model(loaded, tmp_path / "again", format="libsvm")
    load_model(tmp_path / "again")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200), text=st.sampled_from(TEXTS), cut=st.integers(8, 200))
def test_arbitrary_bytes_after_a_beginning_are_refused(content, text, cut, tmp_path):
    refusal(text[:cut] + b"\n\0" + content, tmp_path / "model")
