"""`grid_file`: choose parameters by cross-validation, and fit a model with the best ones to all rows of a file."""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from widemargin.models.cutting_plane.queries import queries
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.kernel.base import KernelModel
from widemargin.models.kernel.one_class import OneClassSVM
from widemargin.models.linear_one_class import LinearOneClassSVM
from widemargin.plots.convergence import make_figure
from widemargin.plots.grid import grid_page, plot_grid
from widemargin.selection.grid_result import GridResult
from widemargin.selection.grid_search import grid_search
from widemargin.selection.live_table import briefly, in_words, shown
from widemargin.selection.parameter_ranges import default_grid, edges
from widemargin.selection.target_scaling import scale_of
from widemargin.workflows.block_files import refuse_blocks
from widemargin.workflows.errors import ArgumentError, FileError, spelled
from widemargin.workflows.files import (
    AnyPath,
    Source,
    as_path,
    as_source,
    check_target,
    naming,
    naming_the_file,
    shown_progress,
    write_lines,
)
from widemargin.workflows.model_rows import (
    ReadOptions,
    certified_gap,
    choose_target,
    read_training_rows,
    write_trained_model,
)
from widemargin.workflows.result_text import columns, model_words

_PAGE_SUFFIX = ".html"  # drawn without matplotlib
_PICTURE_SUFFIXES = (".png", ".svg", ".pdf", _PAGE_SUFFIX)


