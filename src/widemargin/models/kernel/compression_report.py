"""`Compression`: how far a compressed kernel machine is from the original."""

from dataclasses import dataclass

from widemargin._runtime.argument_types import Floats


@dataclass(frozen=True, eq=False, repr=False)
class Compression:
    """How far a compressed model is from the original; an attribute of the model that `compress` returns.

    Attributes
    ----------
    n_before, n_after : int
        Numbers of vectors.
    distance : ndarray of shape (n_outputs,)
        |f − g| in the norm of the kernel's space, for each output: one, or one for each pair of classes. It is an
        upper bound that includes rounding.
    relative_distance : ndarray of shape (n_outputs,)
        `distance` divided by |f|; 0 where f = 0.
    bound : float or None
        No decision value changes by more than this, except for the rounding of prediction: the largest
        |f − g| √K(x, x) plus the change of the intercept, for every row x if the kernel is "rbf" and for the rows of X
        otherwise, or None if there are none.
    change : float or None
        The largest change of a decision value of a row of X; None without X.
    agreement : float or None
        The fraction of the rows of X whose label is the same; None without X and for regression.
    refit : {"coefficients", "vectors"} or None
        What was fitted to X.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC, compress
    >>> X, y = load_iris(return_X_y=True)
    >>> report = compress(SVC().fit(X, y), X, n_vectors=20).compression_
    >>> report.n_after, report.agreement > 0.9
    (20, True)
    """

    n_before: int
    n_after: int
    distance: Floats
    relative_distance: Floats
    bound: float | None = None
    change: float | None = None
    agreement: float | None = None
    refit: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the facts as a dict that can be written as JSON; of outputs, the largest."""
        facts = {name: getattr(self, name) for name in ("n_before", "n_after", "bound", "change", "agreement", "refit")}
        return {
            **facts,
            "distance": float(self.distance.max(initial=0.0)),
            "relative_distance": float(self.relative_distance.max(initial=0.0)),
        }

    def __repr__(self) -> str:
        facts = self.to_dict()
        of = f", the largest of {len(self.distance)} pairs" if len(self.distance) > 1 else ""
        lines = [
            f"vectors            {self.n_after} of {self.n_before}" + (f", refit {self.refit}" if self.refit else ""),
            f"distance           {facts['distance']:.3g} in the kernel's space, {facts['relative_distance']:.2g} "
            f"relative to the model{of}",
        ]
        if self.bound is not None:
            lines.append(f"change at most     {self.bound:.3g} of any decision value")
        if self.change is not None:
            lines.append(f"change on rows     {self.change:.3g} at most")
        if self.agreement is not None:
            lines.append(f"equal labels       {100.0 * self.agreement:.2f}% of the rows")
        return "\n".join(lines)
