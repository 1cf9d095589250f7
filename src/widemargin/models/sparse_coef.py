"""`sparsify` and `densify` of linear classifiers, as scikit-learn has them."""

from typing import Self

from scipy.sparse import csr_matrix, issparse
from sklearn.utils.validation import check_is_fitted


class SparseCoef:
    """A classifier whose `coef_` can be a sparse matrix."""

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
