"""Combinations of scikit-learn's parameters that are refused, with its own words."""

_LOSSES_THAT_NEED_THE_DUAL = ("hinge", "epsilon_insensitive")


def refuse_unsupported(model):
    """Raise ValueError if a LinearSVC or LinearSVR has a penalty, or a loss with `dual`, that is not available."""
    names = [name for name in ("penalty", "loss", "dual") if hasattr(model, name)]
    given = "Unsupported set of arguments: " + ", ".join(f"{name}={getattr(model, name)!r}" for name in names) + "."
    if getattr(model, "penalty", "l2") == "l1":
        raise ValueError(f"{given} penalty='l1' is not available: it has no certificate. Use penalty='l2'.")
    if model.loss in _LOSSES_THAT_NEED_THE_DUAL and model.dual is False:
        raise ValueError(f"{given} loss={model.loss!r} needs dual=True or dual='auto', as in scikit-learn.")
