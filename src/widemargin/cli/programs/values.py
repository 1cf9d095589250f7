"""Converters of option values; a ValueError has the rule as its message, and is reported with the option."""

import math


def number(text):
    """Return a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError("must be a finite number")
    return value


def numbers(text):
    """Return a tuple of finite numbers, which are separated by spaces."""
    return tuple(map(number, text.split()))


def positive(text):
    """Return a number > 0."""
    value = number(text)
    if value <= 0.0:
        raise ValueError("must be > 0")
    return value


def non_negative(text):
    """Return a number >= 0."""
    value = number(text)
    if value < 0.0:
        raise ValueError("must be >= 0")
    return value


def between(low, high):
    """Return a converter of numbers from `low` to `high`."""

    def convert(text):
        value = number(text)
        if not low <= value <= high:
            raise ValueError(f"must be from {low:g} to {high:g}")
        return value

    return convert


def inside(low, high):
    """Return a converter of numbers above `low` and below `high`."""

    def convert(text):
        value = number(text)
        if not low < value < high:
            raise ValueError(f"must be above {low:g} and below {high:g}")
        return value

    return convert


def whole(lowest):
    """Return a converter of integers that are at least `lowest`."""

    def convert(text):
        try:
            value = int(text)
        except ValueError:
            value = lowest - 1
        if value < lowest:
            raise ValueError(f"must be a whole number >= {lowest}")
        return value

    return convert


def one_of(*values):
    """Return a converter that accepts these values, and returns numbers among them as integers."""

    def convert(text):
        if text not in values:
            raise ValueError(f"must be one of {', '.join(values)}")
        return int(text) if text.lstrip("-").isdigit() else text

    return convert
