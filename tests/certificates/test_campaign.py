"""Every linear solver, kernel machine and cutting-plane model keeps its promises on problems that are hard on purpose.

A few hundred problems; with WIDEMARGIN_NIGHTLY=1 tens of thousands, other ones each day. A failure prints its seed and
the command that repeats it.
"""

import datetime
import os

import pytest
from tests.certificates.campaign import Campaign

IS_NIGHTLY = os.environ.get("WIDEMARGIN_NIGHTLY", "") not in ("", "0")
# Seeds of each kind in one part, and the number of parts.
PLAN = {"linear": (2500, 8), "kernel": (1500, 4), "planes": (1000, 4)} if IS_NIGHTLY else {
    "linear": (50, 4), "kernel": (50, 2), "planes": (25, 2)
}  # fmt: skip
LOOSE_PART = 0.2  # of the problems may have a reference that says little


def first_seed():
    """Return where the seeds begin: 0, or nightly a number of the day, which no other day has."""
    return 100_000 * datetime.date.today().toordinal() if IS_NIGHTLY else 0


def parts():
    """Yield the kind of problem and the part of its seeds, for each test."""
    for kind, (_, n_parts) in PLAN.items():
        yield from ((kind, part) for part in range(n_parts))


@pytest.mark.parametrize(("kind", "part"), parts())
def test_certificates_hold_on_hard_problems(kind, part):
    n_seeds, _ = PLAN[kind]
    first = first_seed() + part * n_seeds
    done = Campaign(kind).run(range(first, first + n_seeds))
    assert done.counts["problems"] == n_seeds
    assert done.counts["loose"] <= LOOSE_PART * n_seeds
    told = "\n".join(failure.told() for failure in done.failures[:20])
    assert not done.failures, f"{len(done.failures)} failures, of which\n{told}"


def test_a_fit_that_never_ends_is_noticed(monkeypatch, tmp_path):
    """The time limit is the system's, so that it holds in compiled loops too."""
    (tmp_path / "sitecustomize.py").write_text(
        "import tests.certificates.campaign as campaign\n"
        "campaign.SECONDS_PER_FIT = 0.5\n"
        "import tests.certificates.linear_trial as trial\n"
        "trial.warm_up = lambda: None\n"
        "trial.fitted = lambda model, *rows: campaign.FitTimer().__enter__() or [1 for _ in iter(int, 1)]\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.getcwd(), os.environ.get("PYTHONPATH", "")]))
    done = Campaign("linear", ["newton"]).run([3])
    assert [(one.seed, one.solver, one.rule) for one in done.failures] == [(3, "newton", "ends")]
    assert "more than 10 s of processor time" in done.failures[0].told()
