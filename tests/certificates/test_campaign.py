"""Every linear solver, kernel machine and cutting-plane model keeps its promises on problems that are hard on purpose.

A hundred and fifty problems; with WIDEMARGIN_NIGHTLY=1 tens of thousands, other ones each day. A failure prints its
seed and the command that repeats it.
"""

import os
import signal
import subprocess
import sys
from datetime import date

import pytest
from tests.certificates.campaign import Campaign

IS_NIGHTLY = os.environ.get("WIDEMARGIN_NIGHTLY", "") not in ("", "0")
# Seeds of each kind in one part, and the number of parts; few on each of the machines of tests/machines.
PLAN = {"linear": (50, 2), "kernel": (30, 1), "planes": (20, 1)}
if os.environ.get("WIDEMARGIN_CERTIFICATES") == "few":
    PLAN = {"linear": (25, 1), "kernel": (15, 1), "planes": (10, 1)}
if IS_NIGHTLY:
    PLAN = {"linear": (2500, 8), "kernel": (1000, 4), "planes": (1000, 4)}
LOOSE_PART = 0.2  # of the problems may have a reference that says little


def first_seed():
    """Return where the seeds begin: 0, or nightly a number of the day, which no other day has."""
    return 100_000 * date.today().toordinal() if IS_NIGHTLY else 0


def parts():
    """Return the kind of problem and the part of its seeds, for each test."""
    return [(kind, part) for kind, (_, n_parts) in PLAN.items() for part in range(n_parts)]


FAILED_ONCE = [73993702738, 73993703068]  # an exact solution that was none, and overflowed


def test_certificates_hold_where_they_once_did_not():
    assert not Campaign("linear").run(FAILED_ONCE).failures


@pytest.mark.parametrize(("kind", "part"), parts())
def test_certificates_hold_on_hard_problems(kind, part):
    n_seeds, _ = PLAN[kind]
    first = first_seed() + part * n_seeds
    done = Campaign(kind).run(range(first, first + n_seeds))
    assert done.counts["problems"] == n_seeds
    assert done.counts["loose"] <= LOOSE_PART * n_seeds
    told = "\n".join(failure.told() for failure in done.failures[:20])
    assert not done.failures, f"{len(done.failures)} failures, of which\n{told}"


_ENDLESS = """
from tests.certificates import campaign
campaign.SECONDS_PER_FIT = 0.2
with campaign.FitTimer():
    while True:
        pass
"""


def test_a_fit_that_never_ends_is_ended_by_the_system():
    ended = subprocess.run([sys.executable, "-c", _ENDLESS], timeout=60, check=False)
    assert ended.returncode == -signal.SIGPROF


class _Ending(Campaign):
    """A campaign whose process is always ended by the system at the seed 5, and otherwise finds nothing."""

    def _run_process(self, seeds):
        for seed in seeds:
            self._heard({"seed": seed, "solver": "newton", "problem": "3x2"})
            if seed == 5:
                return -signal.SIGPROF, False
        return 0, self._heard({"done": True})


def test_a_process_that_was_ended_is_a_failure_of_its_seed_and_the_next_seeds_are_judged():
    done = _Ending("linear").run(range(8))
    assert [(one.seed, one.solver, one.rule) for one in done.failures] == [(5, "newton", "ends")]
    assert "more than 10 s of processor time" in done.failures[0].told()
    assert "--kind linear --seeds 5 --solvers newton" in done.failures[0].told()
    assert done._now["seed"] == 7
