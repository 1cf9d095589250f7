"""Kernel machines and numbers of every size: each case ends soon, with finite numbers or a ValueError that says why.

Cases run in subprocesses that may take so much time of a processor, and so much memory, and no more.
"""

import resource
import subprocess
import sys
import textwrap

import pytest

SECONDS = 100  # of a processor, for some two hundred cases, compilation included
GIGABYTE = 1 << 30

CASES = """
    import warnings
    import numpy as np
    from widemargin import SVC, NuSVC, SVR, NuSVR, OneClassSVM

    warnings.simplefilter("ignore")
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 5))
    labels = np.where(X[:, 0] + 0.5 * random.standard_normal(60) > 0, 1, -1)
    targets = X[:, 1] + 0.1 * random.standard_normal(60)
    MACHINES = {
        SVC: ({}, labels), NuSVC: ({"nu": 0.2}, labels), SVR: ({}, targets), NuSVR: ({}, targets),
        OneClassSVM: ({}, None),
    }

    def judge(case, machine, X, y=None, weight=None, **parameters):
        usual, usual_y = MACHINES[machine]
        model = machine(**{**usual, "kernel": KERNEL, **parameters})
        try:
            model.fit(X, usual_y if y is None else y, sample_weight=weight)
            scores = model.predict(X) if machine in (SVR, NuSVR) else model.decision_function(X)
        except ValueError as error:
            assert len(str(error)) > 40, (case, machine, str(error))
            return
        assert np.isfinite(scores).all(), (case, machine)
        assert np.isfinite([model.gap_, model.objective_]).all(), (case, machine)
        assert model.status_ in ("converged", "no further progress in double precision"), (case, machine)
        limit = min(10 * model.tol, 0.1)
        assert model.status_ != "converged" or model.gap_ <= limit, (case, machine, model.gap_)

    for machine in MACHINES:
        for size in (1e-300, 1e-160, 1e-45, 1e-20, 1e-3, 1e3, 1e8, 1e20, 1e150, 1e160, 1e300):
            judge(f"X * {size}", machine, size * X)
        for size in (1e-45, 1e-40, 1e-30, 1e18, 1e38):
            single = (X.astype(np.float32) * np.float32(size)).clip(-3e38, 3e38)
            judge(f"single X * {size}", machine, single)
        for weight in (1e-300, 1e-5, 1e100, 1e300):
            judge(f"weight {weight}", machine, X, weight=np.full(60, weight))
        for gamma in (1e-300, 1e10, 1e300):
            judge(f"gamma {gamma}", machine, X, gamma=gamma)
        for tol in (1e-300, 0.1, 10.0):
            judge(f"tol {tol}", machine, X, tol=tol)
        judge("degree 50", machine, X, degree=50, gamma=1e5, coef0=1e5)
        judge("coef0 < 0", machine, X, coef0=-1e5)
    for machine in (SVC, SVR, NuSVR):
        for C in (1e-300, 1e3, 1e8, 1e30, 1e300):
            judge(f"C {C}", machine, X, C=C)
    for machine in (NuSVC, NuSVR, OneClassSVM):
        for nu in (1e-300, 1e-10, 0.01):
            judge(f"nu {nu}", machine, X, nu=nu)
    for machine in (SVR, NuSVR):
        for size in (1e-300, 1e-6, 1e8, 1e290, 1e300):
            judge(f"y * {size}", machine, X, y=size * targets)
"""

TWO_ROWS = """
    import warnings
    import numpy as np
    from scipy.sparse import csr_array
    from widemargin import SVC, NuSVC, SVR, NuSVR, OneClassSVM

    X = csr_array(([1.0, 2.0, 3.0], [0, 100_000_000, 5], [0, 2, 3]), shape=(2, 100_000_001))
    same = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    for machine in (SVC, NuSVC, SVR, NuSVR, OneClassSVM):
        for kernel in ("linear", "poly", "rbf", "sigmoid"):
            model = machine(kernel=kernel).fit(X, [1, 2])
            gamma = model._gamma
            few = machine(kernel=kernel, gamma=gamma).fit(same, [1, 2])
            np.testing.assert_allclose(model.predict(X), few.predict(same), rtol=1e-12)
"""


def run_limited(program, gigabytes, **names):
    """Run a program with limits; fail with what it wrote to standard error if it fails."""
    head = "".join(f"{name} = {value!r}\n" for name, value in names.items())

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (gigabytes * GIGABYTE, gigabytes * GIGABYTE))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    command = [sys.executable, "-c", head + textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20 * SECONDS, preexec_fn=limit, check=False)
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr[-2000:]}"


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
def test_numbers_of_every_size_end_soon_with_finite_numbers_or_a_clear_error(kernel):
    run_limited(CASES, 4, KERNEL=kernel)


def test_two_rows_with_a_huge_column_number_take_little_memory():
    run_limited(TWO_ROWS, 3)
