"""svm_learn and svm_classify print and write what SVM-light 6.20 did, as far as its tolerance allows."""

import re

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import rbf_kernel
from tests.cli.programs.originals import data_file, figures, recorded

from widemargin import (
    SVC,
    FormatError,
    RankSVM,
    TransductiveSVC,
    load_model,
    read_alphas,
    read_svmlight,
    save_model,
    write_alphas,
    write_svmlight,
)
from widemargin.workflows.originals import svm_light_unbiased

RUNS = {  # file stem: data set, options of svm_learn
    "linear": ("heart_scale", "-c 1"),
    "rbf": ("heart_scale", "-c 1 -t 2 -g 0.5 -x 1"),
    "rbf-loo": ("heart_scale", "-c 1 -t 2 -g 0.5 -x 1 -o 1 -k 100"),
    "poly": ("heart_scale", "-c 1 -t 1 -d 3 -s 0.1 -r 1"),
    "sigmoid": ("heart_scale", "-c 1 -t 3 -s 0.01 -r 0"),
    "remove-inconsistent": ("heart_scale", "-i 1 -c 1"),
    "unbiased-j2": ("heart_scale", "-b 0 -j 2 -c 1"),
    "regression-rbf": ("housing_scale", "-z r -w 0.5 -c 1 -t 2 -g 0.1"),
    "ranking": ("svmrank-example3.train", "-z p -c 0.01 -e 0.00001"),
    "ranking-rbf": ("svmrank-example3.train", "-z p -c 0.1 -t 2 -g 0.1 -e 0.00001"),
}
RELATIVE = {  # by how much figures may differ; SVM-light stops at a KKT violation of 0.001
    "Dual objective value": 2e-4, "L1 loss": 5e-3, "Norm of weight vector": 3e-3,
    "Norm of longest example vector": 1e-5, "Estimated VCdim of classifier": 1e-2,
}  # fmt: skip
ABSOLUTE = {  # in rows, or in percent of the rows
    "XiAlpha-estimate of the error": 1.0, "XiAlpha-estimate of the recall": 1.7,
    "XiAlpha-estimate of the precision": 1.7, "Leave-one-out estimate of the error": 0.5,
    "Leave-one-out estimate of the recall": 0.9, "Leave-one-out estimate of the precision": 0.9,
    "Actual leave-one-outs computed": 3.0,
}  # fmt: skip


@pytest.fixture
def learn(call, tmp_path):
    """Return a function that runs svm_learn as recorded: what it prints, and what the original printed."""

    def learn(stem):
        name, options = RUNS[stem]
        theirs, data = recorded(f"svm_learn-{stem}.out"), data_file(name, tmp_path)
        status, out, _ = call("as", "svm_learn", *options.split(), data, "model")
        assert status == 0
        return out, theirs

    return learn


@pytest.mark.parametrize("stem", RUNS)
def test_figures_agree_with_those_of_svm_light(stem, learn):
    ours, theirs = map(figures, learn(stem))
    compared = 0
    for name, relative in RELATIVE.items():
        if name in theirs:
            assert ours[name] == pytest.approx(theirs[name], rel=relative), name
            compared += 1
    for name, absolute in ABSOLUTE.items():
        if name in theirs:
            assert ours[name] == pytest.approx(theirs[name], abs=absolute), name
            compared += 1
    assert compared >= 3


@pytest.mark.parametrize("stem", RUNS)
def test_lines_have_svm_lights_words(stem, learn):
    """All lines but those on how it computed, and the running times that were taken out of the record."""

    def words(text):
        heads = [line.split(":")[0].split("(")[0].split("...")[0].strip() for line in text.splitlines()]
        ours_only = ("Runtime in cpu-seconds",)
        theirs_only = ("Number of kernel evaluations", "Checking optimality", "Number of inactive", "done.", "Now ",
                       " Moving", "Writing alpha", "", "Optimizing")  # fmt: skip
        return [head for head in heads if head not in ours_only and not head.startswith(theirs_only[:-2] or head == "")]

    ours, theirs = map(words, learn(stem))
    ours, theirs = [w for w in ours if w], [w for w in theirs if w]
    theirs = [w for w in theirs if not w.startswith("..") and "Moving" not in w]
    assert [w for w in ours if "Optimizing" not in w] == [w for w in theirs if "Optimizing" not in w and w]


