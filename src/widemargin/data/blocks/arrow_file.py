"""One row-block file: its layout and summary, and blocks read from it, each checked when it is first read."""

import os
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from widemargin.data.blocks.layout import (
    BELONGINGS,
    Layout,
    Summary,
    checksum,
    checksum_of_belongings,
    decode,
    decode_belongings,
)
from widemargin.errors import FormatError

# What pyarrow and we raise for damaged bytes, which may stand for anything.
_DAMAGE = (
    pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, MemoryError,
    NotImplementedError,
)  # fmt: skip


class ArrowFile:
    """One file: its layout and summary, and blocks read from it, each checked when it is read for the first time."""

    def __init__(self, path):
        self.path, self._checked, self._readers, self._belongings = path, set(), [], None
        self._stamp = _stamp(path)
        with self._reader() as reader:
            schema, n_batches = reader.schema, reader.num_record_batches
        try:
            self.layout = Layout.of_schema(schema)
            self.summary, classes = Summary.of_metadata(schema.metadata, self.layout)
        except _DAMAGE as error:
            raise FormatError(path, f"this is not a row-block file: {error}") from None
        if self.summary is None:
            raise FormatError(
                path,
                "this is an Arrow file that widemargin has not written: statistics are missing. Convert it with "
                f"write_blocks or `widemargin convert {path} OUT`.",
            )
        label_type = tuple(classes) if classes is not None else self.layout.label_type
        self.layout = replace(self.layout, n_features=self.summary.n_features, label_type=label_type)
        n, size = self.summary.n_rows, max(1, self.summary.rows_per_block)
        self.rows_of_blocks = [min(size, n - first) for first in range(0, n, size)]
        if len(self.rows_of_blocks) != n_batches:
            raise FormatError(
                path,
                f"the file is damaged: {n} rows in blocks of {size} are {len(self.rows_of_blocks)} blocks, it has "
                f"{n_batches}.",
            )

    @contextmanager
    def _reader(self):
        """Lend an Arrow reader to one thread at a time; each process opens its own."""
        pid = os.getpid()
        while self._readers:
            owner, reader = self._readers.pop()
            if owner == pid:
                break
        else:
            reader = self._opened()
        yield reader
        self._readers.append((pid, reader))

    def _opened(self):
        try:
            return pa.ipc.open_file(pa.OSFile(self.path), memory_pool=_pool())
        except _DAMAGE as error:
            size = os.path.getsize(self.path)
            raise FormatError(
                self.path,
                f"this is not a complete row-block file: its end, at byte {size}, is not that of an Arrow file "
                f"({error}). The file is cut off or of another kind; write it again.",
            ) from None

    def __getstate__(self):
        return {**self.__dict__, "_readers": [], "_belongings": None}

    def read(self, number):
        """Return block `number`."""
        self._refuse_changes()
        with self._reader() as reader:
            return decode(self._batch(reader, number, checksum, "checksum"))

    def belongings(self, number):
        """Return label, qid and weight of the rows of a block; the features are not read."""
        self._refuse_changes()
        if self._belongings is None:
            with self._reader() as reader:
                names = reader.schema.names
            options = pa.ipc.IpcReadOptions(included_fields=[k for k, name in enumerate(names) if name in BELONGINGS])
            self._belongings = pa.ipc.open_file(_opened_for_parts(self.path), options=options, memory_pool=_pool())
        found = decode_belongings(self._batch(self._belongings, number, checksum_of_belongings, "belongings"))
        return [None if one is None else one.copy() for one in found]

    def _refuse_changes(self):
        if _stamp(self.path) != self._stamp:
            raise FormatError(self.path, "the file has changed since it was opened. Open it again and start anew.")

    def _batch(self, reader, number, checksum_of, key):
        """Return the record batch of a block as a reader sees it; its checksum is compared with the word `key`."""
        try:
            batch, metadata = reader.get_batch_with_custom_metadata(number)
            batch.validate()  # a damaged length would lead outside of the memory
            if (number, key) in self._checked:
                return batch
            words = {name.decode(): word.decode() for name, word in dict(metadata or {}).items()}
            found = checksum_of(batch), batch.num_rows
        except _DAMAGE as error:
            raise FormatError(self.path, f"the file is damaged: block {number} cannot be read ({error}).") from None
        if found != (words.get(key, None if key == "checksum" else found[0]), self.rows_of_blocks[number]):
            where = f", which begins at byte {words['byte']}," if "byte" in words else ""
            raise FormatError(
                self.path,
                f"the file is damaged: block {number} of {len(self.rows_of_blocks)}{where} has not the contents that "
                "were written. Write the file again, and check the disk.",
            )
        self._checked.add((number, key))
        return batch


def _pool():
    """Return the memory pool of blocks. That of the system gives memory back; pyarrow's own keeps a gigabyte of it."""
    return pa.system_memory_pool()


def _opened_for_parts(path):
    """Open a file of which small parts far from each other are read.

    The system is told so where that is possible. Otherwise it reads ahead of each part, on some disks by megabytes, and
    so all of the file.
    """
    file = pa.OSFile(path)
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
    return file


def _stamp(path):
    """Return what changes when a file is written to or replaced."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise OSError(error.errno, f"cannot be read: {error.strerror}", path) from None
    return status.st_size, status.st_mtime_ns, status.st_ino
