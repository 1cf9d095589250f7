"""Support vector machines at the speed of memory, each model with a proof of how good it is.

The public names stand in `__init__.pyi`, which editors and type checkers read; each is imported when it is first used.
"""

import lazy_loader

from widemargin._runtime.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