@dataclass(frozen=True, eq=False)
class GridFile:
    """The result of `grid_file`; `str` gives the lines that `widemargin grid` prints.

    Attributes
    ----------
    result : GridResult
        Points, scores and the best model, as `grid_search` returns them.
    description : str
        A description of the model.
    results : str
        The path of the file of scores.
    output : str
        The path of the model file; "-" is standard output.
    seconds : float
        The time of the search and of the last fit.
    targets_scaled : bool
        Whether C and epsilon are in units of the standard deviation of the targets.
    """

    result: GridResult
    description: str
    results: str
    output: str
    seconds: float
    targets_scaled: bool

    @property
    def edges(self) -> dict[str, str]:
        """The parameters whose best value is on the edge of the grid: a dict of name to "smallest" or "largest"."""
        return edges(self.result.points, self.result.means)

    @property
    def gap(self) -> float:
        """The certified relative duality gap of the best model."""
        return certified_gap(self.result.best_model)

    @property
    def summary(self) -> str:
        """The lines below the description, in two columns."""
        result = self.result
        score = f"{shown(result.best_score, result.scoring)}{'%' if result.scoring == 'accuracy' else ''}"
        spread = np.std(result.scores[result.best]) * (100 if result.scoring == "accuracy" else 1)
        best = " ".join(
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in result.best_params.items()
        )
        facts = {
            "best": f"{best}  ({in_words(result.best_params)})",
            result.scoring.removeprefix("neg_"): f"{score} ± {spread:.3g} over {result.scores.shape[1]} folds",
            "edge": self._edge_words(),
            "targets": _target_words(result.best_model) if self.targets_scaled else "",
            "points": str(len(result.points)),
            "seconds": f"{self.seconds:.2f}",
            "results": self.results,
            "model": "standard output" if self.output == "-" else self.output,
        }
        return columns({name: words for name, words in facts.items() if words})

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict that can be written as JSON."""
        result = self.result
        points = [
            {**point, "score": float(mean), "scores": scores.tolist(), "seconds": float(seconds)}
            for point, mean, scores, seconds in zip(
                result.points, result.means, result.scores, result.seconds, strict=True
            )
        ]
        return {
            "trained": self.description,
            "best": result.best_params,
            "edges": self.edges,
            "score": result.best_score,
            "scoring": result.scoring,
            "points": points,
            "results": self.results,
            "model": self.output,
            "seconds": self.seconds,
            "gap": self.gap,
        }

    def __str__(self) -> str:
        return f"{self.description}\n{self.summary}"

    def _edge_words(self):
        """Return a sentence about best parameters on the edge of the grid, with a remedy; empty if there are none."""
        found, best = self.edges, self.result.best_params
        words = ", ".join(f"{name}={briefly(best[name])} is the {side} tried" for name, side in found.items())
        return f"{words}; {spelled('extend=N')} goes beyond" if {"C", "gamma", "epsilon"} & set(found) else words


class _SearchOptions(NamedTuple):
    """Arguments of the search."""

    results: str

    n_folds: int
    seed: int
    scoring: str | None
    extend: int
    refine: int
    n_jobs: int | None
    memory: float
    resume: bool
    verbose: int


def grid_file(
    estimator: BaseEstimator,
    data: Source,
    output: AnyPath | None = None,
    *,
    grid: dict | None = None,
    n_folds: int = 5,
    seed: int = 0,
    scoring: str | None = None,
    extend: int = 0,
    refine: int = 0,
    scale_targets: bool = False,
    n_jobs: int | None = None,
    memory: float = 2000.0,
    results: AnyPath | None = None,
    resume: bool = False,
    overwrite: bool = False,
    plots: Iterable[AnyPath] = (),
    format: str = "widemargin",  # noqa: A002
    n_features: int | None = None,
    zero_based: str | bool = "auto",
    dtype: DTypeLike = np.float64,
    verbose: int = 0,
) -> GridFile:
    """Choose parameters by cross-validation on the rows of a file, and write a model trained with the best.

    This is the function of `widemargin grid`. Each score is appended to a file as soon as it is known, so that a search
    that was interrupted can be continued.

    Parameters
    ----------
    estimator : estimator
        Any estimator of widemargin except one-class machines; it is not changed. Parameters that are not in the grid
        keep the values that they have in it.
    data : path or binary file object
        The rows, as for `train_file`.
    output : path, default=None
        The model file. None is the name of the data file with ".model" appended, in the current directory; "-" is
        standard output.
    grid : dict of name to values, default=None
        The values to try; None takes LIBSVM's ranges, as in `grid_search`.
    n_folds : int, default=5
        Number of folds. Rows are shuffled; each fold of a classification has the classes in the same proportion, and
        queries of a ranking are not divided.
    seed : int, default=0
        Seed of the folds.
    scoring : str, default=None
        scikit-learn's name of the score. None is accuracy, or `neg_mean_squared_error` for regression. A ranking is
        scored by its concordance, and `scoring` must be None.
    extend : int, default=0
        Largest number of times that the grid is extended while the best C, gamma or epsilon is on its edge.
    refine : int, default=0
        Number of refinements of the grid around the best point, after it was extended.
    scale_targets : bool, default=False
        For regression, whether to search with targets scaled to mean 0 and standard deviation 1, so that C and epsilon
        are in units of the standard deviation. The model predicts in the units of the data.
    n_jobs : int or None, default=None
        Number of threads; None and −1 are one per core.
    memory : float, default=2000
        Megabytes available for kernel matrices that are shared by all folds.
    results : path, default=None
        The file of scores; None is the name of the data file with ".grid" appended, in the current directory.
    resume : bool, default=False
        Whether to continue the search of an existing file of scores, which are not computed again.
    overwrite : bool, default=False
        Whether to replace an existing file of scores. An existing file is an error if neither this nor `resume` is
        True.
    plots : iterable of paths, default=()
        Files of pictures of the scores: .png, .svg or .pdf, or .html for an interactive page.
    format : {"widemargin", "liblinear", "libsvm", "svmlight"}, default="widemargin"
        The format of the model file, see `save_model`.
    n_features : int, default=None
        Number of columns; None is the largest index in the file.
    zero_based : {"auto", True, False}, default="auto"
        Whether indices count from 0; "auto" is True if index 0 occurs.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of the values.
    verbose : int, default=0
        Above 0, show a table of the scores and a progress bar on a terminal or in a notebook, and lines elsewhere.

    Returns
    -------
    GridFile
        Has the `result` of the search; `print` shows a summary.

    Raises
    ------
    FormatError
        If a file breaks a rule of its format.
    ValueError
        If an argument or the labels do not apply to the estimator, or if the scores of an earlier search would be lost.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LinearSVC, grid_file, write_svmlight
    >>> write_svmlight("flowers", *load_iris(return_X_y=True))
    >>> found = grid_file(LinearSVC(), "flowers", grid={"C": [0.01, 1.0]}, overwrite=True)
    >>> found.result.best_params, found.output
    ({'C': 1.0}, 'flowers.model')
    """
    source, model = as_source(data), clone(estimator)
    refuse_blocks(source, "a grid search")
    _check_estimator(model, scale_targets, scoring)
    target = choose_target(source, as_path(output))
    scores, pictures = _choose_results(source, as_path(results)), [as_path(path) for path in plots]
    _check_targets(source, target, scores, pictures)
    check_results(scores, resume=resume, overwrite=overwrite)
    if overwrite and os.path.exists(scores):
        os.unlink(scores)
    with shown_progress(verbose):
        rows = read_training_rows(model, source, ReadOptions(format, n_features, zero_based, dtype))
    started, scale = time.perf_counter(), None
    if scale_targets:
        scale = naming_the_file(source, scale_of, rows.y)
        rows = rows._replace(y=scale.apply(rows.y))
    options = _SearchOptions(scores, n_folds, seed, scoring, extend, refine, n_jobs, memory, resume, verbose)
    found = _search(model, default_grid(model) if grid is None else grid, source, rows, scale, options)
    seconds = time.perf_counter() - started
    if scale is not None:
        scale.restore(found.best_model)
    write_trained_model(found.best_model, target, format, rows)
    for path in pictures:
        _draw(found, path)
    return GridFile(found, model_words(found.best_model), scores, target, seconds, scale_targets)


def _check_estimator(model, scale_targets, scoring):
    """Raise an ArgumentError if the estimator cannot be scored, or if an argument does not apply to it."""
    for name, option in (("checkpoint", spelled("checkpoint")), ("max_memory", spelled("max_memory"))):
        if getattr(model, name, None) is not None:
            raise ArgumentError(f"{option} is for a single fit of {spelled('train_file')}; leave it out")
    if isinstance(model, OneClassSVM | LinearOneClassSVM):
        raise ArgumentError("a one-class machine has no labels to be scored by; choose nu, and train")
    if scale_targets and not is_regressor(model):
        raise ArgumentError(f"scale_targets is for regression, got {type(model).__name__}; leave it out")
    if scoring is not None and isinstance(model, RankSVM):
        raise ArgumentError(
            "scoring is not for RankSVM, whose score is the mean concordance over queries; leave it out"
        )


def _choose_results(data, results):
    """Return the path of the file of scores."""
    if results is None and not isinstance(data, str):
        raise ArgumentError("results must be named if data is a file object")
    return results or f"{os.path.basename(data)}.grid"


def _check_targets(data, target, results, plots):
    """Raise an error if an output file cannot be written."""
    for path in (target, results, *plots):
        check_target(path, data)
    if results == "-" or (os.path.exists(results) and not os.path.isfile(results)):
        raise ArgumentError(f"{spelled('results')} must be a file, as it is what a search goes on with, got {results}")
    for path in plots:
        if not path.endswith(_PICTURE_SUFFIXES):
            raise ArgumentError(f"{spelled('plots')} {path}: the name must end with {', '.join(_PICTURE_SUFFIXES)}")
        if not path.endswith(_PAGE_SUFFIX):
            _check_matplotlib(path)


def _check_matplotlib(path):
    """Raise an ArgumentError, before the search, if this picture cannot be drawn."""
    try:
        make_figure(n_rows=1)
    except ImportError as error:
        raise ArgumentError(
            f"{spelled('plots')} {path}: {error}; or name a file that ends with {_PAGE_SUFFIX}"
        ) from error


def check_results(results, *, resume, overwrite):
    """Raise an error if the scores of an earlier search would be lost."""
    if resume and overwrite:
        raise ArgumentError(
            f"{spelled('resume=True')} and {spelled('overwrite=True')} contradict each other; leave one of them out"
        )
    is_there = os.path.exists(results) and os.path.getsize(results)
    if is_there and not (resume or overwrite):
        raise FileError(
            f"{results} holds the results of an earlier search; add {spelled('resume=True')} to go on with it, "
            f"or {spelled('overwrite=True')} to begin anew"
        )


def _search(model, grid, data, rows, scale, options):
    """Return the GridResult; after Ctrl-C, the KeyboardInterrupt says how the search can be continued."""
    scoring = options.scoring or ("neg_mean_squared_error" if is_regressor(model) else None)
    scoring = scoring if scale is None else scale.scorer(scoring)
    extra = {"qid": rows.qid} if isinstance(model, RankSVM) and rows.qid is not None else None
    asked = next((name for name in ("probability", "calibration") if getattr(model, name, None)), None)
    if isinstance(model, KernelModel) and asked is not None:
        asked, training = spelled("probability=True" if asked == "probability" else asked), spelled("train_file")
        raise ArgumentError(f"{asked} is for {training}: the search itself needs no probabilities")
    try:
        with naming(options.results):
            return naming_the_file(
                data, grid_search, model, rows.X, rows.y, grid, cv=naming_the_file(data, _folds, model, rows, options),
                scoring=scoring, extend=options.extend, refine=options.refine, n_jobs=options.n_jobs,
                memory=options.memory, results=options.results, resume=options.resume, fit_parameters=extra,
                verbose=options.verbose,
            )  # fmt: skip
    except KeyboardInterrupt as interrupt:
        again = spelled("resume=True")
        raise KeyboardInterrupt(f"{options.results} holds what is done; {again} goes on with it") from interrupt


def _folds(model, rows, options):
    """Return folds of shuffled rows: stratified for classification, and with undivided queries for ranking."""
    if isinstance(model, RankSVM):
        group = queries(rows.qid, len(rows.y))
        return list(GroupKFold(options.n_folds, shuffle=True, random_state=options.seed).split(rows.X, rows.y, group))
    kind = StratifiedKFold if is_classifier(model) else KFold
    return kind(options.n_folds, shuffle=True, random_state=options.seed)


def _draw(result, path):
    with naming(path):
        if path.endswith(_PAGE_SUFFIX):
            write_lines([grid_page(result)], path)
        else:
            plot_grid(result, path=path)


def _target_words(model):
    """Return C and epsilon of a model of scaled targets in the units of the data, as text."""
    names = [name for name in ("C", "epsilon") if name in model.get_params()]
    return "scaled; in their own units " + " ".join(f"{name}={getattr(model, name):g}" for name in names)