@pytest.mark.parametrize("stem", sorted(RUNS.keys() - {"rbf-loo", "remove-inconsistent"}))
def test_support_vectors_agree_within_a_few(stem, learn):
    ours, theirs = learn(stem)
    (mine,), (its,) = (
        [line for line in text.splitlines() if line.startswith("Number of SV")] for text in (ours, theirs)
    )
    pick = [[int(word) for word in line.replace("(including", "").split() if word.isdigit()] for line in (mine, its)]
    np.testing.assert_allclose(pick[0], pick[1], atol=4)


@pytest.mark.parametrize("stem", ["linear", "rbf", "poly", "sigmoid", "regression-rbf"])
def test_the_originals_model_scores_as_svm_classify_did(stem, call, tmp_path):
    name, _ = RUNS[stem]
    (tmp_path / "theirs").write_text(recorded(f"svm_learn-{stem}.model"))
    wanted = np.array(recorded(f"svm_learn-{stem}.predictions").split(), float)
    status, _, _ = call("as", "svm_classify", data_file(name, tmp_path), "theirs", "out")
    assert status == 0
    np.testing.assert_allclose(np.loadtxt(tmp_path / "out"), wanted, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("stem", ["linear", "rbf"])
def test_alpha_files_are_read_written_and_started_from(stem, call, tmp_path):
    name, options = RUNS[stem]
    theirs = recorded(f"svm_learn-{stem}.alpha")
    (tmp_path / "theirs").write_text(theirs)
    data = data_file(name, tmp_path)
    alphas = read_alphas(tmp_path / "theirs", 270)
    options = [word for word in options.split() if word != "-x"][: 6 if stem == "rbf" else 2]
    call("as", "svm_learn", *options, "-a", "ours", data, "model")
    ours = read_alphas(tmp_path / "ours")
    assert np.abs(ours).max() == 1.0
    assert np.mean(np.abs(ours - alphas) > 0.05) < 0.05
    status, out, _ = call("as", "svm_learn", *options, "-y", "ours", "-e", "0.0011", data, "again")
    assert status == 0
    assert figures(out)["Dual objective value"] == pytest.approx(figures(recorded(f"svm_learn-{stem}.out"))[
        "Dual objective value"], rel=2e-4)  # fmt: skip


def test_alphas_are_written_to_the_bit_and_their_number_is_checked(tmp_path, rng):
    alphas = rng.standard_normal(50) * 10.0 ** rng.integers(-9, 9, 50)
    write_alphas(tmp_path / "alphas", alphas)
    np.testing.assert_array_equal(read_alphas(tmp_path / "alphas"), alphas)
    with pytest.raises(FormatError, match="a line for each of 49 rows, got 50"):
        read_alphas(tmp_path / "alphas", 49)
    (tmp_path / "alphas").write_text("1\nnan\n")
    with pytest.raises(FormatError, match="'nan' is not a finite number"):
        read_alphas(tmp_path / "alphas")


def test_the_model_is_svm_lights_and_scores_as_the_estimator(call, two, tmp_path):
    status, _, _ = call("as", "svm_learn", "-t", "2", "-g", "0.3", "-c", "5", two, "model")
    X, y, _ = read_svmlight(two)
    model = SVC(C=5.0, gamma=0.3, cache_size=40.0).fit(X, y)
    assert status == 0
    np.testing.assert_array_equal(load_model(tmp_path / "model").decision_function(X), model.decision_function(X))
    status, out, _ = call("as", "svm_classify", two, "model", "out")
    correct = int(np.sum((model.decision_function(X) > 0) == (y > 0)))
    assert f"({correct} correct, {60 - correct} incorrect, 60 total)" in out
    np.testing.assert_allclose(np.loadtxt(tmp_path / "out"), model.decision_function(X), rtol=1e-7, atol=1e-12)


def test_old_form_of_predictions_has_both_signs(call, two, tmp_path):
    call("as", "svm_learn", two, "model")
    call("as", "svm_classify", "-f", "0", two, "model", "out")
    call("as", "svm_classify", two, "model", "plain")
    for line, score in zip((tmp_path / "out").read_text().splitlines(), np.loadtxt(tmp_path / "plain"), strict=True):
        sign, other = ("+1", "-1") if score > 0 else ("-1", "+1")
        assert line == f"{abs(score):.8g}:{sign} {-abs(score):.8g}:{other}"


def test_the_default_C_is_the_inverse_square_of_the_mean_length(call, two):
    X, _, _ = read_svmlight(two)
    C = 1.0 / np.linalg.norm(X.toarray(), axis=1).mean() ** 2
    _, out, _ = call("as", "svm_learn", two, "model")
    assert f"Setting default regularization parameter C={C:.4f}" in out


def test_rows_that_are_inconsistent_are_taken_out(call, tmp_path):
    """f(x) is the first feature. The fourth row is at its bound, 10, the first two have 6.5, and (1, 0) has 3."""
    X = np.array([[-1.0, -1.0], [-1.0, 1.0], [-2.0, 0.0], [-1.5, 0.0], [1.0, 0.0], [2.0, 0.0]])
    write_svmlight(tmp_path / "line", X, [-1, -1, -1, 1, 1, 1])
    status, out, _ = call("as", "svm_learn", "-i", "1", "-c", "10", "line", "model")
    assert status == 0
    assert "(plus 1 inconsistent examples)" in out
    assert figures(out)["Dual objective value"] == pytest.approx(0.5, abs=1e-3)
    np.testing.assert_allclose(load_model(tmp_path / "model").decision_function(X[[0, 4]]), [-1.0, 1.0], atol=1e-3)
    assert float(re.search(r"maxdiff=([0-9.]+)", out)[1]) <= 1e-3  # conditions of the rows that are left


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ("-b 0 -y alphas", "starting from alphas needs an intercept: leave -y or -b 0 out"),
        ("-y nothing", "nothing"),
        ("-p 0.5", "-p cannot be had with classification: no row has the label 0, which marks unlabelled rows"),
        ("-l labels", "-l cannot be had with classification: no row has the label 0"),
        ("-z r -x 1", "-x 1 cannot be had with regression: leave-one-out errors are those of a classifier"),
        ("-z r -y alphas", "-y cannot be had with regression"),
        ("-z r -l labels", "-l cannot be had with regression: it is for classification"),
        ("-z p -i 1", "-i 1 cannot be had with ranking"),
        ("-z p -x 1", "-x 1 cannot be had with ranking"),
        ("-z p -y alphas", "-y cannot be had with ranking: dual variables of a ranking belong to pairs of rows"),
        ("-z p -a alphas", "-a cannot be had with ranking: dual variables of a ranking belong to pairs of rows"),
    ],
)
def test_what_cannot_be_had_ends_with_status_1(options, rule, call, two):
    status, _, err = call("as", "svm_learn", *options.split(), two, "model")
    assert status == 1
    assert rule in err


