"""`predict_file`: predict the rows of a file with a model, and compare the predictions with the labels."""

from collections import deque
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from widemargin._runtime.warning import warn_caller
from widemargin.evaluation.predictions import Prediction, has_probabilities, has_scores, measure, prediction_lines
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.kernel.machines import machine_of
from widemargin.models.multiclass import labels_of
from widemargin.models.probabilities import has_logistic_scores
from widemargin.persistence.libsvm import written_order
from widemargin.workflows.block_files import block_paths, refuse_options_of_text
from widemargin.workflows.errors import ArgumentError, FileNote, spelled
from widemargin.workflows.files import (
    AnyPath,
    Source,
    as_path,
    as_source,
    check_one_input,
    check_target,
    name_of,
    read_model,
    write_lines,
)
from widemargin.workflows.model_rows import RowsToPredict, blocks_for, read_rows_for
from widemargin.workflows.result_text import laplace_lines


@dataclass(frozen=True, eq=False)
class FilePrediction:
    """The result of `predict_file`; `str` gives the lines that `widemargin predict` prints.

    Attributes
    ----------
    predicted : ndarray of shape (n_rows,)
        For each row a class label, a target, or the score of a ranking.
    measures : dict
        Measures of the agreement with the labels of the file, such as `accuracy`, `mse` and `concordance`, and the
        number of `rows`; NaN if a measure is undefined.
    output : str or None
        The path of the file of predictions.
    lines : tuple of str
        The measures as svm-predict prints them.
    """

    predicted: np.ndarray
    measures: dict
    output: str | None
    lines: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the measures as a dict that can be written as JSON."""
        return dict(self.measures)

    def __str__(self) -> str:
        return "\n".join(self.lines)


def predict_file(
    data: Source,
    model: AnyPath,
    output: AnyPath | None = None,
    *,
    scores: bool = False,
    probability: bool = False,
    task: str | None = None,
    zero_based: str | bool = "auto",
    digits: int | None = None,
) -> FilePrediction:
    """Predict the rows of a file with a model, and compare the predictions with the labels of the file.

    This is the function of `widemargin predict`.

    Parameters
    ----------
    data : path or binary file object
        The rows as SVM-light / LIBSVM text, plain or compressed; "-" is standard input. Features
        that are missing are zero; features that a linear model does not have are dropped, with a warning.
        Or a row-block file, recognised by its content, which is read block by block while predictions are written.
    model : path
        A model of widemargin, LIBSVM, LIBLINEAR or SVM-light.
    output : path, default=None
        The file of predictions, one line per row; "-" is standard output, and with None no file is written.
    scores : bool, default=False
        For classification, whether to write decision values after each label, and their names in the first line.
    probability : bool, default=False
        Whether to write probabilities after each label, if the model has them. For regression nothing is added to the
        file, but `measures` has the `laplace_scale` of the noise.
    task : {"classification", "regression", "rank"}, default=None
        The task of a model in SVM-light's text, which contains it only if widemargin wrote the file; None is
        classification.
    zero_based : {"auto", True, False}, default="auto"
        Whether indices count from 0; "auto" is True if index 0 occurs.
    digits : int, default=None
        Number of significant digits of decision values and probabilities in the file; svm-predict writes 6. None writes
        as many as it takes to read the same number.

    Returns
    -------
    FilePrediction
        Has `predicted` and `measures`; `print` shows the measures.

    Raises
    ------
    FormatError
        If a file breaks a rule of its format.
    ValueError
        If an argument does not apply to the model.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> import io
    >>> from widemargin import LinearSVC, predict_file, save_model
    >>> save_model(LinearSVC().fit([[0.0], [1.0]], [-1, 1]), "line.model")
    >>> print(predict_file(io.BytesIO(b"1 1:2\\n-1 1:-3\\n"), "line.model"))
    Accuracy = 100% (2/2) (classification)
    """
    source, path, target = as_source(data), as_path(model), as_path(output)
    check_one_input(source, path)
    if probability and scores:
        raise ArgumentError(
            f"{spelled('probability=True')} and {spelled('scores=True')} both add columns to {spelled('output')}; "
            "leave one of them out"
        )
    if target is not None:
        check_target(target, source, path)
    fitted = read_model(path, task)
    _check_abilities(fitted, path, scores=scores, probability=probability)
    paths = block_paths(source)
    if paths is None:
        X, y, qid = read_rows_for(fitted, source, path, zero_based=zero_based)
        rows = RowsToPredict(iter([X]), y, qid)
    else:
        refuse_options_of_text(paths, {spelled("zero_based"): zero_based != "auto"})
        rows = blocks_for(fitted, paths, path)
    found: list[Prediction] = []
    form = repr if digits is None else f"{{:.{digits}g}}".format
    lines_of_file = _predict_parts(fitted, rows.parts, found, form, scores=scores, probability=probability)
    if target is None:
        deque(lines_of_file, maxlen=0)
    else:
        write_lines(lines_of_file, target)
    predicted = np.concatenate([part.labels for part in found])
    values = np.concatenate([part.scores for part in found]) if has_scores(fitted) else None
    query = np.zeros(len(rows.y), int) if rows.qid is None else rows.qid
    measures = measure(fitted, rows.y, Prediction(predicted, values, query))
    if measures.get("accuracy") == 0.0:
        _note_other_labels(fitted, rows.y, name_of(source))
    lines = prediction_lines(fitted, measures)
    if probability and is_regressor(fitted):
        scale = float(fitted.laplace_scale_)
        measures, lines = {**measures, "laplace_scale": scale}, [*laplace_lines(scale), *lines]
    return FilePrediction(predicted, measures, target, tuple(lines))


def _check_abilities(model, path, *, scores, probability):
    """Raise an ArgumentError if the model has no scores or probabilities; note that it has unused probabilities."""
    if scores and (is_regressor(model) or isinstance(model, RankSVM)):
        kind = "regression" if is_regressor(model) else "ranking"
        raise ArgumentError(f"{spelled('scores=True')} is for classification, {path} is a {kind} model; leave it out")
    asked = spelled("probability=True")
    if probability and not has_probabilities(model):
        way = asked if machine_of(model) is not None else spelled('loss="log_loss"')
        raise ArgumentError(f"{asked}: {path} has no probability estimates; leave it out or train with {way}")
    if not probability and has_probabilities(model) and not has_logistic_scores(model):  # there no fit is spent on them
        warn_caller(f"{path} has probability estimates; {asked} would use them", FileNote)


def _note_other_labels(model, y, name):
    """Note that no label of the rows is a class of the model, so that all predictions count as wrong."""
    labels = np.unique(y)
    if not np.isin(labels, model.classes_).any():
        found, known = (
            ", ".join([f"{one:g}" for one in some[:3]] + ["..."] * (len(some) > 3)) for some in (labels, model.classes_)
        )
        warn_caller(
            f"no label of {name} ({found}) is a class of the model ({known}): the accuracy has no meaning", FileNote
        )


def _predict_parts(model, parts, found, form, *, scores, probability):
    """Yield the lines of the output file, numbers written by `form`; append the Prediction of each part to `found`."""
    for X in parts:
        predicted, heading, lines = _predict(model, X, form, scores=scores, probability=probability)
        if heading is not None and not found:
            yield heading
        found.append(Prediction(predicted, model.decision_function(X) if has_scores(model) else None))
        yield from lines


def _predict(model, X, form, *, scores, probability):
    """Return predictions, the heading of the output file or None if it has one column, and its lines."""
    if probability and not is_regressor(model):
        predicted, heading, columns = _predict_probabilities(model, X)
    elif scores:
        predicted, heading, columns = _predict_scores(model, X)
    else:
        predicted = model.predict(X)
        return predicted, None, _number_texts(predicted)
    rows = [" ".join(map(form, row)) for row in columns.tolist()]
    return predicted, heading, map(" ".join, zip(_number_texts(predicted), rows, strict=True))


def _predict_probabilities(model, X):
    """Return predictions, which are the most probable classes, and svm-predict's heading and probabilities."""
    probabilities = model.predict_proba(X)
    if not is_classifier(model):
        return model.predict(X), "label normal outlier", probabilities
    predicted, order = model.classes_[probabilities.argmax(axis=1)], written_order(model)
    return predicted, " ".join(["labels", *_number_texts(model.classes_[order])]), probabilities[:, order]


def _predict_scores(model, X):
    """Return predictions, a heading with the names of the decision values, and the decision values."""
    if not is_classifier(model):  # one-class: its label is 1
        return model.predict(X), "label 1", model.decision_function(X).reshape(-1, 1)
    names, is_machine = _number_texts(model.classes_), machine_of(model) is not None
    if is_machine:
        model.set_params(decision_function_shape="ovo")
    scores = model.decision_function(X).reshape(X.shape[0], -1)
    # Labels follow from the scores, so that the expensive kernel values are computed once.
    predicted = labels_of(model, -scores if len(names) == 2 else scores) if is_machine else model.predict(X)
    if len(names) == 2:
        names = names[1:]
    elif is_machine:
        names = map("/".join, combinations(names, 2))
    return predicted, " ".join(["label", *names]), scores


def _number_texts(numbers):
    """Return numbers as texts that are read as the same numbers; integers have no decimal point, words no quotes."""
    if np.asarray(numbers).dtype.kind not in "biuf":
        return [str(one) for one in numbers]
    return [text.removesuffix(".0") for text in map(repr, np.asarray(numbers).tolist())]
