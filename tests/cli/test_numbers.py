"""Numbers as texts: whatever a formatter writes reads back as the number, to the digits that it promises."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from widemargin._runtime import progress
from widemargin.persistence.libsvm_text import _line
from widemargin.report import grid_layout, markup, report_data, scales
from widemargin.report.grid_layout import Score
from widemargin.selection import live_table

SOURCE = Path(__file__).parents[2] / "src" / "widemargin"
SIZES = {"byte": 1, "bytes": 1, "kB": 1e3, "KB": 1024, "MB": 1e6, "GB": 1e9}
PERCENTAGES = Score("accuracy", 1.0, True)
ERRORS = Score("mean squared error", -1.0, False)


def parsed(text):
    """Return the number that a text means."""
    text = text.replace("−", "-").replace(",", "")
    if text == markup.UNDEFINED:
        return math.nan
    if text.endswith("%"):
        return parsed(text[:-1]) / 100.0
    if text.startswith("2^"):
        return 2.0 ** int(text[2:])
    amount, _, unit = text.partition(" ")
    return float(amount) * SIZES[unit] if unit else float(text)


def significant(digits):
    """Return the rule: half a unit of the last of so many significant digits."""
    return lambda value: 0.5 * 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1) if value else 0.0


def absolute(room):
    """Return the rule: a text is within so much of the number."""
    return lambda value: room


def _room_of_number(value):
    if not 1e-3 <= abs(value) < 1e6:
        return significant(3)(value)
    return min(significant(4)(value), 0.5)


FORMATTERS = {  # name: (formatter of a float, how far from the number its text may be)
    "markup.number": (markup.number, _room_of_number),
    "markup.shown": (markup.shown, _room_of_number),
    "markup.percent": (markup.percent, absolute(0.5e-4)),
    "gridlayout.value_text": (grid_layout.value_text, significant(6)),
    "gridlayout.Score.text, parts of one": (PERCENTAGES.text, absolute(0.5e-4)),
    "gridlayout.Score.text, errors": (lambda value: ERRORS.text(-value), significant(5)),
    "gridlayout.Score.difference, parts of one": (PERCENTAGES.difference, significant(3)),
    "gridlayout.Score.difference, errors": (ERRORS.difference, significant(3)),
    "gridreport.briefly": (live_table.briefly, significant(4)),
    "gridreport.shown, accuracy": (lambda value: live_table.shown(value, "accuracy") + "%", absolute(0.5e-4)),
    "gridreport.shown, errors": (lambda value: live_table.shown(-value, "neg_mean_squared_error"), significant(4)),
    "gridreport.shown, others": (lambda value: live_table.shown(value, "r2"), absolute(0.5e-4)),
    "reports.report_data.name_of": (report_data.name_of, absolute(0.0)),
    "models.libsvmtext": (lambda value: _line("rho", [value]).removeprefix("rho "), absolute(0.0)),
}
FLOATS = st.one_of(
    st.floats(-1e305, 1e305, allow_subnormal=False),  # a hundred times as much is finite
    st.floats(-2e6, 2e6, allow_subnormal=False),
    st.floats(-1.0, 1.0, allow_subnormal=False),
    st.integers(-(10**7), 10**7).map(float),
    st.integers(-1000, 1000).map(lambda k: 2.0**k),
    st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan, 1000.4, 380149.78, 999.95, 9.9999, 999999.7, 1e-3]),
)


@pytest.mark.parametrize("name", FORMATTERS)
@given(value=FLOATS)
@example(value=1000.4)
@example(value=380149.78)
@example(value=-0.0)
@example(value=1e300)
def test_a_number_reads_back_from_its_text(name, value):
    write, room = FORMATTERS[name]
    text = write(value)
    back = parsed(text)
    if not math.isfinite(value):
        assert back == value or (math.isnan(back) and math.isnan(value))
        return
    allowed = room(value)
    rounding = 4.0 * math.ulp(value) if allowed else 0.0  # of a factor of 100, and of the comparison itself
    assert abs(back - value) <= allowed + rounding
    assert back != 0.0 or "models" in name or not text.startswith(("-", "−")), f"{text!r}: zero has no sign"
    assert back * value >= 0.0, f"{value!r} became {text!r}"


@pytest.mark.parametrize("write", [markup.number, markup.shown, grid_layout.value_text])
@given(value=st.integers(-(10**30), 10**30))
def test_integers_are_exact(write, value):
    assert int(write(value).replace(",", "")) == value


@given(n_bytes=st.one_of(st.integers(0, 1 << 21), st.integers(0, 1 << 60)))
@example(n_bytes=999_600)
@example(n_bytes=999_999_999)
@example(n_bytes=5_000_000_000_000)
def test_sizes_read_back(n_bytes):
    amount = progress._amount(n_bytes, "bytes")
    assert "e" not in amount.removesuffix("bytes")
    assert abs(parsed(amount) - n_bytes) <= max(5e-3 * n_bytes, 0.0)
    size = markup.size(n_bytes)
    back = parsed(size.replace("MB", "KB")) * (1024 if size.endswith("MB") else 1)
    assert abs(back - n_bytes) <= (0 if n_bytes < 1024 else 512 if n_bytes < 1 << 20 else 0.05 * (1 << 20)) * 1.000001


@given(seconds=st.floats(0.0, 1e7))
def test_a_clock_has_whole_seconds_rounded_up(seconds):
    parts = list(map(int, progress._clock(seconds).split(":")))
    assert all(0 <= part < 60 for part in parts[1:])
    total = sum(part * 60**k for k, part in enumerate(reversed(parts)))
    assert total == math.ceil(seconds)


@given(
    low=st.floats(-1e9, 1e9, allow_subnormal=False),
    span=st.one_of(st.floats(1e-12, 1e12), st.floats(0.01, 1e4)),
    n_ticks=st.integers(2, 8),
    is_share=st.booleans(),
)
@example(low=0.0, span=1.2e7, n_ticks=5, is_share=False)
@example(low=1e-4, span=1e-4, n_ticks=4, is_share=False)
@example(low=0.969, span=0.002, n_ticks=5, is_share=True)
def test_ticks_read_back_and_no_two_have_the_same_text(low, span, n_ticks, is_share):
    if span < 1e-9 * abs(low):
        low = 0.0
    scale = scales.linear(low, low + span, n_ticks, is_share=is_share)
    assert len(set(scale.texts)) == len(scale.ticks)
    step = scale.ticks[1] - scale.ticks[0] if len(scale.ticks) > 1 else span
    for tick, text in zip(scale.ticks, scale.texts, strict=True):
        assert abs(parsed(text) - tick) <= 2e-3 * step


@given(st.integers(-30, 30), st.integers(2, 12), st.sampled_from([1, 2, 0.5, 0.25, math.log2(10), 0.01]))
def test_values_on_a_logarithmic_axis_read_back_and_differ(first, n_values, step):
    positions = first + step * np.arange(n_values)
    texts = grid_layout._logarithm_texts(positions)
    assert len(set(texts)) == n_values
    assert np.abs(np.array(list(map(parsed, texts))) - positions).max() <= 0.05 * step * (1.0 + 1e-9)


def test_no_zeros_are_stripped_from_a_text_that_may_have_no_point():
    allowed = {"report/markup.py": 1, "report/scales.py": 1}  # both of decimals only; tested above
    for path in SOURCE.rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        stripped = [ast.unparse(call) for call in calls if ast.unparse(call).endswith(".rstrip('0')")]
        assert len(stripped) <= allowed.get(path.relative_to(SOURCE).as_posix(), 0), stripped