@pytest.fixture
def half_labelled(tmp_path):
    """Return the file of the recorded transduction: every second row of heart_scale has the label 0."""
    lines = data_file("heart_scale", tmp_path).read_text().splitlines(keepends=True)
    for k in range(1, len(lines), 2):
        lines[k] = "0 " + lines[k].split(" ", 1)[1]
    (tmp_path / "half").write_text("".join(lines))
    return tmp_path / "half"


def heads_of(text):
    """Return the words at the beginning of lines, without those on single problems, kernel values and time."""
    heads = [re.sub(r"[.:=(\d].*", "", line).strip() for line in text.splitlines()]
    others = ("positive", "Retraining", "Increasing", "Deactivating", "learner", "Number of kernel", "Runtime", "->")
    return [head for head in heads if head and not head.startswith(others)]


def test_transduction_prints_what_svm_light_did(call, half_labelled):
    """The same words and stages, and the figures of the same local minimum."""
    theirs = recorded("svm_learn-transduction.out")
    status, ours, _ = call("as", "svm_learn", "-c", "1", "-p", "0.44", "-l", "labels", half_labelled, "model")
    assert status == 0
    assert heads_of(ours) == heads_of(theirs)
    rises = [re.findall(r"influence of unlabeled examples to ([\d.]+)%", text) for text in (ours, theirs)]
    assert rises[0] == rises[1]
    assert "Classifying unlabeled data as 59 POS / 76 NEG." in ours
    mine, its = figures(ours), figures(theirs)
    for name, relative in RELATIVE.items():
        assert mine[name] == pytest.approx(its[name], rel=relative), name


