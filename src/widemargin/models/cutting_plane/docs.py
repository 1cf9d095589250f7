"""What the documentation of the models fitted by cutting planes has in common."""

_PARAMETERS = """tol : float, default=1e-3
        Stop when the relative duality gap, (primal − dual) / primal, is at most this; with `stopping="violation"`,
        when the mean loss is above the planes by no more than this, as in SVM-Perf.
    solver : {"ocas", "svmperf"}, default="ocas"
        Cutting planes with line search, or without.
    stopping : {"gap", "violation"}, default="gap"
        What `tol` is compared with; "violation" is for "svmperf".
    max_iter : int or None, default=1000
        Most planes; None is no limit.
    warm_start : bool, default=False
        Start from the weights of the last fit if there are as many features.
    max_seconds : float or None, default=None
        Stop after about this time, with what has been reached.
    n_jobs : int or None, default=None
        Threads over rows. None is 1 unless in a joblib context; -1 all cores.
    verbose : int, default=0
        1 shows progress: bars on a terminal or in a notebook, elsewhere lines on standard error; 2 is more lines.
    callbacks : callable or list of callables, default=None
        Called after each plane with a `Progress`; one that returns a true value stops the fit."""

_ATTRIBUTES = """n_iter_ : int
        Planes.
    gap_ : float
        The relative duality gap: the objective is proved to be at most this fraction above the optimum.
    objective_ : float
        The objective at the model.
    history_ : structured ndarray
        Each measurement: iteration, seconds, passes, primal, dual, gap.
    solver_, status_ : str
        The solver, and why it stopped.
    n_features_in_ : int
    feature_names_in_ : ndarray
        If X had string column names."""


def documented(cls):
    """Fill what the models share into the class's docstring."""
    cls.__doc__ = cls.__doc__.replace("{parameters}", _PARAMETERS).replace("{attributes}", _ATTRIBUTES)
    return cls
