"""Figures are medians with their spread; limits make bounds; what is written can be read again."""

import math

import pytest
from benchmarks.machinery.figures import Seconds, Timed, Told, ratio, read, shown, take_turns


def test_a_figure_is_the_median_with_half_the_range_between_the_quartiles():
    assert shown(Seconds([1.0, 2.0, 3.0, 4.0, 5.0])) == "3 ±33%"
    assert shown(Seconds([0.25])) == "0.25"


def test_a_limit_that_was_reached_is_a_bound():
    ended = Seconds([])
    assert math.isinf(ended)
    assert shown(ended, 40.0) == ">40"
    assert ratio(ended, Seconds([0.5]), 40.0) == ">80"
    assert ratio(Seconds([20.0]), ended, 40.0) == "<0.5"
    assert ratio(ended, ended, 40.0) == "–"
    assert ratio(None, Seconds([1.0])) == "–"


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("3 ±33%", Told(3.0)), (">40", Told(40.0, ">")), ("> 40", Told(40.0, ">")), ("**0.5 ±1%**", Told(0.5)),
        ("1,234", Told(1234.0)), ("2.5e-03 †", Told(0.0025)), ("–", None), ("", None), ("missed", None),
        ("21600 (extrapolated)", Told(21600.0)),
    ],
)  # fmt: skip
def test_a_cell_is_read_as_it_was_written(cell, told):
    assert read(cell) == told


def test_contenders_take_turns_and_the_first_short_one_does_not_count():
    order = []

    def runner(label, seconds):
        times = iter(seconds)

        def run():
            order.append(label)
            return Timed(next(times))

        return run

    found = take_turns({"a": runner("a", [0.4, 0.2, 0.1]), "b": runner("b", [9.0])}, repeats=1, often=1, patience=8.0)
    assert order[:2] == ["a", "b"]
    assert order.count("b") == 1
    assert found["a"][1].times == (0.2, 0.1)
    assert found["b"][1] == 9.0


def test_contenders_that_are_both_short_alternate():
    order = []

    def runner(label):
        def run():
            order.append(label)
            return Timed(1.0)

        return run

    take_turns({"a": runner("a"), "b": runner("b")}, repeats=3)
    assert order == ["a", "b"] * 3


def test_who_cannot_is_left_out():
    assert list(take_turns({"a": lambda: None, "b": lambda: Timed(9.0)}, 1)) == ["b"]
