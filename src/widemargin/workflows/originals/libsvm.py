"""What svm-train does: `train_file` and `cross_validate_file` with LIBSVM's model text, and the lines of svm-train."""

from sklearn.base import BaseEstimator, clone

from widemargin._runtime.warning import warn_caller
from widemargin.workflows.errors import FileWarning
from widemargin.workflows.files import name_of, read_rows
from widemargin.workflows.result_text import train_lines
from widemargin.workflows.train import cross_validate_file, train_file


def trained_lines(model: BaseEstimator, data: str, output: str | None) -> list[str]:
    """Train, write LIBSVM's model text, and return the lines that svm-train prints."""
    trained = train_file(without_absent_weights(model, data), data, output, format="libsvm")
    return train_lines(trained.model, trained.facts)


def cross_validated_lines(model: BaseEstimator, data: str, n_folds: int) -> tuple[str, ...]:
    """Cross-validate, and return the lines that svm-train, or LIBLINEAR's train, prints."""
    return cross_validate_file(without_absent_weights(model, data), data, n_folds=n_folds).lines


def without_absent_weights(model: BaseEstimator, data: str) -> BaseEstimator:
    """Return the estimator without the weights of classes that have no row, of which it warns as these programs do.

    A file is read once more for it, if there are weights at all; standard input cannot be, and is left to `train_file`,
    which refuses such weights.
    """
    weights = getattr(model, "class_weight", None)
    if not weights or data == "-":
        return model
    labels = set(read_rows(data)[1].tolist())
    for absent in sorted(set(weights) - labels):
        warn_caller(f"{name_of(data)}: no row has the label {absent} of -w{absent}, which has no effect", FileWarning)
    return clone(model).set_params(class_weight={one: weights[one] for one in weights if one in labels} or None)
