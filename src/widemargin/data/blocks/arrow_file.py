"""One row-block file: its layout and summary, and blocks read from it, each checked when it is first read."""

import os
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from widemargin.data.blocks.layout import Layout, Summary, checksum, decode, decode_belongings
from widemargin.errors import FormatError


class ArrowFile:
    """One file: its layout and summary, and blocks read from it, each checked when it is read for the first time."""

    def __init__(self, path):
        self.path, self._checked, self._readers, self._belongings = path, set(), [], None
        self._stamp = _stamp(path)
        with self._reader() as reader:
            schema, n_batches = reader.schema, reader.num_record_batches
        try:
            self.layout = Layout.of_schema(schema)
            self.summary, classes = Summary.of_metadata(schema.metadata)
        except ValueError as error:
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
        except (pa.ArrowInvalid, OSError) as error:
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
        return decode(self._batch(number))

    def belongings(self, number):
        """Return label, qid and weight of the rows of a block; the features are not read."""
        if self._belongings is None:
            with self._reader() as reader:
                names = reader.schema.names
            chosen = [k for k, name in enumerate(names) if name in ("label", "qid", "weight")]
            options = pa.ipc.IpcReadOptions(included_fields=chosen)
            self._belongings = pa.ipc.open_file(pa.memory_map(self.path), options=options)
        found = decode_belongings(self._belongings.get_batch(number))
        return [None if one is None else one.copy() for one in found]

    def _batch(self, number):
        if _stamp(self.path) != self._stamp:
            raise FormatError(self.path, "the file has changed since it was opened. Open it again and start anew.")
        try:
            with self._reader() as reader:
                found = reader.get_batch_with_custom_metadata(number)
        except (pa.ArrowInvalid, OSError) as error:
            raise FormatError(self.path, f"the file is damaged: block {number} cannot be read ({error}).") from None
        if number not in self._checked:
            self._check(number, *found)
        return found[0]

    def _check(self, number, batch, metadata):
        """Refuse a block whose checksum or number of rows is not that which was written."""
        words = {} if metadata is None else {key.decode(): value.decode() for key, value in metadata.items()}
        if checksum(batch) != words.get("checksum") or batch.num_rows != self.rows_of_blocks[number]:
            where = f", which begins at byte {words['byte']}," if "byte" in words else ""
            raise FormatError(
                self.path,
                f"the file is damaged: block {number} of {len(self.rows_of_blocks)}{where} has not the contents that "
                "were written. Write the file again, and check the disk.",
            )
        self._checked.add(number)


def _pool():
    """Return the memory pool of blocks. That of the system gives memory back; pyarrow's own keeps a gigabyte of it."""
    return pa.system_memory_pool()


def _stamp(path):
    """Return what changes when a file is written to or replaced."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise FileNotFoundError(f"{path} cannot be read: {error.strerror}.") from None
    return status.st_size, status.st_mtime_ns, status.st_ino
