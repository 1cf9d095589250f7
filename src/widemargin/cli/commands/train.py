"""`widemargin train`: options, then one fit, then a model file and a summary; or with -v, cross-validation."""

import os
import sys
import time
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import is_classifier

from widemargin.cli.files import ZERO_BASED, check_target, note_queries, read_rows, write_model
from widemargin.cli.kernel_summary import kernel_facts, train_lines
from widemargin.cli.messages import CommandError, UsageError, print_facts, print_json, say
from widemargin.cli.options.kernel import machine_of
from widemargin.cli.options.model import in_words, make_model, make_parser
from widemargin.cli.options.parsing import translate_letters
from widemargin.cli.precomputed import number_support, read_kernel_rows, square
from widemargin.cli.progress import reporting
from widemargin.evaluation.predictions import cross_predict, cross_validation_lines, fit, measure
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.solvers.contract import Status
from widemargin.solvers.registry import counts_of

_SHOWN_CLASSES = 8
_IN_WORDS = (
    "rows", "features", "queries", "classes", "measure", "machine", "kernel", "solver", "sweeps", "steps", "turns",
    "planes", "objective", "gap", "seconds", "status", "model",
)  # fmt: skip
_LARGEST_EXACT = 2.0**53  # whole numbers up to this are all doubles
_LARGEST_LABELS = dict.fromkeys(["liblinear", "libsvm", "svmlight"], 2**31 - 1)  # in files of that format


def run(tokens):
    """Train, or cross-validate, as the options say; return the exit status."""
    parser = make_parser()
    options = parser.parse(translate_letters(tokens))
    model = make_model(parser, options)
    return _train(model, options) if options.n_folds is None else _cross_validate(model, options)


def _train(model, options):
    """Fit the model, write it, print a summary; return the exit status."""
    data, target = options.files
    target = choose_target(data, target)
    check_target(target, data)
    with reporting(options):
        rows = read_training_rows(model, options)
        started = time.perf_counter()
        blaming(data, fit, model, rows.X, rows.y, rows.qid)
        seconds = time.perf_counter() - started
        interrupted = model.status_ == Status.INTERRUPTED.value
        if interrupted and np.max(model.n_iter_) == 0:
            raise KeyboardInterrupt  # a model that has seen no row must not take the place of a file
        keep_model(model, target, options, rows)
    _summarise(model, rows, options, {"seconds": seconds, "status": model.status_, "model": target})
    if interrupted:
        say("warning", f"interrupted: {target} holds the model so far")
        return 1
    return 0


def keep_model(model, target, options, rows):
    """Write a model fitted to the rows of a file."""
    if rows.serial is not None:
        number_support(model, rows.n_columns, rows.serial)
    write_model(model, target, options.format)


def _summarise(model, rows, options, outcome):
    """Print what came of the training; the model may be on its way through standard output."""
    stream = sys.stderr if outcome["model"] == "-" else sys.stdout
    facts = {"trained": in_words(model, options)[0], "rows": rows.X.shape[0], "features": rows.n_columns}
    if isinstance(model, RankSVM):
        facts["queries"] = 1 if rows.qid is None else len(np.unique(rows.qid))
    if is_classifier(model):
        facts["classes"] = model.classes_.tolist()
    of_kernel = machine_of(model) is not None
    facts |= (
        (kernel_facts(model, rows.y) if of_kernel else _linear_facts(model)) | {"gap": certified_gap(model)} | outcome
    )
    if options.json:
        print_json(facts, stream)
    elif not options.quiet:
        print("".join(in_words(model, options)), file=stream)
        if of_kernel:
            print("\n".join(train_lines(model, facts)), file=stream)
        print_facts(_in_words(model, facts), stream)


def _cross_validate(model, options):
    """Measure the model on folds it was not trained on, print svm-train's lines; return the exit status."""
    data, target = options.files
    if target is not None:
        say("warning", f"{target} is not written: -v only measures")
    if not is_classifier(model) and getattr(model, "probability", False):
        model.set_params(probability=False)  # nothing of what -v prints depends on it
    with reporting(options):
        rows = read_training_rows(model, options)
        started = time.perf_counter()
        prediction = blaming(data, cross_predict, model, rows.X, rows.y, options.n_folds, options.seed, rows.qid)
        seconds = time.perf_counter() - started
    facts = measure(model, rows.y, prediction)
    if options.json:
        print_json(
            {"trained": in_words(model, options)[0], "folds": options.n_folds, **facts, "seconds": seconds}, sys.stdout
        )
    else:
        if not options.quiet:
            print("".join(in_words(model, options)))
        print("\n".join(cross_validation_lines(model, facts)))
    return 0


