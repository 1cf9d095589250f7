"""Files are replaced whole or not at all: readers see the old content or the new, never half of it."""

import os
import shutil
import uuid
from contextlib import contextmanager, suppress


@contextmanager
def replacing(path):
    """Open a binary file to write; when the block ends well it takes the place of `path`, else it vanishes.

    What a link points to is replaced, not the link; an old file's permissions are kept. A pipe or a device cannot be
    replaced and is written to as it is.
    """
    path = os.fsdecode(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            yield file
        return
    path = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(path), f".{uuid.uuid4().hex}.part")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
