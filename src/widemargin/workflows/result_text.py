"""The text of results: two columns of names and values, descriptions of models, and the lines of svm-train."""

from itertools import combinations

import numpy as np
from sklearn.base import is_classifier

from widemargin.models.cutting_plane.measure import MeasureSVC
from widemargin.models.cutting_plane.ordinal import OrdinalSVC
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.cutting_plane.roc_area import ROCAreaSVC
from widemargin.models.elastic_net import has_sparse_penalty
from widemargin.models.kernel.machines import KERNELS, MACHINES, machine_of
from widemargin.models.kernel.transductive import TransductiveSVC
from widemargin.models.linear import LinearSVC
from widemargin.models.linear_one_class import LinearOneClassSVM
from widemargin.problems.row_loss import RowLoss

_DESCRIPTIONS = {
    LinearOneClassSVM: "linear one-class SVM; LIBLINEAR's -s 21",
    RankSVM: "RankSVM, pairs within queries, linear",
    OrdinalSVC: "OrdinalSVC, ranks by thresholds, linear",
    ROCAreaSVC: "ROCAreaSVC, area under the ROC curve, linear",
}
_PENALTIES = {"l1": "L1", "elasticnet": "elastic net"}
_FACTS_OF_SOME_MACHINES = ("nu", "C", "epsilon")  # in the order in which svm-train prints them
_LAPLACE = """\
Prob. model for test data: target value = predicted value + z,
z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={space}{scale:g}"""


def columns(facts):
    """Return a dict of names and values as lines of two aligned columns."""
    width = max(map(len, facts))
    return "\n".join(f"{name:<{width}}  {fact}" for name, fact in facts.items())


def count(number, thing, things=None):
    """Return a number with its noun: `no rows`, `1 row`, `2 rows`."""
    return f"{number or 'no'} {thing if number == 1 else things or thing + 's'}"


def model_words(model):
    """Return a description of an estimator: its formulation, and its kernel or loss."""
    machine = machine_of(model)
    if machine is not None:
        return f"{machine.name}, {model.kernel} kernel; LIBSVM's -s {MACHINES.index(machine)}"
    if isinstance(model, TransductiveSVC):
        return f"TransductiveSVC, labelled and unlabelled rows, {model.kernel} kernel"
    if type(model) in _DESCRIPTIONS:
        return _DESCRIPTIONS[type(model)]
    if isinstance(model, MeasureSVC):
        name = getattr(model.measure, "__name__", "a function") if callable(model.measure) else model.measure
        return f"MeasureSVC, {name}, linear"
    kind = "linear SVC" if isinstance(model, LinearSVC) else "linear SVR"
    is_joint = getattr(model, "multi_class", "ovr") == "crammer_singer"
    if isinstance(model.loss, RowLoss):
        return f"{kind}, {model.loss}"
    words = model.loss.removesuffix("_loss").replace("_", " ").replace("epsilon i", "epsilon-i")
    loss = "Crammer and Singer's" if is_joint else words
    penalty = "" if not has_sparse_penalty(model) else f", {_PENALTIES[model.penalty]} penalty"
    return f"{kind}, {loss} loss{penalty}"


def kernel_facts(model, y):
    """Return a dict of facts about a kernel machine that was fitted to the labels y.

    "problems" has one entry for each binary problem, in the order of svm-train: classes are ordered by their first row,
    except that 1 precedes −1. "rho" is the offset if the first class of the pair is the positive one. A machine on a
    basis has the number of its points instead.
    """
    facts = {"machine": machine_of(model).name, "kernel": model.kernel}
    numbers = {name: getattr(model, "_gamma" if name == "gamma" else name) for name in sorted(KERNELS[model.kernel])}
    facts |= numbers | {"solver": model.solver_}
    if hasattr(model, "basis_"):
        return facts | {"basis": model.basis_.shape[0]}
    facts["nSV"] = len(model.support_)
    if hasattr(model, "laplace_scale_"):
        facts["laplace_scale"] = float(model.laplace_scale_)
    facts["problems"] = _problems_of_pairs(model, y) if is_classifier(model) else [dict(model.facts_[0])]
    return facts


def _problems_of_pairs(model, y):
    """Return the facts about each pair of classes, with its labels."""
    place = {label: k for k, label in enumerate(model.classes_.tolist())}
    pairs = {pair: k for k, pair in enumerate(combinations(range(len(place)), 2))}
    problems = []
    for labels in combinations(_in_order_of_rows(y), 2):
        first, second = (place[label] for label in labels)
        fact = dict(model.facts_[pairs[min(first, second), max(first, second)]])
        if first > second:  # solved with the smaller label as the positive class
            fact["rho"] = -fact["rho"]
        problems.append({"classes": list(labels), **fact})
    return problems


def _in_order_of_rows(y):
    """Return the labels in the order in which svm-train numbers them."""
    labels, rows = np.unique(y, return_index=True)
    ordered = labels[np.argsort(rows)].tolist()
    return [1, -1] if ordered == [-1, 1] else ordered


def train_lines(model, facts):
    """Return the lines that svm-train prints, from the `kernel_facts` of a model; of a basis, its number of points."""
    if "basis" in facts:
        return [f"basis points = {facts['basis']}"]
    lines = laplace_lines(facts["laplace_scale"], space=" ") if "laplace_scale" in facts else []
    for problem in facts["problems"]:
        lines.append(f"optimization finished, #iter = {problem['iterations']}")
        lines += [f"{name} = {problem[name]:f}" for name in _FACTS_OF_SOME_MACHINES if name in problem]
        lines.append(f"obj = {problem['obj']:f}, rho = {problem['rho']:f}")
        lines.append(f"nSV = {problem['nSV']}, nBSV = {problem['nBSV']}")
    if is_classifier(model):
        lines.append(f"Total nSV = {facts['nSV']}")
    return lines


def laplace_lines(scale, space=""):
    """Return the lines of svm-train (with a space before the number) or svm-predict about the noise of a regression."""
    return _LAPLACE.format(scale=scale, space=space).splitlines()
