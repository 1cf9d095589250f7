"""The lines that svm_learn and svm_classify print."""

import numpy as np

_ROWS_PER_MARK = 100


def learned_lines(settings, kind, facts):
    """Yield the lines of svm_learn, from the facts of `svm_light.learn_file`; kind is a task or "transduction"."""
    n_rows = facts["rows"]
    marks = "".join(f"{k}.." for k in range(_ROWS_PER_MARK, n_rows + 1, _ROWS_PER_MARK))
    yield "Scanning examples...done"
    yield f"Reading examples into memory...{marks}OK. ({n_rows} examples read)"
    if facts["default_C"] is not None:
        yield f"Setting default regularization parameter C={facts['default_C']:.4f}"
    if kind == "ranking":
        yield f"Constructing {facts['pairs']} rank constraints...done."
    if kind == "transduction":
        yield from _search(settings, facts)
    else:
        yield f"Optimizing...done. ({facts['iterations']} iterations)"
    yield from _RESULTS[kind](settings, facts)
    if settings.alphas is not None:
        yield "Writing alpha file...done"
    yield "Writing model file...done"


def _search(settings, facts):
    """Yield the lines of the problems that transduction solves."""
    n_positive, n_unlabelled = facts["n_positive"], facts["n_unlabelled"]
    yield "Optimizing...done"
    yield f"Classifying unlabeled data as {n_positive} POS / {n_unlabelled - n_positive} NEG."
    for k, stage in enumerate(facts["stages"]):
        n_pairs = stage["exchanges"]
        if n_pairs:
            switched = f"Switching labels of {n_pairs} POS / {n_pairs} NEG unlabeled examples...done"
            yield f"{stage['above']} positive -> {switched}"
        elif k:
            yield f"Increasing influence of unlabeled examples to {100.0 * stage['factor']:f}% ...done"
        yield "Retraining...done"
    if settings.labels is not None:
        yield "Writing prediction file...done"
    yield f"Number of switches: {2 * facts['exchanges']}"
    yield f"done. ({facts['iterations']} iterations)"


def _of_transduction(settings, facts):
    yield from _of_classification(settings, facts)
    found = facts["criteria"]
    parts = {name: f"{name}={value:.5f}" for name, value in found["parts"].items()}
    yield f"xacrit>=1: {parts['labeledpos']} {parts['labeledneg']} {parts['default']}"
    yield f"xacrit>=1: {parts['unlabelpos']} {parts['unlabelneg']}"
    for head, name in (("xacrit>=1: ", "large"), ("xacritsum: ", "means"), ("", "sums")):
        yield head + " ".join(f"{word}={value:.5f}" for word, value in found[name].items())


def _of_classification(settings, facts):
    yield f"Optimization finished ({facts['misclassified']} misclassified, maxdiff={facts['violation']:.5f})."
    yield _runtime(facts)
    if settings.remove_inconsistent:
        yield f"Number of SV: {facts['support']} (plus {facts['inconsistent']} inconsistent examples)"
    else:
        yield _support(facts)
    yield f"Upper bound on duality gap: gap={facts['gap']:.5f}"
    yield f"Dual objective value: dval={facts['dual']:.5f}"
    yield f"L1 loss: loss={facts['loss']:.5f}"
    yield from _norms(facts)
    yield f"Estimated VCdim of classifier: VCdim<={1.0 + (facts['length'] * facts['sphere']) ** 2:.5f}"
    if "estimates" in facts:
        yield from _estimates(facts["estimates"])


def _estimates(found):
    """Yield the lines of the estimates of error, recall and precision."""
    how = f"(rho={found.rho:.2f},depth={found.depth})"
    yield "Computing XiAlpha-estimates...done"
    yield f"XiAlpha-estimate of the error: error<={100 * found.error:.2f}% {how}"
    yield f"XiAlpha-estimate of the recall: recall=>{100 * found.recall:.2f}% {how}"
    yield f"XiAlpha-estimate of the precision: precision=>{100 * found.precision:.2f}% {how}"
    if found.exact_error is None:
        return
    yield "Computing leave-one-out"
    yield "Retrain on full problem...done."
    yield f"Leave-one-out estimate of the error: error={100 * found.exact_error:.2f}%"
    yield f"Leave-one-out estimate of the recall: recall={100 * found.exact_recall:.2f}%"
    yield f"Leave-one-out estimate of the precision: precision={100 * found.exact_precision:.2f}%"
    yield f"Actual leave-one-outs computed:  {found.n_fits} (rho={found.rho:.2f})"


def _of_regression(settings, facts):
    yield f"Optimization finished (maxdiff={facts['violation']:.5f})."
    yield _runtime(facts)
    yield _support(facts)
    yield f"L1 loss: loss={facts['loss']:.5f}"
    yield from _norms(facts)


def _of_ranking(settings, facts):
    yield f"Optimization finished (maxdiff={facts['violation']:.5f})."
    yield _runtime(facts)
    yield f"Dual objective value: dval={facts['dual']:.5f}"
    yield f"Norm of weight vector: |w|={facts['length']:.5f}"
    yield _support(facts)
    yield f"L1 loss: loss={facts['loss']:.5f}"
    yield f"Norm of longest example vector: |x|={facts['longest']:.5f}"


def _support(facts):
    return f"Number of SV: {facts['support']} (including {facts['at_bound']} at upper bound)"


def _runtime(facts):
    return f"Runtime in cpu-seconds: {facts['seconds']:.2f}"


def _norms(facts):
    yield f"Norm of weight vector: |w|={facts['length']:.5f}"
    yield f"Norm of longest example vector: |x|={facts['longest']:.5f}"


_RESULTS = {
    "classification": _of_classification,
    "regression": _of_regression,
    "ranking": _of_ranking,
    "transduction": _of_transduction,
}


def classified_lines(n_vectors, scores, y, seconds):
    """Yield the lines of svm_classify; accuracy and the like only if all labels are 1 or −1."""
    marks = "".join(f"{k}.." for k in range(_ROWS_PER_MARK, len(y) + 1, _ROWS_PER_MARK))
    yield f"Reading model...OK. ({n_vectors} support vectors read)"
    yield f"Classifying test examples..{marks}done"
    yield f"Runtime (without IO) in cpu-seconds: {seconds:.2f}"
    if not (np.abs(y) == 1).all():
        return
    is_positive, is_found = y > 0, scores > 0
    correct, both = int(np.sum(is_positive == is_found)), int(np.sum(is_positive & is_found))
    counts = f"({correct} correct, {len(y) - correct} incorrect, {len(y)} total)"
    yield f"Accuracy on test set: {100 * correct / len(y):.2f}% {counts}"
    precision, recall = percent(both, is_found.sum()), percent(both, is_positive.sum())
    yield f"Precision/recall on test set: {precision}%/{recall}%"


def percent(part, whole):
    """Return a fraction in percent with two digits; nan if the whole is 0."""
    return f"{100.0 * part / whole:.2f}" if whole else "nan"
