"""What the models use of scikit-learn that scikit-learn does not call public: imported here and nowhere else.

- `Interval`, `StrOptions` and `Hidden` of `sklearn.utils._param_validation` declare the values that a parameter may
  take, in the class attribute `_parameter_constraints`. scikit-learn's own estimators declare them so, and
  `BaseEstimator._validate_params` writes the error message; `make_constraint` returns what checks a value.
- `_num_samples`, `_check_sample_weight` and `_check_n_features` of `sklearn.utils.validation` count the rows of any
  container, and check weights and numbers of features with the messages that users of scikit-learn know.

Tested with scikit-learn 1.6 to 1.9. A later version that moves one of these names is repaired in this file alone.
"""

from sklearn.utils._param_validation import Hidden, Interval, StrOptions, make_constraint
from sklearn.utils.validation import _check_n_features, _check_sample_weight, _num_samples

__all__ = [
    "Hidden",
    "Interval",
    "StrOptions",
    "_check_n_features",
    "_check_sample_weight",
    "_num_samples",
    "make_constraint",
]
