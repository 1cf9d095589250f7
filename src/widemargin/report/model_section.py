"""The section of a report about the training: parameters, certificate, and duality gap against time."""

import numpy as np

from widemargin.models.kernel.machines import KERNELS, machine_of
from widemargin.report import charts, scales
from widemargin.report.markup import card, facts, section, words
from widemargin.solvers.registry import counts_of

_OMITTED_PARAMETERS = ("verbose", "callbacks", "n_jobs")
_KERNEL_PARAMETERS = frozenset.union(*KERNELS.values())
_MIN_DRAWN_GAP = float(np.finfo(np.float64).eps)  # smaller gaps are rounding errors and may be negative
_MAX_CURVES = 8
_LOG_AXIS_RATIO = 20.0  # problems whose times differ by more than this factor are drawn on a logarithmic axis
_POINTS_OF_ONE_CURVE, _POINTS_OF_EACH_CURVE = 200, 60
_NOT_RECORDED = "Not recorded in this file"


def model_section(report, model_name):
    """Return the section about the model and its training."""
    cards = [_certificate(report)]
    if hasattr(report.model, "history_"):
        cards.append(_convergence(report.model))
    parameters = card("Parameters", facts({"file": model_name, **_parameters(report)}))
    return section("model", "Model and certificate", *cards, whole=[parameters])


def kind_of(model):
    """Return a description of the kind of model."""
    machine = machine_of(model)
    if machine is None:
        return type(model).__name__
    return f"{type(model).__name__} ({machine.name}, {_kernel_name(model)} kernel)"


def _kernel_name(model):
    return getattr(model.kernel, "__name__", "callable") if callable(model.kernel) else model.kernel


def _parameters(report):
    """Return the parameters of the model that are known; those of other programs' text formats are few."""
    model = report.model
    known = {"estimator": type(model).__name__}
    if report.is_recorded:
        others = {
            *_OMITTED_PARAMETERS,
            *(_KERNEL_PARAMETERS - KERNELS.get(model.kernel, set()) if hasattr(model, "kernel") else ()),
        }
        known |= {name: value for name, value in model.get_params(deep=False).items() if name not in others}
        known |= {"kernel": _kernel_name(model)} if report.is_kernel else {}
    elif report.is_kernel:
        known |= {"kernel": model.kernel} | {name: getattr(model, name) for name in sorted(KERNELS[model.kernel])}
    elif hasattr(model, "measure"):
        known["measure"] = model.measure
    if isinstance(known.get("gamma"), str):
        known["gamma"] = (known["gamma"], f"{model._gamma:.6g} for the training rows")
    if not report.is_recorded:
        known["other parameters"] = _NOT_RECORDED.lower()
    return {name: _spelled(value) for name, value in known.items()}


def _spelled(value):
    """Return True, False and None as "yes", "no" and "none", other values unchanged."""
    return {True: "yes", False: "no", None: "none"}[value] if value is None or isinstance(value, bool) else value


def _certificate(report):
    """Return a card with the certificate: objective, lower bound, gap, status, solver."""
    model = report.model
    if not hasattr(model, "gap_"):
        explanation = (
            "the model formats of other programs do not store a certificate. Train with widemargin to have one."
        )
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
    claim = f"It is proved that the objective is at most a relative {gap:.1e} above its minimum."
    if model.status_ != "converged":
        claim += f" The solver stopped early: {model.status_}."
    return card("Certificate", words(claim), facts(proved))


def _asked(model):
    """Return the stopping criterion and its tolerance."""
    rule = {"gap": "gap", "kkt": "largest KKT violation", "violation": "violation of the planes"}[model.stopping]
    return f"{rule} {model.tol:.1e}"


def _range_of(counts):
    low, high = int(counts.min()), int(counts.max())
    return low if low == high else f"{low:,} to {high:,} in {len(counts):,} problems"


def _histories(model):
    return model.history_ if isinstance(model.history_, list) else [model.history_]


def _convergence(model):
    """Return curves of the duality gap against time; if there are many problems, of those that took the longest."""
    histories = _histories(model)
    names = _problem_names(model, len(histories))
    chosen = sorted(np.argsort([-history["seconds"][-1] for history in histories], kind="stable")[:_MAX_CURVES])
    most = _POINTS_OF_ONE_CURVE if len(histories) == 1 else _POINTS_OF_EACH_CURVE
    drawn = [_curve(histories[k], names[k], most, len(histories) > 1) for k in chosen]
    gaps = np.concatenate([gap for _, _, gap, _ in drawn])
    asked = model.tol if model.stopping == "gap" and model.tol > 0 else None
    y = scales.powers_of_ten(min(gaps.min(), asked or np.inf), max(gaps.max(), asked or 0.0))
    x = _time_scale([seconds for _, seconds, _, _ in drawn])
    last, solver = max(history["seconds"][-1] for history in histories), model.solver_.partition(" (")[0]
    summary = f"Relative duality gap of {solver}: {max(model.gap_, 0.0):.1e} after {last:.3g} s."
    if len(histories) > len(drawn):
        summary += f" The {len(drawn)} of {len(histories)} problems that took the longest."
    heads = (*(["problem"] if len(histories) > 1 else []), "seconds", "passes", "relative gap", "objective")
    return charts.curves(
        "convergence", "Convergence", summary, drawn, x=x, y=y, heads=heads, x_label="seconds",
        y_label="relative gap", level=None if asked is None else (asked, "asked"),
    )  # fmt: skip


def _time_scale(times):
    """Return the scale of times: linear from zero, or logarithmic if some problems took much longer than others."""
    ends = [float(seconds[-1]) for seconds in times]
    first = min((float(seconds[seconds > 0].min()) for seconds in times if (seconds > 0).any()), default=0.0)
    if first > 0 and max(ends) > _LOG_AXIS_RATIO * min(ends) > 0:
        return scales.powers_of_ten(first, max(ends))
    return scales.linear(0.0, max(ends), 4, rounded=False)


def _curve(history, name, most, named):
    """Return the entry for one curve in `charts.curves`."""
    history = history[charts.thinned(len(history), most)]
    gap = np.maximum(history["gap"], _MIN_DRAWN_GAP)
    columns = (history[column].tolist() for column in ("seconds", "passes", "gap", "primal"))
    rows = [(*([name] if named else []), *row) for row in zip(*columns, strict=True)]
    return name, history["seconds"], gap, rows


def _problem_names(model, n_problems):
    """Return names of the problems of a model: its classes, pairs of classes, or numbers."""
    classes = [str(label) for label in getattr(model, "classes_", [])]
    pairs = [f"{one} / {other}" for k, one in enumerate(classes) for other in classes[k + 1 :]]
    named = {len(pairs): pairs, len(classes): classes}
    if machine_of(model) is not None:
        named = {len(pairs): pairs}
    return named.get(n_problems) or [f"problem {k + 1}" for k in range(n_problems)]
