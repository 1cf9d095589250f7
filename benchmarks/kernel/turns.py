"""Everybody taking turns on one case: seconds, limits, remarks, models and predictions."""

from typing import NamedTuple

import numpy as np

from benchmarks.kernel.peers import OURS, OURS_ALL, Fit
from benchmarks.machinery.figures import ratio, shown, take_turns

_SETTLE = 0.1  # seconds of rest between turns: threads of the last one may still be spinning
_OFTEN = 2  # very short fits are repeated so many times as often: their rests take longer than they do


def asked_of(case, options):
    """Return everybody's parameters for a case."""
    return case.parameters() | {"tol": options.tol, "cache_size": options.cache}


class Turns:
    """What everybody did: seconds by label, and `remarks` of what was not as asked."""

    def __init__(self, field, options):
        self.field, self.options, self.found, self.remarks = field, options, {}, {}

    def take(self, labels, runner):
        """Let these contenders take turns with `runner(label)`, which returns what has `seconds`."""
        runners = {label: lambda label=label: runner(label) for label in labels}
        self.found = take_turns(runners, self.options.repeats, _OFTEN, self.options.patience, _SETTLE)

    def seconds(self, label):
        """Return the median, infinity if the limit was reached, or None if there is nothing."""
        return self.found[label][1] if label in self.found else None

    def shown(self, label):
        """Return the seconds in words, with a mark if there is a remark."""
        if label not in self.found:
            return "does not load" if label in self.field.absent else "–"
        return shown(self.seconds(label), self.options.limit) + (" †" if label in self.remarks else "")

    def ratio(self, theirs, ours):
        """Return their seconds over ours, in words, their best if several; a limit reached makes it a bound."""
        several = [self.seconds(label) for label in self.found if label.startswith(theirs)]
        return ratio(min(several, default=None), self.seconds(ours), self.options.limit)


class Fits(Turns):
    """Everybody fits. `fits` are the first ones, with the models."""

    def __init__(self, field, case, options, labels=None):
        super().__init__(field, options)
        self.case, self._asked = case, asked_of(case, options)
        self.take(labels or field.contenders, self._fit)
        self.fits = {label: fit for label, (fit, _) in self.found.items() if fit.model is not None}

    def _fit(self, label):
        try:
            fit = self.field.fit(label, self._asked, self.options.limit)
        except RuntimeError as error:
            self.remarks[label] = str(error).removeprefix("NotImplementedError: ")
            return None
        if fit is None:
            return Fit(np.inf, None)
        if fit.remark:
            self.remarks[label] = fit.remark
        return fit


class Answer(NamedTuple):
    """Predictions and their seconds."""

    seconds: float
    predictions: np.ndarray | None


class Predictions(Turns):
    """Everybody predicts, by the model that its process fitted last."""

    def __init__(self, fits):
        super().__init__(fits.field, fits.options)
        self.case = fits.case
        labels = [label for label in fits.fits if not label.startswith("LIBSVM")]
        self.take(labels, self._predict)
        self.n_support = len(fits.fits[OURS].model.support) if OURS in fits.fits else "–"

    def _predict(self, label):
        try:
            answer = self.field.predict(label, self.options.limit)
        except RuntimeError as error:
            self.remarks[label] = str(error)
            return None
        return Answer(np.inf, None) if answer is None else Answer(*answer)

    def predicted(self, label):
        """Return the predictions, None if there are none."""
        return self.found[label][0].predictions if label in self.found else None

    @property
    def n_rows(self):
        """How many rows are predicted."""
        return max(
            (len(answer.predictions) for answer, _ in self.found.values() if answer.predictions is not None), default=0
        )

    def agreement(self):
        """Return in words how our predictions agree with scikit-learn's."""
        ours, theirs = self.predicted(OURS), self.predicted("scikit-learn")
        if ours is None or theirs is None:
            return "–"
        if self.case.kind == "svr":
            return f"{np.abs(ours - theirs).max():.1e}"
        return f"{100 * np.mean(ours == theirs):.2f}%"


BOTH = (OURS, OURS_ALL)
