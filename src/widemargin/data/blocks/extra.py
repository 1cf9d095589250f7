"""What can be wrong before any row is read: packages of the extra `arrow` that are not installed, and options."""

from importlib.util import find_spec

_PACKAGES = ("pyarrow", "xxhash")


class OptionError(ValueError):
    """An option is wrong, or does not apply to the source, whatever the rows are."""


def require_arrow():
    """Raise an ImportError that names the way out if pyarrow or xxhash is not installed."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise ImportError(
            f'row-block files need {" and ".join(missing)}, which is not installed: pip install "widemargin[arrow]"'
        )
