"""`widemargin grid`: parameters by cross-validation, then a model of all rows with the best; see `gridsearch`."""

import argparse
import os
import sys
import time

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from widemargin.cli.commands.train import blaming, certified_gap, choose_target, keep_model, read_training_rows
from widemargin.cli.files import check_target, write_lines
from widemargin.cli.messages import (
    CommandError,
    UsageError,
    naming,
    print_facts,
    print_json,
    warnings_afterwards,
)
from widemargin.cli.options import model as model_options
from widemargin.cli.options.parsing import positive, translate_letters, whole
from widemargin.cli.progress import reporting, wants_progress
from widemargin.models.cutting_plane.ranking import RankSVM, queries
from widemargin.models.kernel.base import KernelModel
from widemargin.models.kernel.one_class import OneClassSVM
from widemargin.plots import grid
from widemargin.selection.grid_search import grid_search
from widemargin.selection.live_table import briefly, in_words, shown
from widemargin.selection.parameter_ranges import default_grid, edges
from widemargin.selection.target_scaling import scale_of

_DESCRIPTION = """\
Try parameters on a grid by cross-validation, C and gamma in LIBSVM's ranges unless said otherwise, and train a model of
all rows of DATA with the best. Machines are described as for train; without such an option it is a C-SVC with the rbf
kernel, and --kernel linear is a linear machine, all of whose C are one warm-started path."""

_EXAMPLES = """\
examples:
  widemargin grid heart_scale                             110 points: log2 C = -5, -3 .. 15, log2 gamma = 3, 1 .. -15
  widemargin grid --kernel linear heart_scale             C alone, by LinearSVC
  widemargin grid -j -1 --log2c -1,7,2 --log2g -1,-9,-2 --refine 1 heart_scale
  widemargin grid --resume heart_scale                    go on after a kill
  widemargin grid -c 10 --kernel poly --values degree=2,3,4 --values coef0=0,1 heart_scale
  widemargin grid -s 3 --log2p -6,-2,2 --plot grid.png --plot grid.html abalone
  widemargin grid --scoring roc_auc --json heart_scale
  widemargin grid --task rank --extend 5 train.dat        C of a RankSVM by concordance, and beyond 2^15 if need be
  widemargin grid -s 3 --scale-targets cadata             C and epsilon in units of the targets' standard deviation

What is given by a letter (-c, -g, -p, -n) is not tried. Folds are drawn once, by --seed. Kernel matrices are shared by
all folds and all C if they fit into --memory, and each model begins with the multipliers of the one with the next
smaller C. Scores are appended to RESULTS as they come, DATA's name + ".grid" in the current directory: lines of JSON.
Classification is scored by accuracy, regression by mean squared error, a ranking by concordance, its queries being
whole in a fold; --scoring has the others of scikit-learn. If the best value is the smallest or largest tried, that is
said, and --extend goes beyond.

exit status:
  0  done      1  the data or the run failed      2  wrong usage      130  interrupted: go on with --resume"""

_SPELLINGS = {"-log2c": "--log2c", "-log2g": "--log2g", "-log2p": "--log2p", "-out": "--results", "-png": "--plot"}
_AXES = {"log2c": "C", "log2g": "gamma", "log2p": "epsilon"}
_PICTURES = (".png", ".svg", ".pdf", ".html")


def make_parser():
    """Return the parser of `widemargin grid`: the options of train, and those of the grid."""
    parser = model_options.make_parser("grid", _DESCRIPTION, _EXAMPLES)
    add = parser.add_argument_group("the grid").add_argument
    for option, name in _AXES.items():
        add(f"--{option}", type=_powers, metavar="BEGIN,END,STEP", help=f"{name} = 2^BEGIN, 2^(BEGIN+STEP) .. 2^END; "
            "null: not tried")  # fmt: skip
    add("--values", type=_values, action="append", default=[], metavar="NAME=V1,V2,...",
        help="values of any parameter: C, gamma, degree, coef0, epsilon, nu, ...; may be repeated")  # fmt: skip
    add("--extend", type=whole(0), default=0, metavar="N", help="while the best C, gamma or epsilon is the smallest or "
        "largest tried, try the next one beyond, at most N times (default: 0)")  # fmt: skip
    add(
        "--refine", type=whole(0), default=0, metavar="N", help="then look closer around the best, N times (default: 0)"
    )
    add("--scoring", choices=get_scorer_names(), metavar="NAME", help="scikit-learn's name of what is to be largest "
        "(default: accuracy, or neg_mean_squared_error for regression)")  # fmt: skip
    add("--scale-targets", action="store_true", help="regression: search with targets of mean 0 and standard deviation "
        "1, so that C and epsilon are in units of it; the model predicts in those of DATA")  # fmt: skip
    add("--memory", type=positive, default=2000.0, metavar="MB", help="for shared kernel matrices (default: 2000)")
    add("--results", metavar="FILE", help='scores as they come (default: DATA\'s name + ".grid")')
    add("--resume", action="store_true", help="go on with RESULTS: what it holds is not computed again")
    add("--overwrite", action="store_true", help="begin anew although RESULTS is there")
    add("--plot", action="append", default=[], metavar="FILE", help="a picture of the scores by its suffix, .png, "
        ".svg, .pdf, or an interactive page, .html; may be repeated")  # fmt: skip
    return parser


