"""scikit-learn's callbacks, those that `set_callbacks` registers: scikit-learn 1.9 and later.

A fit is the task "fit", and each iteration that a solver reports is a subtask of it, "iteration", whose metadata are
the fields of `Progress`. A hook that returns True at the end of an iteration stops the solver, as a function among
the parameter `callbacks` does. The estimator that hooks receive as `fitted_estimator` exists at the end of the fit
only; while it goes on, it is None.

Callbacks of a search or a pipeline that scikit-learn passes on to the estimators within them arrive here, too.
"""

import functools
import inspect
import threading

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _tearing_down
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """This version of scikit-learn has no callbacks."""


def has_callbacks(model):
    """Return whether callbacks of scikit-learn are registered, or a search or a pipeline around the model has any."""
    return hasattr(model, "_skl_callbacks") or hasattr(model, "_parent_callback_ctx")


def with_callbacks(fit):
    """Return the method `fit` of an estimator, which calls the hooks of the callbacks if there are any.

    A `fit` that is called by another one of the same estimator is a part of it, not a task of its own.
    """

    @functools.wraps(fit)
    def fit_with_callbacks(model, *arguments, **keywords):
        if not has_callbacks(model) or hasattr(model, "_callback_fit_ctx"):
            return fit(model, *arguments, **keywords)
        return _tearing_down(_fit_as_task)(model, fit, arguments, keywords)

    return fit_with_callbacks


def _fit_as_task(model, fit, arguments, keywords):
    """Fit between the hooks of the beginning and of the end; return what `fit` returns."""
    given = inspect.signature(fit).bind(model, *arguments, **keywords).arguments
    metadata = {name: value for name, value in given.items() if name not in ("self", "X", "y") and value is not None}
    rows = {"X": given.get("X"), "y": given.get("y"), "metadata": metadata or None}
    task = model._init_callback_context(max_subtasks=None)
    task.call_on_fit_task_begin(estimator=model, **rows)
    fitted = fit(model, *arguments, **keywords)
    task.call_on_fit_task_end(estimator=model, **rows, reconstruction_attributes=dict)
    return fitted


def iteration_callbacks(model):
    """Return a tuple of at most one function of a `Progress`, which calls the hooks for an iteration of this fit."""
    task = getattr(model, "_callback_fit_ctx", None)
    if task is None or not has_callbacks(model):
        return ()
    one_at_a_time = threading.Lock()  # problems of several classes may be solved by several threads

    def call_hooks(progress):
        with one_at_a_time:
            iteration = task.subcontext(task_name="iteration")
            metadata = progress._asdict()
            iteration.call_on_fit_task_begin(estimator=model, metadata=metadata)
            return iteration.call_on_fit_task_end(estimator=model, metadata=metadata)

    return (call_hooks,)
