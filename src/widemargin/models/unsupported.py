"""Combinations of scikit-learn's parameters that are refused, with its own words."""

_LOSSES_THAT_NEED_THE_DUAL = ("hinge", "epsilon_insensitive")


def refuse_unsupported(model):
    """Raise ValueError if a LinearSVC or LinearSVR has a loss with a `dual` that is not available."""
    names = [name for name in ("penalty", "loss", "dual") if hasattr(model, name)]
    given = "Unsupported set of arguments: " + ", ".join(f"{name}={getattr(model, name)!r}" for name in names) + "."
    if model.loss in _LOSSES_THAT_NEED_THE_DUAL and model.dual is False:
        raise ValueError(f"{given} loss={model.loss!r} needs dual=True or dual='auto', as in scikit-learn.")
