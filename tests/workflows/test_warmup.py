"""After `warmup` the usual fits compile nothing, and the Dockerfile of the documentation does what it says."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import widemargin
from widemargin.cli.commands.warmup import _NAMES
from widemargin.workflows.warmup import GROUPS

ROOT = Path(__file__).parents[2]

# Other data than those of the warmup: more rows, more columns, other classes, other parameters.
USUAL_FITS = """
import json, sys, warnings
import numpy as np
from numba.core.event import install_recorder
from scipy.sparse import csr_matrix
from sklearn.datasets import make_classification
import widemargin as wm

warnings.simplefilter("ignore")
X, y = make_classification(500, 20, random_state=0)
three = np.digitize(X[:, 0], [-0.5, 0.5])
queries = np.repeat(np.arange(50), 10)
FITS = {
    "LinearSVC": lambda X: wm.LinearSVC().fit(X, y).predict(X),
    "LinearSVC, hinge": lambda X: wm.LinearSVC(loss="hinge", C=10.0).fit(X, three).score(X, three),
    "LinearSVC, free intercept": lambda X: wm.LinearSVC(penalize_intercept=False).fit(X, y),
    "LinearSVC, dcd": lambda X: wm.LinearSVC(solver="dcd").fit(X, y),
    "LinearSVC, weights": lambda X: wm.LinearSVC(class_weight="balanced").fit(X, y, sample_weight=np.full(500, 2.0)),
    "LinearSVR": lambda X: wm.LinearSVR().fit(X, X[:, [0]].sum(axis=1).A1 if hasattr(X, "tocsr") else X[:, 0]),
    "LinearSVCCV": lambda X: wm.LinearSVCCV(cv=3).fit(X, y),
    "LinearSVRCV": lambda X: wm.LinearSVRCV(cv=3).fit(X, three.astype(float)),
    "SVC": lambda X: wm.SVC().fit(X, y).predict(X),
    "SVC, zeros and ones": lambda X: wm.SVC().fit((X > 0.5).astype(X.dtype), y).predict((X > 0.5).astype(X.dtype)),
    "SVC, three classes": lambda X: wm.SVC(C=100.0).fit(X, three).decision_function(X),
    "SVC, max_iter": lambda X: wm.SVC(max_iter=10**6).fit(X, y),
    "SVC, linear": lambda X: wm.SVC(kernel="linear").fit(X, y).predict(X),
    "SVC, poly": lambda X: wm.SVC(kernel="poly").fit(X, y).predict(X),
    "SVC, sigmoid": lambda X: wm.SVC(kernel="sigmoid").fit(X, y).predict(X),
    "SVC, probability": lambda X: wm.SVC(probability="libsvm", random_state=1).fit(X, y).predict_proba(X),
    "NuSVC": lambda X: wm.NuSVC(nu=0.3).fit(X, y).predict(X),
    "SVR": lambda X: wm.SVR().fit(X, three.astype(float)).predict(X),
    "SVR, max_iter": lambda X: wm.SVR(max_iter=10**6).fit(X, three.astype(float)),
    "NuSVR": lambda X: wm.NuSVR().fit(X, three.astype(float)).predict(X),
    "LinearOneClassSVM": lambda X: wm.LinearOneClassSVM(nu=0.2).fit(X).predict(X),
    "LinearOneClassSVM, planes": lambda X: wm.LinearOneClassSVM(nu=0.2, solver="ocas").fit(X),
    "OneClassSVM": lambda X: wm.OneClassSVM(nu=0.2).fit(X).predict(X),
    "RankSVM": lambda X: wm.RankSVM().fit(X, y, qid=queries).predict(X),
    "OrdinalSVC": lambda X: wm.OrdinalSVC().fit(X, three).predict(X),
    "ROCAreaSVC": lambda X: wm.ROCAreaSVC().fit(X, y).decision_function(X),
    "MeasureSVC": lambda X: wm.MeasureSVC(measure="f1").fit(X, y).predict(X),
}
LARGE = {  # some functions are for many rows only, or for many columns
    "LinearSVC": lambda X, y: wm.LinearSVC().fit(X, y).predict(X),
    "LinearSVC, C = 100": lambda X, y: wm.LinearSVC(C=100.0, loss="hinge").fit(X, y),
    "LinearSVR": lambda X, y: wm.LinearSVR().fit(X, y.astype(float)),
    "SVC": lambda X, y: wm.SVC().fit(X, y).predict(X),
    "SVC, small cache": lambda X, y: wm.SVC(cache_size=2.0).fit(X, y),
    "SVR": lambda X, y: wm.SVR().fit(X[:2500], y[:2500].astype(float)).predict(X),
    "LinearOneClassSVM": lambda X, y: wm.LinearOneClassSVM(nu=0.1).fit(X).predict(X),
    "OneClassSVM": lambda X, y: wm.OneClassSVM(nu=0.1).fit(X).predict(X),
    "RankSVM": lambda X, y: wm.RankSVM().fit(X, y, qid=np.arange(len(y)) // 100),
    "ROCAreaSVC": lambda X, y: wm.ROCAreaSVC().fit(X, y),
}
compiled = {}


def count(name, fit, *arguments):
    with install_recorder("numba:compile") as recorder:
        fit(*arguments)
    names = [event.data["dispatcher"].py_func.__qualname__ for _, event in recorder.buffer if event.is_start]
    if names:
        compiled[name] = names


for dtype in (np.float64, np.float32):
    for make in (np.ascontiguousarray, csr_matrix):
        for name, fit in FITS.items():
            count(f"{name}, {make.__name__} {dtype.__name__}", fit, make(X.astype(dtype)))
rng = np.random.default_rng(0)
X = rng.standard_normal((4000, 40))
y = np.where(X[:, 0] + rng.standard_normal(4000) > 0.0, 1, -1)
places = rng.integers(0, 5000, 150_000), rng.integers(0, 30_000, 150_000)
texts = csr_matrix((rng.random(150_000), places), (5000, 30_000))
topics = np.where(np.ravel(texts[:, :3000].sum(axis=1)) > 1.5, 1, -1)
for name, fit in LARGE.items():
    count(f"{name}, many rows", fit, X, y)
    count(f"{name}, texts", fit, texts, topics)
print(json.dumps(compiled))
"""


def test_after_warmup_the_usual_fits_compile_nothing():
    widemargin.warmup()
    done = subprocess.run([sys.executable, "-c", USUAL_FITS], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {}


def test_every_estimator_can_be_warmed_up_by_its_name():
    estimators = {name for name in widemargin.__all__ if hasattr(getattr(widemargin, name), "get_params")}
    assert {*GROUPS} - {"files"} == estimators
    assert list(GROUPS) == list(_NAMES), "the command line has the names without importing the library"


def test_what_was_compiled_is_told_as_text_and_as_json(call):
    (status, text, _), (_, facts, _) = (call("warmup", "--only", "files", *more) for more in ([], ["--json"]))
    assert status == 0
    assert re.fullmatch(r"compiled \d+ functions in [0-9.]+ s, kept in .+\n", text)
    facts = json.loads(facts)
    assert facts["compiled"] == 0
    assert Path(facts["folder"]).is_dir()


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "file" / "folder")}
    done = subprocess.run(
        [sys.executable, "-m", "widemargin", "warmup"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"widemargin: error: compiled code cannot be kept .*NUMBA_CACHE_DIR.*\n", done.stderr)


def test_an_estimator_that_does_not_exist_is_refused_by_name():
    with pytest.raises(ValueError, match=r"estimators must be among LinearSVC, .* got 'SVM'"):
        widemargin.warmup(["SVM"])


def dockerfile():
    """Return the instructions of the Dockerfile in the documentation, as (word, rest) pairs."""
    page = (ROOT / "docs" / "howto" / "first-seconds.md").read_text()
    (text,) = re.findall(r"```dockerfile\n(.*?)```", page, re.DOTALL)
    return [tuple(line.split(" ", 1)) for line in text.splitlines()]


def test_the_commands_of_the_dockerfile_compile_into_its_folder_which_may_be_read_only_later(tmp_path):
    environment, ran = dict(os.environ), []
    for word, rest in dockerfile():
        if word == "ENV":
            name, _, folder = rest.partition("=")
            environment[name] = str(tmp_path / Path(folder).name)
        elif word == "RUN" and not rest.startswith("pip "):
            words = shlex.split(rest)
            assert words[0] == "widemargin"
            words = [sys.executable, "-m", *words, "--only", "files"]  # all would take minutes
            subprocess.run(words, env=environment, check=True, timeout=600)
            ran.append(rest)
    assert ran == ["widemargin warmup --quiet"]
    folder = Path(environment["NUMBA_CACHE_DIR"])
    assert [*folder.rglob("*.nbc")]
    script = (
        "import io\nfrom numba.core.event import install_recorder\nfrom widemargin import read_svmlight\n"
        "with install_recorder('numba:compile') as recorder:\n"
        "    read_svmlight(io.BytesIO(b'1 1:2\\n-1 2:3\\n'))\n"
        "names = [event.data['dispatcher'].py_func.__qualname__ for _, event in recorder.buffer]\n"
        "assert not names, names"
    )
    for path in [folder, *folder.iterdir()]:
        path.chmod(0o555)
    subprocess.run([sys.executable, "-W", "error", "-c", script], env=environment, check=True, timeout=120)
    for path in [folder, *folder.iterdir()]:
        path.chmod(0o755)
