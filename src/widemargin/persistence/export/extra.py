"""What may be missing: packages of the extra `export`."""

from importlib.util import find_spec


def require(package, what):
    """Raise an ImportError that names the way out if a package, which is needed for `what`, is not installed."""
    if find_spec(package) is None:
        raise ImportError(f'{what} needs {package}, which is not installed: pip install "widemargin[export]"')
