"""What svmocas and msvmocas print about the setting, each plane, and the result."""

from typing import Any, NamedTuple

from widemargin.solvers.contract import Status


class Outcome(NamedTuple):
    """The result of a run: its history, why it ended, and the fraction of rows that its model predicts wrongly."""

    history: Any
    status: str
    error: float


def file_lines(X, n_classes=None):
    """Return the lines about a file with the rows X, and of msvmocas about its classes."""
    lines = ["Input file statistics:", f"   # of examples  : {X.shape[0]}"]
    lines += [] if n_classes is None else [f"   # of classes   : {n_classes}"]
    density = 100.0 * X.nnz / max(1, X.shape[0] * X.shape[1])
    return [*lines, f"   dimensionality : {X.shape[1]}", f"   density        : {density:.2f}%"]


def setting_lines(settings, given):
    """Return the lines of a setting; `given` are those between C and the solver, and after the planes, by their words.

    The keys of `given` are "C", "before" and "after".
    """
    limit = "inf" if settings.max_seconds is None else f"{settings.max_seconds:f}"
    return [
        "Setting:",
        f"   C              : {given['C']}",
        *given["before"],
        f"   solver         : {int(not settings.plain)}",
        f"   cache size     : {settings.max_planes}",
        *given["after"],
        f"   TolAbs         : {settings.absolute:f}",
        f"   TolRel         : {settings.relative:f}",
        f"   QPValue        : {settings.target:f}",
        f"   MaxTime        : {limit} [s]",
    ]


def outcome_lines(settings, outcome, output):
    """Return the lines of each plane, and of the result."""
    return [
        "Starting optimization:",
        *(f"{entry['iteration']:4d}: tim={entry['seconds']:f}, {_values(entry)}" for entry in outcome.history),
        f"Stopping condition: {_reason(settings, outcome)}",
        f"Training error: {100.0 * outcome.error:.4f}%",
        f"Result saved to model file: {output}",
    ]


def _values(entry):
    """Return the objectives of an entry of the history in the words of the programs."""
    primal, dual = entry["primal"], entry["dual"]
    relative = 1.0 - dual / primal if primal else 0.0
    return f"Q_P={primal:f}, Q_D={dual:f}, Q_P-Q_D={primal - dual:f}, 1-Q_D/Q_P={relative:f}"


def _reason(settings, outcome):
    """Return why it stopped, in the words of the programs where they have them."""
    last = outcome.history[-1]
    if outcome.status == Status.CONVERGED.value:
        return f"1-Q_D/Q_P <= TolRel(={settings.relative:f}) satisfied."
    if outcome.status == Status.CALLBACK.value and last["primal"] <= settings.target:
        return f"Q_P <= QPBound(={settings.target:f}) satisfied."
    if outcome.status == Status.CALLBACK.value:
        return f"Q_P-Q_D <= TolAbs(={settings.absolute:f}) satisfied."
    if outcome.status == Status.MAX_SECONDS.value:
        return f"Optimization time (={last['seconds']:f}) >= MaxTime(={settings.max_seconds:f})."
    if outcome.status == Status.MAX_ITER.value:
        return "Has not converged!"
    return f"{outcome.status}."
