"""The parts of docstrings that all kernel machines share."""

_TEXTS = {
    "kernel": """kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        <x, z>, (gamma <x, z> + coef0)^degree, exp(−gamma |x − z|²), tanh(gamma <x, z> + coef0); or X is K(X, X) itself;
        or a function K(A, B) of two blocks of rows that returns one row per row of A.
    degree : int, default=3
        Of "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Of "rbf", "poly" and "sigmoid". "scale" is 1 / (n_features * X.var()), rows counted by `sample_weight` if that
        is given; "auto" is 1 / n_features.
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".""",
    "tol": """tol : float, default=1e-3
        Stop when no optimality (KKT) condition is violated by more than this, LIBSVM's eps, and the dual objective is
        proved to be within 10 tol of the optimum, relatively. With `stopping="gap"`: when `gap_` is at most this.""",
    "shared": """shrinking : bool, default=True
        Whether to leave out, for a while, variables that seem settled. The result is checked on all of them.
    cache_size : float, default=200
        Megabytes for kernel values; problems solved at the same time share them.
    verbose : bool or int, default=False
        1 shows progress: bars on a terminal or in a notebook, elsewhere lines on standard error; 2 is more lines.
    max_iter : int, default=-1
        Most iterations of the solver, for each problem; -1 is no limit.""",
    "classes": """class_weight : dict, "balanced" or None, default=None
        Factor of each class's weights, by class label; "balanced" is n_samples / (n_classes * rows of the class).
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With three classes or more, what `decision_function` returns: a score for each class, or the decision of each
        pair. Training is one-against-one either way.
    break_ties : bool, default=False
        With three classes or more and "ovr": whether equal votes are decided by confidence, at some cost, or go to the
        class that comes first.
    probability : "libsvm" or None, default=None
        "libsvm" fits the probabilities of LIBSVM too, by five-fold cross-validation: six times the work. True does the
        same and False is None, both with a FutureWarning: scikit-learn deprecates them in 1.9 and removes the parameter
        in 1.11, in favour of `CalibratedClassifierCV(SVC(), ensemble=False)`. Its "deprecated" is taken as None.
    random_state : int, RandomState or None, default=None
        Seeds the folds of probabilities, and the solver.""",
    "interval": """probability : bool or "libsvm", default=False
        True or "libsvm": whether to fit `predict_interval` too, by five-fold cross-validation: six times the work.
    random_state : int, RandomState or None, default=None
        Seeds the folds of probabilities, and the solver.""",
    "extra": """stopping : {"kkt", "gap"}, default="kkt"
        What `tol` is compared with: "kkt" the largest violation of an optimality condition, in units of the decision
        function (of its margin for `NuSVC`, of its threshold for `OneClassSVM`, where these are below 1); "gap" the
        relative duality gap.
    solver : {"auto", "svmlight", "smo"}, default="auto"
        "svmlight" optimises working sets of many variables, "smo" two at a time as LIBSVM does.
    working_set : int or None, default=None
        Variables in a working set of "svmlight"; None lets the solver choose.
    warm_start : bool, default=False
        Begin where the last fit ended, if the problems have as many variables.
    max_seconds : float or None, default=None
        Stop after about this time, with what has been reached.
    n_jobs : int or None, default=None
        Threads: over pairs of classes, or over rows. None is 1 unless in a joblib context; -1 all cores.
    callbacks : callable or list of callables, default=None
        Called after each turn with a `Progress`; one that returns a true value stops the fit. With several classes
        and threads they are called from several threads.""",
    "attributes": """support_ : ndarray of shape (n_SV,)
        Numbers of the training rows that are support vectors, by class, then ascending.
    support_vectors_ : ndarray or csr of shape (n_SV, n_features)
        Those rows; empty if the kernel is precomputed or callable.
    n_support_ : ndarray of int32
        Number of support vectors, of each class if there are classes.
    dual_coef_ : ndarray or csr of shape (n_classes - 1, n_SV), or (1, n_SV)
        Coefficients of the support vectors in the decision function; with several classes in LIBSVM's layout.
    intercept_ : ndarray of shape (n_classes * (n_classes - 1) / 2,), or (1,)
        Constants of the decision function.
    coef_ : ndarray or csr of shape (n_pairs, n_features)
        Weights of the features; linear kernel only.
    gap_ : float
        Relative duality gap of the model: its objective is proved to be at most this fraction above the optimum. The
        largest over pairs of classes.
    objective_ : float
        The objective at the model, summed over pairs.
    history_ : structured ndarray, or a list of them, one per pair
        Each measurement: iteration, seconds, passes, primal, dual, gap.
    solver_ : str
        The solver that ran.
    status_ : str
        Why it stopped.
    fit_status_ : int
        0 if the tolerance was reached, 1 if not.
    facts_ : list of dict
        What LIBSVM prints, for each pair: obj, rho, nSV, nBSV, iterations, and nu, C or epsilon where it has them.
    shape_fit_ : tuple
        Shape of X.
    n_features_in_ : int
        Number of features; not with a callable kernel.
    feature_names_in_ : ndarray
        Names of the features, if X had string column names.""",
}


def documented(cls):
    """Fill the shared parts into the class's docstring, where it has their names in braces."""
    for name, text in _TEXTS.items():
        cls.__doc__ = cls.__doc__.replace(f"{{{name}}}", text)
    return cls
