"""`widemargin train`: options, then one fit, then a model file and a summary; or with -v, cross-validation."""

import os
import sys
import time
from contextlib import contextmanager

import numpy as np
from sklearn.base import is_classifier

from widemargin._compiled import announcing_compilation
from widemargin.progress import ProgressReport
from widemargin.solvers.contract import Status
from widemargin.tools.evaluation import cross_predict, cross_validation_lines, measure
from widemargin.tools.files import ZERO_BASED, check_target, read_rows, write_model
from widemargin.tools.messages import CommandError, UsageError, print_facts, print_json, say, warnings_afterwards
from widemargin.tools.modeloptions import make_model, make_parser
from widemargin.tools.options import translate_letters

_SHOWN_CLASSES = 8
_LARGEST_EXACT = 2.0**53  # whole numbers up to this are all doubles
_LARGEST_LIBLINEAR = 2**31 - 1


def run(tokens):
    """Train, or cross-validate, as the options say; return the exit status."""
    parser = make_parser()
    options = parser.parse(translate_letters(tokens))
    model = make_model(parser, options)
    if options.kernel_type is not None and options.bias > 0 and not options.quiet:
        say("note", "the intercept is penalised here, unlike in LIBSVM; a large --bias makes that penalty small")
    return _train(model, options) if options.n_folds is None else _cross_validate(model, options)


def _train(model, options):
    """Fit the model, write it, print a summary; return the exit status."""
    data, target = options.files
    target = _choose_target(data, target)
    check_target(target, data)
    with _reporting(model, options):
        X, y = _read(model, options)
        started = time.perf_counter()
        _blaming(data, model.fit, X, y)
        seconds = time.perf_counter() - started
    interrupted = model.status_ == Status.INTERRUPTED.value
    if interrupted and model.n_iter_ == 0:
        raise KeyboardInterrupt  # a model that has seen no row must not take the place of a file
    write_model(model, target, options.format)
    stream = sys.stderr if target == "-" else sys.stdout
    if options.json:
        print_json(_facts(model, X, seconds, target), stream)
    elif not options.quiet:
        print_facts(_in_words(model, _facts(model, X, seconds, target)), stream)
    if interrupted:
        say("warning", f"interrupted: {target} holds the model so far")
        return 1
    return 0


def _cross_validate(model, options):
    """Measure the model on folds it was not trained on, print svm-train's lines; return the exit status."""
    data, target = options.files
    if target is not None:
        say("warning", f"{target} is not written: -v only measures")
    with _reporting(model, options):
        X, y = _read(model, options)
        started = time.perf_counter()
        predicted = _blaming(data, cross_predict, model, X, y, options.n_folds, options.seed)
        seconds = time.perf_counter() - started
    facts = measure(y, predicted, is_classifier(model))
    if options.json:
        print_json({"folds": options.n_folds, **facts, "seconds": seconds}, sys.stdout)
    else:
        print("\n".join(cross_validation_lines(facts)))
    return 0


def _choose_target(data, target):
    """Return where the model goes: as asked, or as svm-train chooses."""
    if target is None and data == "-":
        raise UsageError("MODEL must be named if DATA is standard input")
    return os.path.basename(data) + ".model" if target is None else target


@contextmanager
def _reporting(model, options):
    """Within the block, show the model's progress, and say once if there is compiling to wait for."""
    report = ProgressReport(0 if options.quiet else 1)
    with warnings_afterwards(), report, announcing_compilation(report.compiling):
        if report.verbose:
            model.set_params(callbacks=report)
        yield
        model.set_params(callbacks=None)


def _read(model, options):
    """Return X and y, labels of classes as integers; refuse labels that are no classes, and weights of none."""
    data = options.files[0]
    dtype = np.float32 if options.float32 else np.float64
    X, y = read_rows(data, n_features=options.n_features, dtype=dtype, zero_based=ZERO_BASED[options.zero_based])
    if not is_classifier(model):
        return X, y
    broken = np.flatnonzero((y != np.round(y)) | (np.abs(y) > _LARGEST_EXACT))
    if len(broken):
        raise CommandError(
            f"{data}: the label of row {broken[0] + 1} is {y[broken[0]]}, but classes are whole numbers; "
            "for regression add --task regression"
        )
    if options.format == "liblinear" and np.abs(y).max() > _LARGEST_LIBLINEAR:
        raise CommandError(f"{data}: LIBLINEAR's labels end at {_LARGEST_LIBLINEAR}; leave --format liblinear out")
    if isinstance(model.class_weight, dict):
        absent = set(model.class_weight) - set(y)
        if absent:
            raise CommandError(f"{data}: no row has the label {min(absent):g} that -w gives a weight; leave it out")
    return X, y.astype(np.int64)


def _blaming(data, function, *arguments):
    """Call a function of the library; its complaints about rows are complaints about the data file."""
    try:
        return function(*arguments)
    except ValueError as error:
        raise CommandError(f"{data}: {error}") from error


def _facts(model, X, seconds, target):
    """Return what is worth knowing of a training run."""
    facts = {"rows": X.shape[0], "features": X.shape[1]}
    if is_classifier(model):
        facts["classes"] = model.classes_.tolist()
    return facts | {
        "loss": model.loss,
        "solver": model.solver_,
        "sweeps": int(model.n_iter_),
        "objective": model.objective_,
        "gap": model.gap_,
        "seconds": seconds,
        "status": model.status_,
        "model": target,
    }


def _in_words(model, facts):
    """Return the facts as a person reads them."""
    words = {name: str(fact) for name, fact in facts.items() if name != "loss"}
    if "classes" in facts:
        names = [str(label) for label in facts["classes"]]
        shown = names if len(names) <= _SHOWN_CLASSES else [*names[: _SHOWN_CLASSES - 1], "..."]
        words["classes"] = f"{len(names)} ({', '.join(shown)})"
    asked = f", asked {model.tol:.1e}" if model.stopping == "gap" else ""
    words["gap"] = f"{max(facts['gap'], 0.0):.1e} (certified{asked})"
    words["objective"] = f"{facts['objective']:.6g}"
    words["seconds"] = f"{facts['seconds']:.2f}"
    words["model"] = "standard output" if facts["model"] == "-" else facts["model"]
    return words
