"""The colours of pages, light and dark, as CSS custom properties; figures refer to properties, not to colours.

Series have the colours of Okabe and Ito, which colour-blind readers can distinguish. They are darker or lighter where
their contrast to the card would be less than 3 to 1. The sequential colour scale of heat maps ("heat") goes from about
the card's colour over blue to the strongest contrast.
"""

import numpy as np

LIGHT = {
    "back": "#f4f6f8", "card": "#ffffff", "ink": "#1b2026", "soft": "#56606b", "rule": "#d7dde3", "grid": "#e8ecf0",
    "accent": "#00619a", "good": "#00714f", "bad": "#b34700", "on": "#ffffff",
}  # fmt: skip
DARK = {
    "back": "#0e1217", "card": "#171c23", "ink": "#e7ebef", "soft": "#a2adb9", "rule": "#36404b", "grid": "#262e37",
    "accent": "#6cc0f0", "good": "#3fcf9f", "bad": "#ff9a5c", "on": "#0e1217",
}  # fmt: skip
LIGHT_SERIES = ("#0072b2", "#d55e00", "#009270", "#bb5f93", "#a87400", "#3390c9", "#4c5661", "#857900")
DARK_SERIES = ("#56b4e9", "#f28a3c", "#26bd92", "#e093bf", "#e6b31f", "#a5d8f7", "#b6c0ca", "#f0e442")
N_STEPS = 16
_LIGHT_HEAT = ("#eef3f7", "#a6d3ea", "#3f94c4", "#0f5a94", "#0b2f57")
_DARK_HEAT = ("#222a33", "#1f4f78", "#2684b8", "#63bfc9", "#f5e68f")


def properties(dark):
    """Return the CSS declarations of a theme: colours, series s0 to s7, heat h0 to h15, and text on heat t0 to t15."""
    colours = dict(DARK if dark else LIGHT)
    colours |= {f"s{k}": colour for k, colour in enumerate(DARK_SERIES if dark else LIGHT_SERIES)}
    for k, colour in enumerate(heat(dark)):
        colours |= {f"h{k}": colour, f"t{k}": max("#000000", "#ffffff", key=lambda text: contrast(text, colour))}
    return f"color-scheme:{'dark' if dark else 'light'};" + "".join(f"--{n}:{c};" for n, c in colours.items())


def heat(dark):
    """Return the colours of the heat scale, from the smallest value to the largest."""
    anchors = np.array([_channels(colour) for colour in (_DARK_HEAT if dark else _LIGHT_HEAT)])
    places = np.linspace(0.0, len(anchors) - 1.0, N_STEPS)
    steps = np.column_stack([np.interp(places, np.arange(len(anchors)), channel) for channel in anchors.T])
    return ["#" + np.rint(step).astype(np.uint8).tobytes().hex() for step in steps]


def contrast(one, other):
    """Return the contrast of two colours as WCAG defines it, from 1 to 21."""
    light = sorted(0.05 + np.array([0.2126, 0.7152, 0.0722]) @ _linear(colour) for colour in (one, other))
    return float(light[1] / light[0])


def _linear(colour):
    """Return the linear intensities of red, green and blue."""
    encoded = _channels(colour) / 255.0
    return np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)


def _channels(colour):
    """Return red, green and blue of a colour such as #0072b2, from 0 to 255."""
    return np.frombuffer(bytes.fromhex(colour[1:]), np.uint8)
