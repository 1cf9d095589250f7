"""Fit problems of a range of seeds with every solver that takes them, and judge each fit.

    python -m tests.certificates.campaign --kind linear --seeds 0:300
    python -m tests.certificates.campaign --kind linear --seeds 17 --solvers newton,ocas

Run it from the repository's root; PYTHONPATH decides whose widemargin is judged. Each failure is a line with the seed,
the solver, what is wrong, and the problem. A fit that uses more than ten seconds of processor time ends the process by
a signal, whatever compiled loop it hangs in; the parent process notes it and goes on with the next seed.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import warnings
from dataclasses import dataclass

KINDS = ("linear", "kernel", "planes")
SECONDS_PER_FIT = 10.0
SECONDS_WITHOUT_NEWS = (
    600.0  # of the clock, compilation included: a process that waits for itself uses no processor time
)


@dataclass(frozen=True)
class Failure:
    """One thing that is wrong with one fit."""

    kind: str
    seed: int
    solver: str
    rule: str
    message: str
    problem: str

    def told(self):
        """Return the failure, and how to repeat it."""
        again = f"python -m tests.certificates.campaign --kind {self.kind} --seeds {self.seed} --solvers {self.solver}"
        return f"{self.rule}: {self.message}\n    {self.problem}\n    {again}"


# --- The process that fits ------------------------------------------------------------------------------------------


class FitTimer:
    """Within the block the process may use ten seconds of processor time; beyond, the system ends it."""

    def __enter__(self):
        signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_FIT)

    def __exit__(self, *error):
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def say(**news):
    """Write a line of news for the parent process."""
    print(json.dumps(news), flush=True)


def fitted(model, *arguments):
    """Fit a model; return the messages of warnings that are not about convergence."""
    from widemargin import ConvergenceWarning

    with warnings.catch_warnings(record=True) as caught, FitTimer():
        warnings.simplefilter("always")
        model.fit(*arguments)
    return [f"{one.category.__name__}: {one.message}" for one in caught if one.category is not ConvergenceWarning]


def work(kind, seeds, solvers):
    """Judge the problems of some seeds; tell each failure to the parent process."""
    from importlib import import_module

    trial = import_module(f"tests.certificates.{kind}_trial")
    trial.warm_up(say)
    for seed in seeds:
        say(seed=seed)
        trial.judge_seed(seed, solvers, say)
    say(done=True)


# --- The process that watches ---------------------------------------------------------------------------------------


class Campaign:
    """Failures and counts of the problems of some seeds, judged in a process of their own."""

    def __init__(self, kind, solvers=None, tell=lambda failure: None):
        self.kind, self.solvers, self._tell = kind, solvers, tell
        self.failures, self.counts = [], {"problems": 0, "fits": 0, "loose": 0}
        self._now = {"seed": None, "solver": "auto", "problem": ""}
        self._ended_at = None

    def run(self, seeds):
        """Judge the problems of these seeds; where the process is ended, go on with the next seed."""
        seeds = list(seeds)
        while seeds:
            code, is_done = self._run_process(seeds)
            if is_done:
                return self
            if self._now["seed"] is None:
                raise RuntimeError(f"The process that fits ended before the first seed, code {code}.")
            position = seeds.index(self._now["seed"])
            if self._ended_at == self._now["seed"]:  # the first time it may have been compilation
                self._fail(self._now["solver"], "ends", _ending(code))
                position += 1
            self._ended_at, seeds = self._now["seed"], seeds[position:]
        return self

    def _run_process(self, seeds):
        """Run one process; return its exit code, and whether it came to the end."""
        command = [sys.executable, "-m", "tests.certificates.campaign", "--work", "--kind", self.kind]
        command += ["--seeds", ",".join(map(str, seeds)), "--solvers", ",".join(self.solvers or [])]
        is_done = False
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment()) as process:
            clock = _restarted(None, process)
            for line in process.stdout:
                clock = _restarted(clock, process)
                is_done = self._heard(json.loads(line)) or is_done
            clock.cancel()
        return process.returncode, is_done

    def _heard(self, news):
        """Note a line of news; return whether it is the last."""
        self._now.update({key: news[key] for key in self._now if key in news})
        for key in self.counts:
            self.counts[key] += news.get(key, 0)
        if "rule" in news:
            self._fail(news["by"], news["rule"], news["message"])
        return "done" in news

    def _fail(self, solver, rule, message):
        self.failures.append(Failure(self.kind, self._now["seed"], solver, rule, message, self._now["problem"]))
        self._tell(self.failures[-1])


def _restarted(clock, process):
    """Return a clock that kills the process if it is silent for too long; the last one is stopped."""
    if clock is not None:
        clock.cancel()
    clock = threading.Timer(SECONDS_WITHOUT_NEWS, process.kill)
    clock.daemon = True
    clock.start()
    return clock


def _ending(code):
    if code == -signal.SIGPROF:
        return f"a fit used more than {SECONDS_PER_FIT:.0f} s of processor time"
    return (
        f"the process was ended by {signal.Signals(-code).name}" if code < 0 else f"the process ended with code {code}"
    )


def _environment():
    """One thread, so that processor time is time."""
    one = dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"], "1")
    return {**os.environ, **one}


def seeds_of(text):
    """Return the seeds of "17", "3,5,8" or "0:300"."""
    first, _, last = text.partition(":")
    return list(range(int(first), int(last))) if last else [int(seed) for seed in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--seeds", type=seeds_of, required=True, help='"17", "3,5,8" or "0:300"')
    parser.add_argument("--solvers", default="", help="only these, with commas between; all if there are none")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    solvers = [name for name in options.solvers.split(",") if name]
    if options.work:
        work(options.kind, options.seeds, solvers)
        return
    done = Campaign(options.kind, solvers, tell=lambda failure: print(failure.told(), flush=True)).run(options.seeds)
    print(f"{len(done.failures)} failures; {done.counts}")
    sys.exit(1 if done.failures else 0)


if __name__ == "__main__":
    main()
