"""Everybody taking turns on one case: medians, limits, remarks."""

import statistics
import time

import numpy as np

from benchmarks.kernel_peers import OURS, OURS_ALL

_SHORT = 1.0  # seconds below which a first fit is discarded
_SETTLE = 0.1  # seconds of rest between turns: threads of the last one may still be spinning


def asked_of(case, options):
    """Return everybody's parameters for a case."""
    return case.parameters() | {"tol": options.tol, "cache_size": options.cache}


class Turns:
    """The times of all contenders on one case. `remarks` tells of what was not as asked."""

    def __init__(self, field, case, options):
        self.case, self.options, self.absent = case, options, field.absent
        self.times, self.remarks = {}, {}

    def seconds(self, label):
        """Return the median, infinity if the limit was reached, or None if there is nothing."""
        times = self.times.get(label)
        if times is None:
            return None
        kept = times[1:] if len(times) > 1 and self.first_is_discarded(times[0]) else times
        return statistics.median(kept) if kept else np.inf

    def first_is_discarded(self, seconds):
        """Return whether a first turn of so many seconds does not count."""
        return seconds <= _SHORT

    def shown(self, label):
        """Return the seconds in words, with a mark if there is a remark."""
        seconds = self.seconds(label)
        if seconds is None:
            return "does not load" if label in self.absent else "–"
        mark = " †" if label in self.remarks else ""
        return (f">{self.options.limit:.0f}" if seconds == np.inf else f"{seconds:.3g}") + mark

    def ratio(self, theirs, ours):
        """Return their seconds over ours, in words, their best if several; a limit reached makes it a bound."""
        theirs = [self.seconds(label) for label in self.times if label.startswith(theirs)]
        theirs, ours = min(theirs, default=None), self.seconds(ours)
        if theirs is None or ours is None or theirs == ours == np.inf:
            return "–"
        if ours == np.inf:
            return f"<{theirs / self.options.limit:.2g}"
        return f">{self.options.limit / ours:.2g}" if theirs == np.inf else f"{theirs / ours:.2f}"


class Fits(Turns):
    """Everybody fits. `fits` are the first ones, with the models."""

    def __init__(self, field, case, options):
        super().__init__(field, case, options)
        self.fits, self._asked = {}, asked_of(case, options)
        for label in field.contenders:
            self._first(field, label)
        for turn in range(1, 5 * options.repeats + 1):
            for label, times in self.times.items():
                if times and turn < self._n_turns(times[0]):
                    fit = field.fit(label, self._asked, options.limit)
                    times.extend([fit.seconds] if fit else [])
                    time.sleep(_SETTLE)

    def _first(self, field, label):
        try:
            fit = field.fit(label, self._asked, self.options.limit)
        except RuntimeError as error:
            self.remarks[label] = str(error).removeprefix("NotImplementedError: ")
            return
        time.sleep(_SETTLE)
        self.times[label] = [] if fit is None else [fit.seconds]
        if fit is not None:
            self.fits[label] = fit
            if fit.remark:
                self.remarks[label] = fit.remark

    def _n_turns(self, first):
        """Return how many turns there are: one if a fit is slow, many if it is fast."""
        if first > self.options.patience:
            return 1
        repeats = self.options.repeats
        return repeats if first > _SHORT else 1 + 2 * repeats if first > 0.1 else 5 * repeats


class Predictions(Turns):
    """Everybody predicts, by a model of its own with the case's parameters; the first turn is discarded."""

    def __init__(self, field, case, options):
        super().__init__(field, case, options)
        self.predicted, self.n_support = {}, "–"
        for label in field.contenders:
            self._fit(field, label)
        for _ in range(options.repeats + 1):
            for label, times in self.times.items():
                answer = field.predict(label, options.limit) if times or label not in self.predicted else None
                if answer is not None:
                    times.append(answer[0])
                    self.predicted[label] = answer[1]
                time.sleep(_SETTLE)

    def _fit(self, field, label):
        if label == OURS_ALL and OURS in self.times:  # its process has the model already
            self.times[label] = []
            return
        try:
            fit = field.fit(label, asked_of(self.case, self.options), None)
        except RuntimeError as error:
            self.remarks[label] = str(error)
            return
        self.times[label] = []
        if label == OURS:
            self.n_support = len(fit.model.support)

    def first_is_discarded(self, seconds):
        """Return True: always."""
        return True

    @property
    def n_rows(self):
        """How many rows are predicted."""
        return len(next(iter(self.predicted.values()), ()))

    def agreement(self):
        """Return in words how our predictions agree with scikit-learn's."""
        ours, theirs = self.predicted.get(OURS), self.predicted.get("scikit-learn")
        if ours is None or theirs is None:
            return "–"
        if self.case.kind == "svr":
            return f"{np.abs(ours - theirs).max():.1e}"
        return f"{100 * np.mean(ours == theirs):.2f}%"
