"""`score` of classifiers and regressors, which for row blocks takes targets and weights from the file by default."""

from typing import Any

from numpy.typing import ArrayLike

from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.models.argument_types import RowsOrBlocks


class ScoresRowBlocks:
    """Precedes ClassifierMixin or RegressorMixin in the bases of an estimator, whose `score` it calls."""

    def score(self, X: RowsOrBlocks, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of a classifier, or the R² of a regressor, on the given rows.

        Parameters
        ----------
        X : array-like, sparse matrix or RowBlocks of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            The labels or targets. Of row blocks, None takes those of the file.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. Of row blocks, None takes those of the file, if it has any.

        Returns
        -------
        float
        """
        if isinstance(X, RowBlocks):
            sample_weight = X.weight if sample_weight is None else sample_weight
        base: Any = super()
        return float(base.score(X, targets_of(X, y), sample_weight))


def targets_of(X, y):
    """Return y, or the labels of row blocks if it is None.

    Raises
    ------
    ValueError
        If y is None and X are no row blocks.
    """
    if y is not None:
        return y
    if not isinstance(X, RowBlocks):
        raise ValueError(
            "This requires y to be passed, but the target y is None: only row blocks have labels of their own."
        )
    return X.labels