def test_labels_of_unlabelled_rows_are_those_of_svm_light(call, half_labelled, tmp_path):
    theirs = recorded("svm_learn-transduction.labels").splitlines()
    call("as", "svm_learn", "-c", "1", "-p", "0.44", "-l", "labels", half_labelled, "model")
    ours = (tmp_path / "labels").read_text().splitlines()
    assert all(re.fullmatch(r"([\d.e-]+):([+-]1) -\1:[+-]1", line) for line in ours + theirs)
    signs, values = ([[line.replace(":", " ").split()[k] for line in text] for text in (ours, theirs)] for k in (1, 0))
    assert signs[0] == signs[1]
    np.testing.assert_allclose(np.array(values[0], float), np.array(values[1], float), atol=5e-3)


def test_transduction_is_the_estimators(call, half_labelled, tmp_path):
    call("as", "svm_learn", "-t", "2", "-g", "0.1", "-c", "1", "-j", "2", half_labelled, "model")
    X, y, _ = read_svmlight(half_labelled)
    options = {"C": 1.0, "gamma": 0.1, "unlabeled": 0, "class_weight": {1: 2.0}, "cache_size": 40.0}
    model, loaded = TransductiveSVC(**options).fit(X, y), load_model(tmp_path / "model")
    assert type(loaded) is TransductiveSVC
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ("-i 1", "-i 1 cannot be had with transduction: unlabelled rows have no label"),
        ("-x 1", "-x 1 cannot be had with transduction"),
        ("-y alphas", "-y cannot be had with transduction: it starts from the machine of the labelled rows"),
        ("-b 0", "-b 0 cannot be had with transduction: TransductiveSVC has an intercept"),
    ],
)
def test_options_that_transduction_has_not_are_refused(options, rule, call, tmp_path):
    (tmp_path / "data").write_text("1 1:1\n0 1:2\n-1 1:3\n")
    status, _, err = call("as", "svm_learn", *options.split(), "data", "model")
    assert status == 1
    assert rule in err
    assert not (tmp_path / "model").exists()


def test_other_commands_take_a_model_of_transduction(call, half_labelled, tmp_path):
    """Rows with more features than the model has get them, as those of other kernel machines."""
    X, y, _ = read_svmlight(half_labelled)
    known = np.flatnonzero(y)
    model = TransductiveSVC(unlabeled=0, gamma=0.1).fit(X[:, :12], y)
    save_model(model, tmp_path / "model")
    write_svmlight(tmp_path / "known", X[known], y[known])
    extended = model.decision_function(X[known][:, :12])
    assert call("predict", "--scores", "known", "model", "scores")[0] == 0
    assert call("report", "model", "known", "-o", "report.html")[0] == 0
    assert call("compress", "--vectors", "20", "model", "small")[0] == 0
    scores = np.loadtxt(tmp_path / "scores", skiprows=1)[:, 1]
    assert np.abs(scores - extended).max() > 1e-3  # the 13th feature counts, as a distance from vectors that lack it
    vectors = csr_array((model.support_vectors_.data, model.support_vectors_.indices, model.support_vectors_.indptr),
                        shape=(len(model.support_), 13))  # fmt: skip
    expected = rbf_kernel(X[known], vectors, gamma=0.1) @ model.dual_coef_.toarray()[0] + model.intercept_
    np.testing.assert_allclose(scores, expected, atol=1e-10)


