"""The part of a report about the training: parameters, the certificate, and how the gap closed."""

import numpy as np

from widemargin.models.kernel.machines import KERNELS, machine_of
from widemargin.report import charts, scales
from widemargin.report.markup import card, facts, section, words
from widemargin.solvers.registry import counts_of

_UNSPOKEN = ("verbose", "callbacks", "n_jobs")
_OF_KERNELS = frozenset.union(*KERNELS.values())
_LOWEST = float(np.finfo(np.float64).eps)  # below it a gap is rounding, and may be negative
_MOST_CURVES = 8
_WIDE = 20.0  # problems whose times differ by more than this factor are drawn on a logarithmic axis
_POINTS, _POINTS_OF_MANY = 200, 60
_NOT_RECORDED = "Not recorded in this file"


def model_section(subject, model_name):
    """Return the section about the model and its training."""
    cards = [_certificate(subject)]
    if hasattr(subject.model, "history_"):
        cards.append(_convergence(subject.model))
    parameters = card("Parameters", facts({"file": model_name, **_parameters(subject)}))
    return section("model", "Model and certificate", *cards, whole=[parameters])


def kind_of(model):
    """Return what a model is, in words."""
    machine = machine_of(model)
    if machine is None:
        return type(model).__name__
    return f"{type(model).__name__} ({machine.name}, {_kernel_name(model)} kernel)"


def _kernel_name(model):
    return getattr(model.kernel, "__name__", "callable") if callable(model.kernel) else model.kernel


def _parameters(subject):
    """Return the parameters that the file knows."""
    model = subject.model
    known = {"estimator": type(model).__name__}
    if subject.is_recorded:
        others = {*_UNSPOKEN, *(_OF_KERNELS - KERNELS.get(model.kernel, set()) if subject.is_kernel else ())}
        known |= {name: value for name, value in model.get_params(deep=False).items() if name not in others}
        known |= {"kernel": _kernel_name(model)} if subject.is_kernel else {}
    elif subject.is_kernel:
        known |= {"kernel": model.kernel} | {name: getattr(model, name) for name in sorted(KERNELS[model.kernel])}
    elif hasattr(model, "measure"):
        known["measure"] = model.measure
    if isinstance(known.get("gamma"), str):
        known["gamma"] = (known["gamma"], f"that is {model._gamma:.6g} for the training rows")
    if not subject.is_recorded:
        known["other parameters"] = _NOT_RECORDED.lower()
    return {name: _spelled(value) for name, value in known.items()}


def _spelled(value):
    """Return True, False and None as yes, no and none."""
    return {True: "yes", False: "no", None: "none"}[value] if value is None or isinstance(value, bool) else value


def _certificate(subject):
    """Return a card of what is proved."""
    model = subject.model
    if not hasattr(model, "gap_"):
        explanation = "the text of other programs has no place for a certificate. Train with widemargin to have one."
        return card("Certificate", words(f"{_NOT_RECORDED}: {explanation}"))
    bound = sum(float(history["dual"][-1]) for history in _histories(model)) if hasattr(model, "history_") else None
    gap = max(model.gap_, 0.0)
    proved = {"objective": f"{model.objective_:.10g}"}
    if bound is not None:
        proved["proved lower bound"] = (f"{bound:.10g}", "no model can have a smaller objective")
    proved["relative gap"] = (f"{gap:.2e}", f"asked: {_asked(model)}")
    proved["status"] = model.status_
    name, _, why = model.solver_.partition(" (")
    proved["solver"] = (name, f"chosen: {why.rstrip(')')}" if why else "")
    proved[counts_of(model.solver_)] = _range_of(np.atleast_1d(model.n_iter_))
    claim = f"Proved: the objective is at most a relative {gap:.1e} above the smallest that is possible."
    if model.status_ != "converged":
        claim += f" The solver stopped early: {model.status_}."
    return card("Certificate", words(claim), facts(proved))


def _asked(model):
    """Return what the tolerance was for."""
    rule = {"gap": "gap", "kkt": "largest KKT violation", "violation": "violation of the planes"}[model._stopping]
    return f"{rule} {model.tol:.1e}"


def _range_of(counts):
    low, high = int(counts.min()), int(counts.max())
    return low if low == high else f"{low:,} to {high:,} in {len(counts):,} problems"


def _histories(model):
    return model.history_ if isinstance(model.history_, list) else [model.history_]


def _convergence(model):
    """Return a picture of the gap against time, of many problems for those that took the longest."""
    histories = _histories(model)
    names = _problem_names(model, len(histories))
    chosen = sorted(np.argsort([-history["seconds"][-1] for history in histories], kind="stable")[:_MOST_CURVES])
    most = _POINTS if len(histories) == 1 else _POINTS_OF_MANY
    drawn = [_curve(histories[k], names[k], most, len(histories) > 1) for k in chosen]
    gaps = np.concatenate([gap for _, _, gap, _ in drawn])
    asked = model.tol if model._stopping == "gap" and model.tol > 0 else None
    y = scales.powers_of_ten(min(gaps.min(), asked or np.inf), max(gaps.max(), asked or 0.0))
    x = _time_scale([seconds for _, seconds, _, _ in drawn])
    last, solver = max(history["seconds"][-1] for history in histories), model.solver_.partition(" (")[0]
    summary = f"Relative duality gap by {solver}, down to {max(model.gap_, 0.0):.1e} within {last:.3g} s."
    if len(histories) > len(drawn):
        summary += f" The {len(drawn)} of {len(histories)} problems that took the longest."
    heads = (*(["problem"] if len(histories) > 1 else []), "seconds", "passes", "relative gap", "objective")
    return charts.curves(
        "convergence", "Convergence", summary, drawn, x=x, y=y, heads=heads, x_label="seconds",
        y_label="relative gap", level=None if asked is None else (asked, "asked"),
    )  # fmt: skip


def _time_scale(times):
    """Return the scale of times, from zero unless some problems took far longer than others."""
    ends = [float(seconds[-1]) for seconds in times]
    first = min((float(seconds[seconds > 0].min()) for seconds in times if (seconds > 0).any()), default=0.0)
    if first > 0 and max(ends) > _WIDE * min(ends) > 0:
        return scales.powers_of_ten(first, max(ends))
    return scales.linear(0.0, max(ends), 4, rounded=False)


def _curve(history, name, most, named):
    """Return a curve of `charts.curves`."""
    history = history[charts.thinned(len(history), most)]
    gap = np.maximum(history["gap"], _LOWEST)
    columns = (history[column].tolist() for column in ("seconds", "passes", "gap", "primal"))
    rows = [(*([name] if named else []), *row) for row in zip(*columns, strict=True)]
    return name, history["seconds"], gap, rows


def _problem_names(model, n_problems):
    """Return what the problems of a model are about: its classes, pairs of them, or nothing that has a name."""
    classes = [str(label) for label in getattr(model, "classes_", [])]
    pairs = [f"{one} / {other}" for k, one in enumerate(classes) for other in classes[k + 1 :]]
    named = {len(pairs): pairs, len(classes): classes}
    if machine_of(model) is not None:
        named = {len(pairs): pairs}
    return named.get(n_problems) or [f"problem {k + 1}" for k in range(n_problems)]
