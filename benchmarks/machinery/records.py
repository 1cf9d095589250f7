"""The records of a page: one line of JSON for each unit that was measured, in a file of its state.

A file holds the records of one state only, since its name is made from the state. A run that was killed has at most
lost the unit that it was measuring: a line that is cut off is left out, and the next run measures that unit again.
"""

import json
import os
import time
from contextlib import suppress

from benchmarks.machinery.state import ROOT, commit, key, state

BUILD = ROOT / "build" / "benchmarks"


class Records:
    """The records of a page in the present state; `units` are those that were read or added, by name.

    Parameters
    ----------
    folder : Path
        Of the page; there is a file for each state.
    """

    def __init__(self, folder, root=ROOT):
        folder.mkdir(parents=True, exist_ok=True)
        present = state(root)
        self.path = folder / f"{key(present)}.jsonl"
        lines = _whole_lines(self.path)
        self.head = lines[0] if lines else {"state": present, "commit": commit(root), "load": os.getloadavg()}
        if self.head["state"] != present:
            raise RuntimeError(f"{self.path} holds the records of another state; delete it.")
        self.units = {line["unit"]: line for line in lines[1:]}
        if not lines:
            self.path.write_text(json.dumps(self.head) + "\n")

    def add(self, record):
        """Keep a record: it is on the disk when this returns."""
        self.units[record["unit"]] = record
        with self.path.open("a") as file:
            file.write(json.dumps(record | {"at": time.strftime("%Y-%m-%d %H:%M")}) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def clear(self):
        """Forget all of them."""
        self.units = {}
        self.path.write_text(json.dumps(self.head) + "\n")


def _whole_lines(path):
    """Return the lines of a file of records; what follows a line that is not whole is cut off from the file."""
    if not path.exists():
        return []
    found, end = [], 0
    for line in path.read_bytes().splitlines(keepends=True):
        record = None
        with suppress(ValueError):
            record = json.loads(line)
        if record is None or not line.endswith(b"\n"):
            os.truncate(path, end)
            break
        found.append(record)
        end += len(line)
    return found
