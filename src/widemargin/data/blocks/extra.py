"""The packages of the extra `arrow`, without which the rest of the package works."""

from importlib.util import find_spec

_PACKAGES = ("pyarrow", "xxhash")


def require_arrow():
    """Raise an ImportError that names the way out if pyarrow or xxhash is not installed."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise ImportError(
            f'row-block files need {" and ".join(missing)}, which is not installed: pip install "widemargin[arrow]"'
        )