def choose_target(data, target):
    """Return where the model goes: as asked, or as svm-train chooses."""
    if target is None and data == "-":
        raise UsageError("MODEL must be named if DATA is standard input")
    return os.path.basename(data) + ".model" if target is None else target


class TrainingFile(NamedTuple):
    """What a model is fitted to, of a precomputed kernel the serial numbers of its rows, of a ranking their queries."""

    X: np.ndarray | csr_array
    y: np.ndarray
    n_columns: int
    serial: np.ndarray | None = None
    qid: np.ndarray | None = None


def read_training_rows(model, options):
    """Return the rows, labels of classes as integers; refuse labels that are no classes, and weights of none."""
    data, dtype = options.files[0], np.float32 if options.float32 else np.float64
    if getattr(model, "kernel", None) == "precomputed":
        K, serial, y = read_kernel_rows(data, dtype=dtype)
        rows = TrainingFile(square(K, serial), y, K.shape[1], serial)
    else:
        reading = {"n_features": options.n_features, "dtype": dtype, "zero_based": ZERO_BASED[options.zero_based]}
        X, y, qid = read_rows(data, **reading)
        if not options.quiet:
            note_queries(data, qid, wanted=isinstance(model, RankSVM))
        rows = TrainingFile(X, y, X.shape[1], qid=qid)
    return rows._replace(y=_check_classes(model, y, options)) if is_classifier(model) else rows


def _check_classes(model, y, options):
    """Return the labels as integers; refuse those that are none, and weights of classes that no row has."""
    data = options.files[0]
    broken = np.flatnonzero((y != np.round(y)) | (np.abs(y) > _LARGEST_EXACT))
    if len(broken):
        raise CommandError(
            f"{data}: the label of row {broken[0] + 1} is {y[broken[0]]}, but classes are whole numbers; "
            "for regression add --task regression"
        )
    largest = _LARGEST_LABELS.get(options.format, _LARGEST_EXACT)
    if np.abs(y).max() > largest:
        raise CommandError(
            f"{data}: labels in files of --format {options.format} end at {largest}; leave the option out"
        )
    if options.format == "svmlight" and len(np.unique(y)) > 2:
        raise CommandError(
            f"{data}: files of --format svmlight have one weight vector, and no place for {len(np.unique(y))} classes; "
            "leave the option out"
        )
    if isinstance(getattr(model, "class_weight", None), dict):
        absent = set(model.class_weight) - set(y)
        if absent:
            raise CommandError(f"{data}: no row has the label {min(absent):g} that -w gives a weight; leave it out")
    return y.astype(np.int64)


def blaming(data, function, *arguments, **options):
    """Call a function of the library; its complaints about rows are complaints about the data file."""
    try:
        return function(*arguments, **options)
    except ValueError as error:
        raise CommandError(f"{data}: {error}") from error


def _linear_facts(model):
    """Return what is worth knowing of a fitted linear model."""
    facts = {name: getattr(model, name) for name in ("loss", "measure") if hasattr(model, name)}
    facts["solver"] = model.solver_
    facts[counts_of(model.solver_)] = int(model.n_iter_)
    if hasattr(model, "thresholds_"):
        facts["thresholds"] = model.thresholds_.tolist()
    return {**facts, "objective": model.objective_}


def certified_gap(model):
    """Return the certified gap of a fitted model: 0 where rounding puts its lower bound above its objective."""
    return max(float(model.gap_), 0.0)


def _in_words(model, facts):
    """Return the facts as a person reads them, but for those in the lines of svm-train."""
    words = {name: str(facts[name]) for name in _IN_WORDS if name in facts}
    if "classes" in facts:
        names = [str(label) for label in facts["classes"]]
        shown = names if len(names) <= _SHOWN_CLASSES else [*names[: _SHOWN_CLASSES - 1], "..."]
        words["classes"] = f"{len(names)} ({', '.join(shown)})"
    asked = f", asked {model.tol:.1e}" if getattr(model, "stopping", None) == "gap" else ""
    words["gap"] = f"{facts['gap']:.1e} (certified{asked})"
    if "objective" in facts:
        words["objective"] = f"{facts['objective']:.6g}"
    words["seconds"] = f"{facts['seconds']:.2f}"
    words["model"] = "standard output" if facts["model"] == "-" else facts["model"]
    return words
