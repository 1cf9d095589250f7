"""The problems of the kernel benchmarks: a data set, a kernel width, and a C that is sensible or a hundred times that.

Where gamma is given, C and gamma are usual for the set, or the best of a few on held out rows. One-class problems have
nu in place of C, which would be 1 / (nu n); the hard one has a tenth of nu.
"""

from dataclasses import dataclass, replace

from benchmarks.datasets import kernel_set, preparation


@dataclass(frozen=True)
class Case:
    """One problem, rbf kernel. `C` is nu for "one-class"."""

    set: str
    C: float
    gamma: float | None = None  # None: 1 / (n_features · variance), as a number, the same for everybody
    epsilon: float = 0.1

    @property
    def kind(self):
        """Which machine: "svc", "svr" or "one-class"."""
        return preparation(self.set).kind

    def parameters(self):
        """Return the estimator's parameters."""
        gamma = scale_gamma(kernel_set(self.set)[0]) if self.gamma is None else self.gamma
        if self.kind == "one-class":
            return {"nu": self.C, "gamma": gamma}
        return {"C": self.C, "gamma": gamma} | ({"epsilon": self.epsilon} if self.kind == "svr" else {})

    def shown(self):
        """Return the parameters in words."""
        return ", ".join(f"{name} {value:.3g}" for name, value in self.parameters().items())

    def hard(self):
        """Return the case with a large C."""
        return replace(self, C=self.C / 10 if self.kind == "one-class" else self.C * 100)


def scale_gamma(X):
    """Return 1 / (n_features · variance of all values, zeros included) to three digits."""
    n_values = X.shape[0] * X.shape[1]
    mean, squares = X.sum() / n_values, X.multiply(X).sum() if hasattr(X, "multiply") else (X * X).sum()
    return float(f"{1.0 / (X.shape[1] * (squares / n_values - mean**2)):.3g}")


LARGE = [
    Case("a9a", 1.0, 0.05),
    Case("w8a", 1.0, 0.05),
    Case("ijcnn1", 10.0, 1.0),
    Case("letter.scale", 10.0, 1.0),
    Case("usps", 10.0, 0.007),
    Case("mnist:10000", 10.0, 0.02),
    Case("covtype.libsvm.binary.scale:30000", 10.0, 10.0),
    Case("cpusmall_scale", 10.0, 0.5),
    Case("cadata", 10.0, 1.0),
    Case("lasvm-reuters-money-fx", 10.0, 1.0),
    Case("odds-shuttle", 0.1),
]
SMALL = [  # those that a page of few minutes must not leave out come first
    Case("space_ga_scale", 10.0),
    Case("abalone_scale", 10.0, 0.5),
    Case("kin8nm", 1.0, 0.5),
    Case("a4a", 1.0, 0.05),
    Case("odds-cardio", 0.1),
    Case("odds-satellite", 0.1),
    Case("mushrooms", 1.0),
    Case("bank32nh", 1.0),
    Case("australian", 1.0),
    Case("diabetes_scale", 1.0),
    Case("german.numer_scale", 1.0),
    Case("splice", 1.0),
    Case("svmguide3", 1.0),
    Case("dna.scale", 10.0),
    Case("svmguide1", 10.0, 1.0),
    Case("satimage.scale", 10.0),
    Case("pendigits", 10.0),
    Case("phishing", 1.0),
    Case("rcv1-vw-1000", 1.0),
    Case("a1a", 1.0, 0.05),
    Case("svmlight-example1", 1.0),
    Case("w1a", 1.0, 0.05),
]
HARD = {"a9a", "w8a", "ijcnn1", "covtype.libsvm.binary.scale:30000", "kin8nm", "space_ga_scale", "abalone_scale"}
HARD |= {case.set for case in SMALL if case.kind == "svc"}  # with 100 times the C too
QUICK = [Case("a1a", 1.0, 0.05), Case("dna.scale", 10.0), Case("svmguide1", 10.0, 1.0), Case("space_ga_scale", 10.0)]
