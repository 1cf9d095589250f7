"""The lines that svm_perf_learn, svm_rank_learn and their classify programs print."""

_NOTE_OF_PERF = """\
NOTE: The loss reported above is the percentage of errors. The zero/one-error
      is the multivariate zero/one-error regarding the whole prediction vector!"""
_NOTE_OF_RANK = """\
NOTE: The loss reported above is the fraction of swapped pairs averaged over
      all rankings. The zero/one-error is fraction of perfectly correct
      rankings!"""


def learned_lines(facts):
    """Yield the lines of svm_perf_learn and svm_rank_learn."""
    gap = facts["primal"] - facts["dual"]
    yield "Reading training examples...done"
    yield f"Training set properties: {facts['properties']}"
    yield f"Final epsilon on KKT-Conditions: {gap / facts['C']:.5f}"
    yield f"Upper bound on duality gap: {gap:.5f}"
    yield f"Dual objective value: dval={facts['dual']:.5f}"
    yield f"Primal objective value: pval={facts['primal']:.5f}"
    yield f"Number of iterations: {facts['iterations']}"
    yield f"Norm of weight vector: |w|={facts['length']:.5f}"
    yield f"Value of slack variable (global): xi={facts['slack']:.5f}"
    yield f"Runtime in cpu-seconds: {facts['seconds']:.2f}"
    if facts["is_linear"]:
        yield "Compacting linear model...done"
    yield "Writing learned model...done"


def _first_lines(seconds):
    yield "Reading model...done."
    yield "Reading test examples...done."
    yield "Classifying test examples...done"
    yield f"Runtime (without IO) in cpu-seconds: {seconds:.2f}"


def perf_lines(facts, seconds):
    """Yield the lines of svm_perf_classify."""
    yield from _first_lines(seconds)
    correct = int(facts["Accuracy"] == 1.0)
    yield f"Average loss on test set: {100.0 * (1.0 - facts['Accuracy']):.4f}"
    yield (
        f"Zero/one-error on test set: {100.0 * (1 - correct):.2f}% "
        f"({correct} correct, {1 - correct} incorrect, 1 total)"
    )
    yield from _NOTE_OF_PERF.splitlines()
    for name, value in facts.items():
        yield f"{name:<9}: {100.0 * value:.2f}"


def rank_lines(facts, seconds):
    """Yield the lines of svm_rank_classify."""
    yield from _first_lines(seconds)
    correct, total = facts["correct"], facts["queries"]
    share = 100.0 * (total - correct) / total
    yield f"Average loss on test set: {facts['loss']:.4f}"
    yield (f"Zero/one-error on test set: {share:.2f}% ({correct} correct, {total - correct} incorrect, {total} total)")
    yield from _NOTE_OF_RANK.splitlines()
    yield f"Total Num Swappedpairs  : {facts['swapped']:6d}"
    yield f"Avg Swappedpairs Percent: {100.0 * facts['loss']:6.2f}"
