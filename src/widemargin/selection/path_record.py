"""What is known of a path of C so far, and the checkpoints from which a path goes on.

A checkpoint is written whenever all problems of a round are solved for a C. It has the solutions and scores so far, and
for each problem of the round what the fit for the next C starts from, so that a path which goes on computes the same
numbers, to the bit, as one that was never interrupted. A fit that was cut short by Ctrl-C or by `max_seconds` is not in
it: it is made again.
"""

import json
import zlib
from dataclasses import replace

import numpy as np

from widemargin.solvers.checkpoint import CheckpointFile, Checkpoints
from widemargin.solvers.contract import HISTORY, Solution, Status

_CUT_SHORT = (Status.INTERRUPTED, Status.MAX_SECONDS)
_NUMBERS = ("primal", "dual", "n_iter", "solver", "why", "intercept", "is_exact", "counts")  # of a Solution


class PathRecord:
    """The solutions and scores of a path so far.

    Parameters
    ----------
    seed : int
        Seed of the random numbers of the whole path.

    Attributes
    ----------
    grid : ndarray
        The values of C, ascending; it becomes shorter if the path ends early.
    found : list of lists of Solution
        For each C the solutions so far, without dual variables.
    scores : list of lists of float
        For each C that all rounds have solved, the scores of the folds; empty if they are computed at the end.
    first, stop : int
        The problems of the current round, or of the last one if that is complete.
    n_solved : int
        For how many values of C the problems of this round are solved.
    by_newton : bool
        Whether the problems are solved together by `newton`.
    scores_at_end : bool
        Whether the held-out rows are scored when all problems are solved for all values of C.
    is_cut : bool
        Whether Ctrl-C or `max_seconds` has cut the path short.
    """

    STATE = (
        "seed", "grid", "first", "stop", "n_solved", "by_newton", "scores_at_end", "_score_table", "_texts", "_weights",
        "_histories",
    )  # fmt: skip

    def __init__(self, seed):
        self.seed, self.grid, self.found, self.scores = seed, np.zeros(0), [], []
        self.first = self.stop = self.n_solved = 0
        self.by_newton = self.scores_at_end = self.is_cut = False
        self._score_table, self._texts, self._weights = np.zeros((0, 0)), "[]", np.zeros(0)
        self._histories = np.zeros(0, HISTORY)

    @property
    def is_round_complete(self):
        """Whether the problems of the current round are solved for all values of C."""
        return self.n_solved == len(self.grid)

    def start(self, grid):
        """Take the values of C."""
        self.grid, self.found = grid, [[] for _ in grid]

    def start_round(self, members):
        """Begin with another range of problems."""
        self.first, self.stop, self.n_solved = members.start, members.stop, 0

    def add(self, solutions):
        """Add the solutions of this round for the next C."""
        self.found[self.n_solved] += [replace(one, beta=None) for one in solutions]
        self.n_solved += 1
        self.is_cut = self.is_cut or any(one.status in _CUT_SHORT for one in solutions)

    def end_round(self):
        """Shorten the grid to the values of C that this round has come to, if those are not all."""
        self.is_cut = self.is_cut or not self.is_round_complete
        self.shorten()

    def shorten(self):
        """End the grid with the last C that is solved."""
        self.grid, self.found = self.grid[: self.n_solved], self.found[: self.n_solved]

    def pack(self):
        """Set the arrays of which a checkpoint consists."""
        solutions = [one for of_C in self.found for one in of_C]
        weights = [np.zeros(0) if one.w is None else one.w for one in solutions]
        texts = [[_words_of(one) for one in of_C] for of_C in self.found]
        self._texts = json.dumps(texts)
        self._weights = np.concatenate([np.zeros(0), *weights])
        self._histories = np.concatenate([np.zeros(0, HISTORY), *(one.history for one in solutions)])
        self._score_table = np.array(self.scores, dtype=np.float64) if self.scores else np.zeros((0, 0))

    def unpack(self):
        """Set the solutions and scores from the arrays of a checkpoint."""
        weights, histories = _Reader(self._weights), _Reader(self._histories)
        texts = json.loads(self._texts)
        self.found = [[_solution_of(words, weights, histories) for words in of_C] for of_C in texts]
        self.scores = self._score_table.tolist()


class _Reader:
    """Takes the parts of an array one after the other."""

    def __init__(self, array):
        self._array, self._position = array, 0

    def take(self, length):
        """Return a copy of the next entries."""
        start, self._position = self._position, self._position + length
        if self._position > len(self._array):
            raise ValueError("there are fewer weights or measurements than it says")
        return self._array[start : self._position].copy()


def _words_of(solution):
    """Return what a checkpoint keeps of a Solution besides its arrays, as JSON has it; floats come back to the bit."""
    words = {name: getattr(solution, name) for name in _NUMBERS}
    n_weights = None if solution.w is None else len(solution.w)
    words |= {"status": solution.status.name, "n_measurements": len(solution.history), "n_weights": n_weights}
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in words.items()}


def _solution_of(words, weights, histories):
    return Solution(
        w=None if words["n_weights"] is None else weights.take(words["n_weights"]),
        beta=None,
        status=Status[words["status"]],
        history=histories.take(words["n_measurements"]),
        **{name: words[name] for name in _NUMBERS},
    )


class PathCheckpoints:
    """Reads and writes the checkpoints of a path; does nothing without a CheckpointFile."""

    def __init__(self, file):
        self._file, self._checkpoints = file, Checkpoints(file)

    def restore(self, record):
        """Set a record from the checkpoint, if there is one; return whether there is."""
        found = self._checkpoints.restore({"path": record})
        if found:
            record.unpack()
        return found

    def restore_problem(self, task, state):
        """Set what the next fit of a problem starts from."""
        self._checkpoints.restore({_name_of(task): state})

    def save(self, record, states):
        """Write a record, and the states of the problems of its round, unless the path was cut short."""
        if self._file is None or record.is_cut:
            return
        record.pack()
        problems = {_name_of(record.first + k): state for k, state in enumerate(states)}
        self._checkpoints.save({"path": record, **problems}, now=True)

    def remove(self, record):
        """Remove the checkpoint of a path that has come to its end."""
        if self._file is not None and not record.is_cut:
            self._file.remove(1)


def _name_of(task):
    return f"problem {task}"


def file_of_path(file, words, arrays):
    """Return the CheckpointFile of a fit with words that describe the path, too, and a checksum of arrays; or None."""
    if file is None:
        return None
    check = 0
    for array in arrays:
        check = zlib.crc32(np.ascontiguousarray(array), check)
    return CheckpointFile(
        file.path, {**file.description, **words, "targets, weights and folds": f"checksum {check:08x}"}
    )
