"""What threads use again and again while they turn parts of a source into rows: a slot for each part under way."""

_PARTS_AT_A_TIME = 8


class Slot:
    """Memory for the text of a part."""

    def __init__(self):
        self._memory = bytearray()

    def memory(self, length, *, keep=False):
        """Return memory of this length, valid until the next call; with `keep`, its first bytes are those before."""
        if length > len(self._memory):
            longer = bytearray(length + length // 8)
            if keep:
                longer[: len(self._memory)] = self._memory
            self._memory = longer
        return memoryview(self._memory)[:length]


def make_slots():
    """Return a slot for each part that may be under way at the same time."""
    return [Slot() for _ in range(_PARTS_AT_A_TIME)]
