"""Single sweeps of dual coordinate descent against LIBLINEAR's, and one against the rest in threads."""

import time

import numpy as np

from benchmarks.datasets import binary, load
from benchmarks.machinery.figures import Seconds, ratio, shown, take_turns, timed
from widemargin import LinearSVC

_SWEEPS = 8  # the first ones: later ones are over what each program's shrinking has left, which is not the same
_FORMS = ["LIBLINEAR", "CSR", "CSR float32", "dense", "dense float32"]


def sweep_table(page, names, options):
    """Put milliseconds of single sweeps: ours in each storage against LIBLINEAR's."""
    columns = ["set", "rows", *_FORMS, "LIBLINEAR / CSR", "LIBLINEAR / dense"]
    for name in page.each("sweeps", names):
        X, sign = binary(name)
        forms = {"CSR": X, "CSR float32": X.astype(np.float32)}
        if X.nnz >= 0.25 * X.shape[0] * X.shape[1]:  # what people keep as a dense array
            forms |= {"dense": X.toarray(), "dense float32": X.toarray().astype(np.float32)}
        times = {key: [] for key in ["LIBLINEAR", *forms]}
        for _ in range(int(min(31, max(5, 1e7 // (X.nnz + 20 * X.shape[0]))))):
            times["LIBLINEAR"].append(_sweep_milliseconds(_peer_sweeps, X, sign))
            for key, form in forms.items():
                times[key].append(_sweep_milliseconds(_our_sweeps, form, sign))
        median = {key: Seconds(values) for key, values in times.items()}
        ratios = [ratio(median["LIBLINEAR"], median.get(key)) for key in ("CSR", "dense")]
        page.put("sweeps", columns, [name, X.shape[0], *(shown(median.get(key)) for key in _FORMS), *ratios], n_key=1)


def _sweep_milliseconds(sweeps, X, sign):
    """Return milliseconds per sweep: the difference between many sweeps and one."""
    return 1e3 * max(sweeps(X, sign, 1 + _SWEEPS) - sweeps(X, sign, 1), 1e-9) / _SWEEPS


def _our_sweeps(X, sign, n_sweeps):
    model = LinearSVC(
        loss="hinge", fit_intercept=False, solver="dcd", stopping="kkt", tol=0.0, max_iter=n_sweeps, random_state=0
    )
    begun = time.perf_counter()
    model.fit(X, sign)
    return time.perf_counter() - begun


def _peer_sweeps(X, sign, n_sweeps):
    from sklearn.svm import LinearSVC as Peer

    model = Peer(loss="hinge", fit_intercept=False, dual=True, tol=1e-300, max_iter=n_sweeps, random_state=0)
    begun = time.perf_counter()
    model.fit(X, sign)
    return time.perf_counter() - begun


def thread_table(page, names, options):
    """Put seconds of one against the rest, with two threads and with one."""
    for name in page.each("threads", names):
        X, y = load(name)
        models = {
            n_jobs: LinearSVC(loss="hinge", C=1e-5, tol=3e-2, max_iter=None, random_state=0, n_jobs=n_jobs)
            for n_jobs in (1, 2)
        }
        found = take_turns({n_jobs: timed(model.fit, X, y) for n_jobs, model in models.items()}, options.repeats)
        one, two = (seconds for _, seconds in found.values())
        cells = [name, len(np.unique(y)), shown(one), shown(two), ratio(one, two)]
        page.put("threads", ["set", "classes", "1 thread", "2 threads", "1 / 2"], cells, n_key=1)
