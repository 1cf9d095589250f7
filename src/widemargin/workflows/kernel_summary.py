"""What training a kernel machine tells: svm-train's lines per problem, and the same facts for programs."""

from itertools import combinations

import numpy as np
from sklearn.base import is_classifier

from widemargin.models.kernel.machines import KERNELS, machine_of

_OF_MACHINES = ("nu", "C", "epsilon")  # facts that only some machines have, in the order of svm-train
_LAPLACE = """\
Prob. model for test data: target value = predicted value + z,
z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={space}{scale:g}"""


def kernel_facts(model, y):
    """Return what is worth knowing of a fitted kernel machine, y being the labels it was fitted to.

    "problems" has an entry per problem solved, in the order of svm-train: pairs of classes by their first rows, except
    that of −1 and 1 the latter comes first. "rho" is that of the pair's first class being the positive one.
    """
    facts = {"machine": machine_of(model).name, "kernel": model.kernel}
    numbers = {name: getattr(model, "_gamma" if name == "gamma" else name) for name in sorted(KERNELS[model.kernel])}
    facts |= numbers | {"solver": model.solver_, "nSV": len(model.support_)}
    if hasattr(model, "laplace_scale_"):
        facts["laplace_scale"] = float(model.laplace_scale_)
    facts["problems"] = _problems_of_pairs(model, y) if is_classifier(model) else [dict(model.facts_[0])]
    return facts


def _problems_of_pairs(model, y):
    """Return the facts of each pair of classes, named by its labels."""
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
    """Return the lines of svm-train, from the facts of a kernel machine."""
    lines = laplace_lines(facts["laplace_scale"], space=" ") if "laplace_scale" in facts else []
    for problem in facts["problems"]:
        lines.append(f"optimization finished, #iter = {problem['iterations']}")
        lines += [f"{name} = {problem[name]:f}" for name in _OF_MACHINES if name in problem]
        lines.append(f"obj = {problem['obj']:f}, rho = {problem['rho']:f}")
        lines.append(f"nSV = {problem['nSV']}, nBSV = {problem['nBSV']}")
    if is_classifier(model):
        lines.append(f"Total nSV = {facts['nSV']}")
    return lines


def laplace_lines(scale, space=""):
    """Return what svm-train (with a space) and svm-predict say of the noise of a regression."""
    return _LAPLACE.format(scale=scale, space=space).splitlines()