@pytest.mark.parametrize("share", ["0", "1", "-0.5", "nan"])
def test_a_share_out_of_range_is_refused(share, call, two):
    status, _, err = call("as", "svm_learn", "-p", share, two, "model")
    assert status == 1
    assert f"-p {share}: must be" in err


@pytest.mark.parametrize("labels", ["0 0 0", "1 0 1"])
def test_unlabelled_rows_need_rows_of_both_classes(labels, call, tmp_path):
    (tmp_path / "data").write_text("".join(f"{label} 1:{k}\n" for k, label in enumerate(labels.split())))
    status, _, err = call("as", "svm_learn", "data", "model")
    assert status == 1
    assert "data: y must hold 2 classes besides unlabeled=0" in err


def margins_of(scores, y, qid):
    """Return the differences of scores of all pairs of rows of a query, that of the larger target first."""
    first, second = np.nonzero((qid[:, np.newaxis] == qid) & (y[:, np.newaxis] > y))
    return scores[first] - scores[second]


@pytest.mark.parametrize("kernel", ["-t 0", "-t 2 -g 0.5", "-t 1 -d 2 -s 0.5 -r 1", "-t 3 -s 0.01 -r 0"])
def test_a_ranking_with_any_kernel_is_written_read_and_scored(kernel, call, tmp_path, rng):
    X = rng.standard_normal((40, 3))
    y, qid = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.0, 1.0]), np.repeat(np.arange(5), 8)
    write_svmlight(tmp_path / "rows", X, y, qid=qid)
    options = ["-z", "p", "-c", "0.1", "-e", "0.0001", *kernel.split()]
    status, out, _ = call("as", "svm_learn", *options, "rows", "model")
    assert status == 0
    status, _, _ = call("as", "svm_classify", "rows", "model", "scores")
    assert status == 0
    scores, model = np.loadtxt(tmp_path / "scores"), load_model(tmp_path / "model")
    assert type(model) is RankSVM
    np.testing.assert_allclose(scores, model.predict(read_svmlight(tmp_path / "rows")[0]), rtol=1e-6, atol=1e-7)
    margins = margins_of(scores, y, qid)
    assert f"Constructing {len(margins)} rank constraints...done." in out
    assert figures(out)["L1 loss"] == pytest.approx(np.maximum(0.0, 1.0 - margins).sum(), rel=1e-3)


def test_a_ranking_with_a_kernel_is_the_exact_machine_over_pairs(call, tmp_path, rng):
    """The optimum over pairs by plain steps on its dual problem, in which each pair has a variable from 0 to C."""
    X = rng.standard_normal((24, 2))
    y, qid = rng.integers(0, 3, 24), np.repeat(np.arange(4), 6)
    write_svmlight(tmp_path / "rows", X, y, qid=qid)
    _, out, _ = call("as", "svm_learn", "-z", "p", "-c", "0.5", "-t", "2", "-g", "0.7", "-e", "1e-7", "rows", "model")
    K = rbf_kernel(read_svmlight(tmp_path / "rows")[0], gamma=0.7)
    first, second = np.nonzero((qid[:, np.newaxis] == qid) & (y[:, np.newaxis] > y))
    Q = K[np.ix_(first, first)] - K[np.ix_(first, second)] - K[np.ix_(second, first)] + K[np.ix_(second, second)]
    alpha, step = np.zeros(len(first)), 1.0 / np.linalg.norm(Q, 2)
    for _ in range(20_000):
        alpha = np.clip(alpha + step * (1.0 - Q @ alpha), 0.0, 0.5)
    assert figures(out)["Dual objective value"] == pytest.approx(alpha.sum() - 0.5 * alpha @ Q @ alpha, rel=1e-5)
    assert figures(out)["Norm of longest example vector"] == pytest.approx(np.sqrt(Q.diagonal().max()), abs=1e-5)