def run(tokens):
    """Search, train and write the model; return the exit status."""
    parser = make_parser()
    options = parser.parse(translate_letters(_spelled_out(tokens)))
    model, grid = _machine_and_grid(parser, options)
    data, target = options.files[0], choose_target(*options.files)
    results = options.results or f"{os.path.basename(data)}.grid"
    _check_targets(options, data, target, results)
    with reporting(options):
        rows = read_training_rows(model, options)
    begun, scale = time.perf_counter(), None
    if options.scale_targets:
        scale = blaming(data, scale_of, rows.y)
        rows = rows._replace(y=scale.apply(rows.y))
    result = _search(model, grid, rows, options, results, scale)
    seconds = time.perf_counter() - begun
    if scale is not None:
        scale.restore(result.best_model)
    keep_model(result.best_model, target, options, rows)
    for path in options.plot:
        _draw(result, path)
    _print(result, {"results": results, "model": target, "seconds": seconds}, options)
    return 0


def _spelled_out(tokens):
    """Return the tokens with grid.py's spellings as ours, ranges, which may begin with a minus, joined to theirs."""
    rest, spelled = [_SPELLINGS.get(token, token) for token in tokens], []
    while rest:
        token = rest.pop(0)
        is_range = token.removeprefix("--") in _AXES
        spelled.append(f"{token}={rest.pop(0)}" if is_range and rest else token)
    return spelled


def _machine_and_grid(parser, options):
    """Return the estimator, and the values to try of each parameter."""
    given = vars(options)
    if options.resume and options.overwrite:
        parser.error("--resume and --overwrite contradict each other; leave one of them out")
    if options.n_folds is None:
        options.n_folds = 5
    fixed = {name for name in ("C", "gamma", "epsilon", "nu") if name in given}
    if given.get("kernel") == "linear" and "svm_type" not in given and "kernel_type" not in given:
        del options.kernel  # a linear machine
    elif options.task in (None, "classification", "regression") and not set(given) & _CHOOSING:
        options.kernel = "rbf"
    model = model_options.make_model(parser, options)
    if isinstance(model, OneClassSVM):
        parser.error("a one-class machine has no labels to be scored by; choose nu, and train")
    if options.scale_targets and not is_regressor(model):
        parser.error("--scale-targets is for regression; leave it out or add --task regression")
    if options.scoring is not None and isinstance(model, RankSVM):
        parser.error("--scoring is not for --task rank, whose score is the mean concordance over queries; leave it out")
    grid = {name: values for name, values in default_grid(model).items() if name not in fixed}
    for option, name in _AXES.items():
        if given[option] is not None:
            _check_parameter(parser, model, name, f"--{option}", fixed)
            grid[name] = given[option]
    for name, values in options.values:
        _check_parameter(parser, model, name, "--values", fixed)
        grid[name] = values
    grid = {name: values for name, values in grid.items() if values}
    if not grid:
        parser.error("nothing is left to try: every parameter is fixed; use train -v")
    return model, grid


_CHOOSING = {"kernel", "kernel_type", "svm_type", "loss", "bias", "multi_class", "penalize_intercept", "stopping"}


def _check_parameter(parser, model, name, option, fixed):
    if name not in model.get_params():
        parser.error(f"{option}: {type(model).__name__} has no parameter {name!r}")
    if name in fixed:
        parser.error(f"{option}: {name} is given by {parser.name(name)}; leave one of them out")


def _check_targets(options, data, target, results):
    """Refuse what cannot be written, before any work."""
    for path in (target, results, *options.plot):
        check_target(path, data)
    if results == "-" or (os.path.exists(results) and not os.path.isfile(results)):
        raise UsageError(f"--results must be a file, as it is what a search goes on with, got {results}")
    for path in options.plot:
        if not path.endswith(_PICTURES):
            raise UsageError(f"--plot {path}: the name must end with {', '.join(_PICTURES)}")
    check_results(results, options)
    if options.overwrite and os.path.exists(results):
        os.unlink(results)


def check_results(results, options):
    """Refuse to lose the results of an earlier search."""
    is_there = os.path.exists(results) and os.path.getsize(results)
    if is_there and not (options.resume or options.overwrite):
        raise CommandError(
            f"{results} holds the results of an earlier search; add --resume to go on with it, "
            "or --overwrite to begin anew"
        )


