"""What svm-train does: `train_file` and `cross_validate_file` with LIBSVM's model text, and the lines of svm-train."""

from sklearn.base import BaseEstimator

from widemargin.workflows.result_text import train_lines
from widemargin.workflows.train import cross_validate_file, train_file


def trained_lines(model: BaseEstimator, data: str, output: str | None) -> list[str]:
    """Train, write LIBSVM's model text, and return the lines that svm-train prints."""
    trained = train_file(model, data, output, format="libsvm")
    return train_lines(trained.model, trained.facts)


def cross_validated_lines(model: BaseEstimator, data: str, n_folds: int) -> tuple[str, ...]:
    """Cross-validate, and return the lines that svm-train, or LIBLINEAR's train, prints."""
    return cross_validate_file(model, data, n_folds=n_folds).lines
