"""What can be wrong before any row is read: packages of the extra `arrow` that are not installed, and options."""

from importlib.util import find_spec

_PACKAGES = ("pyarrow", "xxhash")


class OptionError(ValueError):
    """An option is wrong, or does not apply to the source, whatever the rows are."""


def require_arrow():
    """Raise an ImportError that names the way out if pyarrow or xxhash is not installed."""
    missing = [name for name in _PACKAGES if not _is_installed(name)]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        names = " and ".join(missing)
        raise ImportError(f'row-block files need {names}, which {verb} not installed: pip install "widemargin[arrow]"')


def _is_installed(name):
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
