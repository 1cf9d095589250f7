"""LIBSVM's range files: what is written reads back to the bit, and what is none is refused by line."""

import io

import numpy as np
import pytest

from widemargin.data.scaling import METHODS, FeatureRanges, LabelRange, learn_ranges
from widemargin.data.svmlight.range_file import read_ranges, write_ranges
from widemargin.errors import FormatError


def read(text, **options):
    return read_ranges(io.BytesIO(text.encode()), **options)


def written(ranges, **options):
    file = io.StringIO()
    write_ranges(file, ranges, **options)
    return file.getvalue()


def test_the_file_is_svm_scale_s_to_the_byte():
    labels = LabelRange(0.0, 1.0, -1.0, 1.0)
    low, high = np.array([2, 0, 1 / 3, 1e-300]), np.array([4, 0, 1, 1e300])
    ranges = FeatureRanges(-1.0, 1.0, low, high, labels)
    # What svm-scale 3.24 writes of such data: 17 digits, and no line for the feature that never varies.
    features = "1 2 4\n3 0.33333333333333331 1\n4 1e-300 1.0000000000000001e+300\n"
    assert written(ranges) == f"y\n0 1\n-1 1\nx\n-1 1\n{features}"
    assert written(FeatureRanges(-1.0, 1.0, low, high)) == f"x\n-1 1\n{features}"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("zero_based", [False, True])
def test_what_is_written_reads_back_to_the_bit(method, zero_based, rng, tmp_path):
    X, y = rng.standard_normal((30, 5)) * 10.0 ** rng.integers(-9, 9, 5), rng.standard_normal(30)
    X[:, 2] = 1.0
    ranges = learn_ranges([(X, y, None)], method=method, label_limits=(-0.1, 0.7))
    write_ranges(tmp_path / "ranges", ranges, zero_based=zero_based)
    again = read_ranges(tmp_path / "ranges", zero_based=zero_based)
    np.testing.assert_array_equal(again.low, ranges.low)
    np.testing.assert_array_equal(again.high, ranges.high)
    assert (again.lower, again.upper, again.labels) == (ranges.lower, ranges.upper, ranges.labels)
    np.testing.assert_array_equal(again.apply(X), ranges.apply(X))


def test_indices_are_columns_counted_from_one_or_zero():
    text = "x\n0 1\n1 0 5\n3 0 7\n"
    assert read(text).high.tolist() == [5, 0, 7]
    assert read(text, zero_based=True).high.tolist() == [0, 5, 0, 7]


def test_blanks_blank_lines_and_carriage_returns_do_not_matter():
    ranges = read("x\r\n-1 1\r\n\r\n 1  0\t1 \r\n2 0 1")
    assert (ranges.lower, ranges.upper, ranges.n_features) == (-1, 1, 2)


def test_a_feature_of_equal_ends_is_left_out_and_there_may_be_none_at_all():
    assert read("x\n-1 1\n1 5 5\n2 0 1\n").kept.tolist() == [1]
    assert read("x\n-1 1\n").n_features == 0


def test_labels_that_were_all_equal_are_read():
    assert read("y\n0 5\n1 1\nx\n-1 1\n").labels == LabelRange(0, 5, 1, 1)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "1: expected a line x or y, got the end of the file; range files are written by svm-scale -s"),
        ("hello\n-1 1\n", "1: expected a line x or y, got 'hello'"),
        ("-1 1\n1 0 1\n", "1: expected a line x or y, got '-1 1'"),
        ("y\n0 1\n-1 1\n", "3: expected a line x, got the end of the file"),
        ("y\n0 1\nx\n-1 1\n", "3: expected two finite numbers, got 'x'"),
        ("y\n0 1\n1 -1\nx\n-1 1\n", "3: a range must begin with its lower end, got 1 and -1"),
        ("y\n1 1\n", "2: the limits of the labels must be two numbers, the lower one first, got 1 and 1"),
        ("x\n", "1: expected two finite numbers, got the end of the file"),
        ("x\n-1\n", "2: expected two finite numbers, got '-1'"),
        ("x\n1 -1\n", "2: the limits of the features must be two numbers, the lower one first, got 1 and -1"),
        ("x\n-1 nan\n", "2: expected two finite numbers, got '-1 nan'"),
        ("x\n-1 1\n1 0 inf\n", "3: expected two finite numbers, got '0 inf'"),
        ("x\n-1 1\n1 0 1_0\n", "3: expected two finite numbers, got '0 1_0'"),
        ("x\n-1 1\n\n1 0 x\n", "4: expected two finite numbers, got '0 x'"),
        ("x\n-1 1\n1 0\n", "3: expected index, low and high, got '1 0'"),
        ("x\n-1 1\n1 0 1 9\n", "3: expected index, low and high, got '1 0 1 9'"),
        ("x\n-1 1\n-1 0 1\n", "3: expected index, low and high, got '-1 0 1'"),
        ("x\n-1 1\n0 0 1\n", "3: index 0 in a file whose indices count from 1"),
        ("x\n-1 1\n1 5 2\n", "3: a range must begin with its lower end, got 5 and 2"),
        ("x\n-1 1\n2 0 1\n1 0 1\n", "4: indices must increase, got 1 after 2"),
        ("x\n-1 1\n2 0 1\n2 0 1\n", "4: indices must increase, got 2 after 2"),
        ("x\n-1 1\n268435457 0 1\n", "3: index '268435457' is too large; the largest is 268435456"),
        (f"x\n-1 1\n{'9' * 9000} 0 1\n", r"3: index '9{40}\.\.\.' is too large"),
        (f"x\n-1 1\n1 {'x' * 9000} 1\n", r"3: expected two finite numbers, got 'x{40}\.\.\.'"),
        ("x\n-1 1\n1 0 é\n", r"3: expected two finite numbers, got '0 .*xc3.*xa9'"),
    ],
)
def test_what_is_no_range_file_is_refused_by_line(text, place):
    with pytest.raises(FormatError, match=f"^<stream>:{place}"):
        read(text)


def test_a_mistake_names_the_file(tmp_path):
    (tmp_path / "ranges").write_text("z\n")
    with pytest.raises(FormatError, match=r"ranges:1: expected a line x or y"):
        read_ranges(tmp_path / "ranges")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_ranges(tmp_path / "nowhere")