def test_scores_of_a_ranking_with_a_kernel_are_those_of_svm_light(call, tmp_path):
    name, options = RUNS["ranking-rbf"]
    wanted = np.array(recorded("svm_learn-ranking-rbf.predictions").split(), float)
    data = data_file(name, tmp_path)
    call("as", "svm_learn", *options.split(), data, "ours")
    (tmp_path / "theirs").write_text(recorded("svm_learn-ranking-rbf.model"))
    for model in ("ours", "theirs"):
        call("as", "svm_classify", data, model, "out")
        np.testing.assert_allclose(np.loadtxt(tmp_path / "out"), wanted, atol=2e-4 if model == "ours" else 1e-7)


@pytest.mark.parametrize(
    ("options", "what"), [("-z p -t 2", "ranking with a kernel"), ("-b 0 -t 2", "-b 0 with a kernel")]
)
def test_a_basis_of_too_many_rows_is_refused(options, what, call, tmp_path, monkeypatch):
    write_svmlight(tmp_path / "rows", np.eye(12), [1, -1] * 6)
    monkeypatch.setattr(svm_light_unbiased, "_MOST_ROWS_OF_BASIS", 10)
    status, _, err = call("as", "svm_learn", *options.split(), "rows", "model")
    assert status == 1
    assert f"{what} needs the kernel matrix of all rows, up to 10, and there are 12" in err


@pytest.mark.parametrize("task", ["c", "r"])
def test_a_kernel_machine_without_an_intercept_is_the_optimum_without_one(task, call, two, tmp_path):
    """Its dual problem has box constraints only, which plain steps solve."""
    options = ["-z", task, "-b", "0", "-t", "2", "-g", "0.3", "-c", "2", "-e", "1e-6", "-w", "0.2"]
    status, out, _ = call("as", "svm_learn", *options, "-a", "alphas", two, "model")
    assert status == 0
    X, y, _ = read_svmlight(two)
    K = rbf_kernel(X, gamma=0.3)
    beta, step = np.zeros(len(y)), 1.0 / np.linalg.norm(K, 2)
    for _ in range(20_000):
        moved = beta + step * (y - K @ beta)
        if task == "c":
            beta = y * np.clip(y * moved, 0.0, 2.0)
        else:
            beta = np.clip(np.sign(moved) * np.maximum(np.abs(moved) - 0.2 * step, 0.0), -2.0, 2.0)
    np.testing.assert_allclose(read_alphas(tmp_path / "alphas"), beta, atol=1e-3)
    call("as", "svm_classify", two, "model", "out")
    np.testing.assert_allclose(np.loadtxt(tmp_path / "out"), K @ beta, atol=1e-3)
    assert figures(out)["Norm of weight vector"] == pytest.approx(np.sqrt(beta @ K @ beta), rel=1e-4)
    if task == "c":
        dual = np.abs(beta).sum() - 0.5 * beta @ K @ beta
        assert figures(out)["Dual objective value"] == pytest.approx(dual, rel=1e-5)


def test_leave_one_out_errors_without_an_intercept_are_those_of_fits_without_each_row(call, two):
    _, out, _ = call("as", "svm_learn", "-b", "0", "-t", "2", "-g", "0.3", "-c", "2", "-x", "1", two, "model")
    X, y, _ = read_svmlight(two)
    K, errors = rbf_kernel(X, gamma=0.3), 0
    for t in range(len(y)):
        others = np.delete(np.arange(len(y)), t)
        Q, beta = K[np.ix_(others, others)], np.zeros(len(y) - 1)
        step = 1.0 / np.linalg.norm(Q, 2)
        for _ in range(2000):
            beta = y[others] * np.clip(y[others] * (beta + step * (y[others] - Q @ beta)), 0.0, 2.0)
        errors += y[t] * (K[t, others] @ beta) <= 0.0
    assert figures(out)["Leave-one-out estimate of the error"] == pytest.approx(100 * errors / 60, abs=1.7)