def _search(model, grid, rows, options, results, scale):
    """Return the GridResult; Ctrl-C leaves a results file to go on with."""
    scoring = options.scoring or ("neg_mean_squared_error" if is_regressor(model) else None)
    scoring = scoring if scale is None else scale.scorer(scoring)
    extra = {"qid": rows.qid} if isinstance(model, RankSVM) and rows.qid is not None else None
    if isinstance(model, KernelModel) and getattr(model, "probability", False):
        raise UsageError("-b 1 is for train: the search itself needs no probabilities")
    try:
        with warnings_afterwards(), naming(results):
            return blaming(
                options.files[0], grid_search, model, rows.X, rows.y, grid,
                cv=blaming(options.files[0], _folds, model, rows, options), scoring=scoring, extend=options.extend,
                refine=options.refine, n_jobs=options.jobs, memory=options.memory, results=results,
                resume=options.resume, fit_parameters=extra, verbose=wants_progress(options),
            )  # fmt: skip
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt(f"{results} holds what is done; --resume goes on with it") from interrupt


def _folds(model, rows, options):
    """Return the folds of train -v: shuffled by the seed, classes in proportion, queries whole."""
    if isinstance(model, RankSVM):
        group = queries(rows.qid, len(rows.y))
        return list(GroupKFold(options.n_folds, shuffle=True, random_state=options.seed).split(rows.X, rows.y, group))
    kind = StratifiedKFold if is_classifier(model) else KFold
    return kind(options.n_folds, shuffle=True, random_state=options.seed)


def _draw(result, path):
    with naming(path):
        if path.endswith(".html"):
            write_lines([grid.grid_page(result)], path)
        else:
            grid.plot_grid(result, path=path)


def _print(result, outcome, options):
    """Print the best parameters and what came of the search."""
    stream = sys.stderr if outcome["model"] == "-" else sys.stdout
    if options.json:
        points = [
            {**point, "score": float(mean), "scores": scores.tolist(), "seconds": float(seconds)}
            for point, mean, scores, seconds in zip(
                result.points, result.means, result.scores, result.seconds, strict=True
            )
        ]
        trained = model_options.in_words(result.best_model, options)[0]
        facts = {
            "trained": trained,
            "best": result.best_params,
            "edges": edges(result.points, result.means),
            "score": result.best_score,
            "scoring": result.scoring,
            "points": points,
        }
        print_json({**facts, **outcome, "gap": certified_gap(result.best_model)}, stream)
    elif not options.quiet:
        score = f"{shown(result.best_score, result.scoring)}{'%' if result.scoring == 'accuracy' else ''}"
        spread = np.std(result.scores[result.best]) * (100 if result.scoring == "accuracy" else 1)
        facts = {
            "best": " ".join(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
                             for name, value in result.best_params.items()) + f"  ({in_words(result.best_params)})",
            result.scoring.removeprefix("neg_"): f"{score} ± {spread:.3g} over {result.scores.shape[1]} folds",
            "edge": _edge_words(result),
            "targets": _target_words(result.best_model) if options.scale_targets else "",
            "points": str(len(result.points)),
            "seconds": f"{outcome['seconds']:.2f}",
            "results": outcome["results"],
            "model": "standard output" if outcome["model"] == "-" else outcome["model"],
        }  # fmt: skip
        print("".join(model_options.in_words(result.best_model, options)), file=stream)
        print_facts({name: words for name, words in facts.items() if words}, stream)


def _edge_words(result):
    """Return which of the best parameters are outermost, and the way out; nothing if none is."""
    found = edges(result.points, result.means)
    words = ", ".join(f"{name}={briefly(result.best_params[name])} is the {side} tried" for name, side in found.items())
    return f"{words}; --extend N goes beyond" if {"C", "gamma", "epsilon"} & set(found) else words


def _target_words(model):
    """Return what the parameters of a model of scaled targets are in the units of the data."""
    names = [name for name in ("C", "epsilon") if name in model.get_params()]
    return "scaled; in their own units " + " ".join(f"{name}={getattr(model, name):g}" for name in names)


def _powers(text):
    """Return the powers of two of BEGIN,END,STEP; none for null."""
    if text == "null":
        return []
    try:
        begin, end, step = map(float, text.split(","))
        count = int(np.floor((end - begin) / step + 1e-9)) + 1
        values = (2.0 ** (begin + step * np.arange(count))).tolist()
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"must be BEGIN,END,STEP or null, got {text!r}") from error
    if count < 1 or not np.isfinite(values).all():
        raise argparse.ArgumentTypeError(f"{text!r} has no values: STEP must lead from BEGIN to END")
    return values


def _values(text):
    """Return (name, values) of NAME=V1,V2,...; numbers are numbers."""
    name, equals, values = text.partition("=")
    if not (name and equals and values):
        raise argparse.ArgumentTypeError(f"must be NAME=V1,V2,..., got {text!r}")
    return name, [_value(value) for value in values.split(",")]


def _value(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
