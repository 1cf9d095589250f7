"""`predict_file`: a model and rows in, a label per line out, and how many of them agree with the data."""

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
from widemargin.persistence.libsvm import written_order
from widemargin.workflows.errors import ArgumentError, FileNote
from widemargin.workflows.files import (
    AnyPath,
    Source,
    as_path,
    as_source,
    check_one_input,
    check_target,
    read_model,
    write_lines,
)
from widemargin.workflows.kernel_summary import laplace_lines
from widemargin.workflows.model_rows import read_rows_for
from widemargin.workflows.spelling import spelled


@dataclass(frozen=True, eq=False)
class FilePrediction:
    """What `predict_file` predicted; `str` gives the lines that `widemargin predict` prints.

    Attributes
    ----------
    predicted : ndarray of shape (n_rows,)
        A label, target or score of a ranking for each row.
    measures : dict
        How the predictions agree with the labels of the file, such as `accuracy`, `mse`, `concordance`, and `rows`; nan
        where a measure is undefined.
    output : str or None
        The file that they were written to.
    lines : tuple of str
        The measures in words, as svm-predict prints them.
    """

    predicted: np.ndarray
    measures: dict
    output: str | None
    lines: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the measures as facts for JSON."""
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
) -> FilePrediction:
    """Predict the rows of a file with the model of another, and measure how the predictions agree with its labels.

    It is what `widemargin predict` does.

    Parameters
    ----------
    data : path or binary file object
        The rows, SVM-light / LIBSVM text, plain or compressed; "-" is standard input. They may have fewer features
        than the model; further ones are dropped with a warning if the model is linear.
    model : path
        A model of widemargin, LIBSVM, LIBLINEAR or SVM-light.
    output : path, default=None
        Where predictions are written, a line each; "-" is standard output, None nowhere.
    scores : bool, default=False
        Classification: write decision values after each label; the first line says what they belong to.
    probability : bool, default=False
        Write probabilities after each label, of a model that has them. Of a regression nothing more is written, and
        `measures` has the `laplace_scale` of the noise.
    task : {"classification", "regression", "rank"}, default=None
        What a model of SVM-light's text is for, which does not say unless widemargin wrote it; None: classification.
    zero_based : {"auto", True, False}, default="auto"
        Whether indices count from 0; "auto": if index 0 occurs.

    Returns
    -------
    FilePrediction
        With `predicted` and `measures`; it prints itself.

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
    X, y, qid = read_rows_for(fitted, source, path, zero_based=zero_based)
    predicted, text = _predict(fitted, X, scores=scores, probability=probability)
    if target is not None:
        write_lines(text, target)
    values = fitted.decision_function(X) if has_scores(fitted) else None
    query = np.zeros(len(y), int) if qid is None else qid
    measures = measure(fitted, y, Prediction(predicted, values, query))
    lines = prediction_lines(fitted, measures)
    if probability and is_regressor(fitted):
        scale = float(fitted.laplace_scale_)
        measures, lines = {**measures, "laplace_scale": scale}, [*laplace_lines(scale), *lines]
    return FilePrediction(predicted, measures, target, tuple(lines))


def _check_abilities(model, path, *, scores, probability):
    """Refuse an argument that the model has nothing for; note what it has and was not asked for."""
    if scores and (is_regressor(model) or isinstance(model, RankSVM)):
        kind = "regression" if is_regressor(model) else "ranking"
        raise ArgumentError(f"{spelled('scores=True')} is for classification, {path} is a {kind} model; leave it out")
    asked = spelled("probability=True")
    if probability and not has_probabilities(model):
        raise ArgumentError(f"{asked}: {path} has no probability estimates; leave it out or train with {asked}")
    if not probability and has_probabilities(model):
        warn_caller(f"{path} has probability estimates; {asked} would use them", FileNote)


def _predict(model, X, *, scores, probability):
    """Return the predictions, and the lines to write: labels, or a heading and labels with further numbers."""
    if probability and not is_regressor(model):
        predicted, heading, columns = _predict_probabilities(model, X)
    elif scores:
        predicted, heading, columns = _predict_scores(model, X)
    else:
        predicted = model.predict(X)
        return predicted, _number_texts(predicted)
    rows = [" ".join(map(repr, row)) for row in columns.tolist()]
    return predicted, [heading, *map(" ".join, zip(_number_texts(predicted), rows, strict=True))]


def _predict_probabilities(model, X):
    """Return predictions, svm-predict's heading of probabilities, and them; the most probable class is predicted."""
    probabilities = model.predict_proba(X)
    if not is_classifier(model):
        return model.predict(X), "label normal outlier", probabilities
    predicted, order = model.classes_[probabilities.argmax(axis=1)], written_order(model)
    return predicted, " ".join(["labels", *_number_texts(model.classes_[order])]), probabilities[:, order]


def _predict_scores(model, X):
    """Return predictions, a heading that says what decision values belong to, and the values."""
    if not is_classifier(model):  # one class, named as it is predicted
        return model.predict(X), "label 1", model.decision_function(X).reshape(-1, 1)
    names, is_machine = _number_texts(model.classes_), machine_of(model) is not None
    if is_machine:
        model.set_params(decision_function_shape="ovo")
    scores = model.decision_function(X).reshape(X.shape[0], -1)
    # Kernel values take the most time, and are computed once.
    predicted = labels_of(model, -scores if len(names) == 2 else scores) if is_machine else model.predict(X)
    if len(names) == 2:
        names = names[1:]
    elif is_machine:
        names = map("/".join, combinations(names, 2))
    return predicted, " ".join(["label", *names]), scores


def _number_texts(numbers):
    """Return texts that read back as the same numbers, whole ones without a point."""
    return [text.removesuffix(".0") for text in map(repr, np.asarray(numbers).tolist())]
