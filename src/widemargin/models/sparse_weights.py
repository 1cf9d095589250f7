"""Weights of a linear classifier as a sparse matrix, and back."""

from typing import Any, Self

from scipy.sparse import csr_matrix, issparse
from sklearn.utils.validation import check_is_fitted


class SparseWeights:
    """`sparsify` and `densify` of scikit-learn's linear classifiers."""

    coef_: Any

    def sparsify(self) -> Self:
        """Turn `coef_` into a sparse matrix; predictions stay the same."""
        check_is_fitted(self)
        self.coef_ = csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Turn `coef_` back into an array."""
        check_is_fitted(self)
        self.coef_ = self.coef_.toarray() if issparse(self.coef_) else self.coef_
        return self
