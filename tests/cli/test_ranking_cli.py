"""The command line of ranking, ordinal regression, ROC area and measures, and of intercepts without penalty."""

import json
import re

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score, precision_score, recall_score, roc_auc_score
from sklearn.preprocessing import scale

from widemargin import LinearSVC, MeasureSVC, OrdinalSVC, RankSVM, ROCAreaSVC, load_model, read_svmlight, write_svmlight
from widemargin.evaluation.retrieval import count_pairs, ndcg, prbep, precision_at

TASKS = {"rank": RankSVM, "ordinal": OrdinalSVC, "rocarea": ROCAreaSVC, "measure": MeasureSVC}


@pytest.fixture
def ranked(tmp_path, rng):
    """A file of 12 queries with 8 rows each, 4 features, relevance 0 to 3."""
    X, query = rng.standard_normal((96, 4)), np.repeat(np.arange(12), 8)
    noisy = X @ [1.0, -2.0, 0.5, 0.0] + 0.7 * rng.standard_normal(96) + rng.standard_normal(12)[query]
    write_svmlight(tmp_path / "ranked", X, np.digitize(noisy, [-1.5, 0.0, 1.5]), qid=query)
    return tmp_path / "ranked"


@pytest.fixture
def data(two, three, ranked):
    """The file that suits a task."""
    return {"rank": ranked, "ordinal": three, "rocarea": two, "measure": two}


def one_line(text):
    """Return the only line of a text, but for the note of a first compilation, which any test may be the one to see."""
    (line,) = (line for line in text.splitlines() if not line.startswith("compiling ("))
    return line


# Training


@pytest.mark.parametrize("task", TASKS)
def test_train_writes_the_model_that_the_estimator_fits(task, call, data, tmp_path):
    words = ["-c", "3", "-e", "1e-5", "--solver", "svmperf", "--max-iter", "none"]
    status, out, _ = call("train", "--task", task, *words, data[task], "model")
    model, (X, y, qid) = load_model(tmp_path / "model"), read_svmlight(data[task])
    facts = dict(line.split(None, 1) for line in out.splitlines())
    assert (status, type(model), facts["solver"], facts["status"]) == (0, TASKS[task], "svmperf", "converged")
    assert (model.C, model.tol, model.solver, model.max_iter, model.gap_ <= 1e-5) == (3.0, 1e-5, "svmperf", None, True)
    again = type(model)(**model.get_params())
    again = again.fit(X, y, qid=qid) if task == "rank" else again.fit(X, y)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert int(facts["planes"]) == model.n_iter_
    assert facts.get("queries") == ("12" if task == "rank" else None)


@pytest.mark.parametrize("task", TASKS)
def test_a_kernel_on_a_basis_is_trained_saved_and_predicts(task, call, data, tmp_path):
    words = ["--kernel", "poly", "-d", "2", "-g", "0.5", "-r", "1", "--basis", "6", "--basis-choice", "uniform"]
    status, out, _ = call("train", "--task", task, "-c", "3", *words, data[task], "model")
    model, (X, y, qid) = load_model(tmp_path / "model"), read_svmlight(data[task])
    facts = dict(line.split(None, 1) for line in out.splitlines())
    assert (status, facts["kernel"], int(facts["basis"])) == (0, "poly", model.basis_.shape[0])
    assert (model.degree, model.gamma, model.coef0, model.basis, model.basis_choice) == (2, 0.5, 1.0, 6, "uniform")
    again = type(model)(**model.get_params())
    again = again.fit(X, y, qid=qid) if task == "rank" else again.fit(X, y)
    np.testing.assert_array_equal(model.basis_coef_, again.basis_coef_)
    status, _, _ = call("predict", data[task], "model", "scores")
    predicted = np.loadtxt(tmp_path / "scores")
    np.testing.assert_array_equal(predicted, model.predict(X))
    assert status == 0


def test_options_reach_the_estimator(call, two, ranked, tmp_path):
    call("train", "-q", "--task", "measure", "--measure", "recall@7", "-B", "2", two, "measure")
    assert load_model(tmp_path / "measure").get_params()["measure"] == "recall@7"
    assert load_model(tmp_path / "measure").intercept_scaling == 2.0
    call("train", "-q", "--task", "measure", "-B", "-1", two, "measure")
    assert load_model(tmp_path / "measure").intercept_ == 0.0
    call("train", "-q", "--task", "rank", "--solver", "svmperf", "--stopping", "violation", "-e", "0.01", ranked, "r")
    assert load_model(tmp_path / "r").stopping == "violation"


def test_json_of_train_has_what_the_task_adds(call, three, ranked):
    facts = json.loads(call("train", "-q", "--json", "--task", "ordinal", three)[1])
    assert (facts["classes"], len(facts["thresholds"]), facts["planes"] > 0) == ([0, 1, 2], 2, True)
    facts = json.loads(call("train", "-q", "--json", "--task", "rank", ranked)[1])
    assert (facts["rows"], facts["queries"], "sweeps" in facts) == (96, 12, False)


def test_an_intercept_without_penalty_is_fitted_by_planes(call, two, slope, tmp_path):
    assert call("train", "-q", "--no-penalize-intercept", two, "free") == (0, "", "")
    model, (X, y, _) = load_model(tmp_path / "free"), read_svmlight(two)
    assert (model.penalize_intercept, model.solver_) == (False, "newton (a small problem)")
    np.testing.assert_array_equal(model.coef_, LinearSVC(penalize_intercept=False, n_jobs=1).fit(X, y).coef_)
    words = ["--task", "regression", "--no-penalize-intercept", "--solver", "svmperf", "--max-iter", "none"]
    assert call("train", "-q", *words, slope, "free") == (0, "", "")
    assert load_model(tmp_path / "free").solver_ == "svmperf"


def test_a_file_without_queries_is_one_query_and_said_so(call, two, tmp_path):
    status, _, err = call("train", "--task", "rank", two, "model")
    assert status == 0
    assert f"widemargin: note: {two} has no qid: all its rows are of one query\n" in err
    assert "has no qid: all its rows are of one query" in call("predict", two, "model", "out")[2]


def test_queries_that_no_task_uses_are_ignored_with_a_word(call, ranked):
    status, _, err = call("train", "--task", "ordinal", ranked, "model")
    assert status == 0
    assert f"note: {ranked} has queries (qid), which only --task rank uses: they are ignored" in err
    assert call("train", "-q", "--task", "ordinal", ranked, "model")[2] == ""


# Predicting


def test_predict_of_a_ranking_writes_scores_and_prints_measures_of_order(call, ranked, tmp_path):
    call("train", "-q", "--task", "rank", ranked, "model")
    status, out, err = call("predict", ranked, "model", "out")
    X, y, qid = read_svmlight(ranked)
    model = load_model(tmp_path / "model")
    scores = model.predict(X)
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "out"), scores)
    swapped, tied, pairs = (int(counts.sum()) for counts in count_pairs(scores, y, qid))
    together = 1.0 - (swapped + tied / 2) / pairs
    gain, n_queries = ndcg(scores, y, qid)
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        f"Swapped pairs = {swapped} of {pairs} ({100 * swapped / pairs:.2f}%), {tied} tied",
        f"Concordance = {together:g} (all pairs together, tied ones count half)",
        f"Mean concordance = {model.score(X, y, qid=qid):g} (mean over 12 queries with pairs)",
        f"NDCG@10 = {gain:g} (mean over {n_queries} queries with relevant rows)",
    ]
    facts = json.loads(call("predict", "--json", ranked, "model", "out")[1])
    assert facts == {
        "rows": 96, "queries": 12, "pairs": pairs, "swapped_pairs": swapped, "tied_pairs": tied,
        "swapped_percent": pytest.approx(100 * swapped / pairs), "pair_concordance": pytest.approx(together),
        "concordance": pytest.approx(model.score(X, y, qid=qid)), "queries_with_pairs": 12, "ndcg@10": gain,
        "ndcg@10_queries": n_queries,
    }  # fmt: skip


def test_predict_of_ranks_prints_accuracy_and_how_far_they_are_off(call, three, tmp_path):
    call("train", "-q", "--task", "ordinal", "-c", "0.01", three, "model")
    _, out, _ = call("predict", three, "model", "out")
    _, y, _ = read_svmlight(three)
    error = np.abs(np.loadtxt(tmp_path / "out") - y)
    correct = np.sum(error == 0)
    assert out.splitlines() == [
        f"Accuracy = {100 * correct / 60:g}% ({correct}/60)",
        f"Mean absolute error of ranks = {error.mean():g}",
    ]


def test_ranks_are_counted_in_classes_not_in_labels(call, three, tmp_path):
    X, y, _ = read_svmlight(three)
    write_svmlight(tmp_path / "far", X, np.array([0, 10, 1000])[y.astype(int)])
    call("train", "-q", "--task", "ordinal", three, "near.model")
    call("train", "-q", "--task", "ordinal", "far", "far.model")
    near = json.loads(call("predict", "--json", three, "near.model", "out")[1])
    assert json.loads(call("predict", "--json", "far", "far.model", "out")[1]) == near


def test_predict_of_a_roc_area_prints_it(call, two, tmp_path):
    call("train", "-q", "--task", "rocarea", two, "model")
    _, out, _ = call("predict", two, "model", "out")
    X, y, _ = read_svmlight(two)
    model = load_model(tmp_path / "model")
    correct = np.sum(model.predict(X) == y)
    assert out.splitlines() == [
        f"ROC area = {roc_auc_score(y, model.decision_function(X)):g}",
        f"Accuracy = {100 * correct / 60:g}% ({correct}/60)",
    ]


@pytest.mark.parametrize("measure", ["f1", "prbep", "precision@9", "recall@9", "error", "average_precision"])
def test_predict_of_a_measure_prints_it_first_and_then_the_others(measure, call, two, tmp_path):
    call("train", "-q", "--task", "measure", "--measure", measure, "-c", "30", two, "model")
    lines = call("predict", two, "model", "out")[1].splitlines()
    X, y, _ = read_svmlight(two)
    model = load_model(tmp_path / "model")
    scores, labels = model.decision_function(X), model.predict(X)
    expected = {
        "F1": f1_score(y, labels), "PRBEP": prbep(scores, y > 0), "Precision": precision_score(y, labels),
        "Recall": recall_score(y, labels), "ROC area": roc_auc_score(y, scores), "error": np.mean(labels != y),
        "Average precision": average_precision_score(y, scores),
        "precision@9": precision_at(scores, y > 0, 9), "recall@9": 9 * precision_at(scores, y > 0, 9) / np.sum(y > 0),
    }  # fmt: skip
    own = {"f1": "F1", "prbep": "PRBEP", "average_precision": "Average precision"}.get(measure, measure)
    assert lines[0] == f"{own} = {expected[own]:g} (the measure of the model)"
    names = "F1", "PRBEP", "Precision", "Recall", "ROC area", "Average precision"
    others = [name for name in names if name != own]
    assert lines[1:-1] == [f"{name} = {expected[name]:g}" for name in others]
    facts = json.loads(call("predict", "--json", two, "model", "out")[1])
    assert (facts["measure"], facts["value"]) == (measure, pytest.approx(expected[own]))


def test_measures_that_are_undefined_are_null(call, two, ranked, tmp_path):
    call("train", "-q", "--task", "measure", two, "measure")
    call("train", "-q", "--task", "rank", ranked, "rank")
    (tmp_path / "unknown").write_text("0 qid:1 1:1\n0 qid:1 2:1\n")
    facts = json.loads(call("predict", "--json", "-q", "unknown", "measure", "out")[1], parse_constant=pytest.fail)
    assert (facts["recall"], facts["prbep"], facts["roc_area"]) == (None, None, None)
    facts = json.loads(call("predict", "--json", "-q", "unknown", "rank", "out")[1], parse_constant=pytest.fail)
    assert (facts["pairs"], facts["concordance"], facts["ndcg@10"]) == (0, None, None)


def test_scores_of_ranks_have_a_column_for_each_class(call, three, tmp_path):
    call("train", "-q", "--task", "ordinal", three, "model")
    assert call("predict", "-q", "--scores", three, "model", "out")[0] == 0
    heading, *rows = [line.split() for line in (tmp_path / "out").read_text().splitlines()]
    assert heading == ["label", "0", "1", "2"]
    assert all(row[0] == str(np.argmax(np.array(row[1:], dtype=float))) for row in rows)


# Cross-validation


@pytest.mark.parametrize(
    ("task", "first"),
    [
        ("rank", "Cross Validation Swapped pairs = "),
        ("ordinal", "Cross Validation Accuracy = "),
        ("rocarea", "Cross Validation ROC area = "),
        ("measure", "Cross Validation F1 = "),
    ],
)
def test_cross_validation_prints_the_same_measures_and_writes_nothing(task, first, call, data, tmp_path):
    before = sorted(tmp_path.iterdir())
    once, again = (call("train", "--task", task, "-v", "4", "-q", data[task]) for _ in range(2))
    assert once == again
    assert (once[0], once[2]) == (0, "")
    assert once[1].startswith(first)
    assert all(line.startswith("Cross Validation ") for line in once[1].splitlines())
    assert sorted(tmp_path.iterdir()) == before
    facts = json.loads(call("train", "--task", task, "-v", "4", "-q", "--json", data[task])[1])
    assert (facts["folds"], facts["rows"]) == (4, len(read_svmlight(data[task])[1]))


def test_folds_of_a_ranking_have_whole_queries(call, ranked, monkeypatch):
    seen, fit = [], RankSVM.fit
    monkeypatch.setattr(RankSVM, "fit", lambda self, X, y, qid=None: seen.append(qid) or fit(self, X, y, qid=qid))
    facts = json.loads(call("train", "--task", "rank", "-v", "3", "-q", "--json", ranked)[1])
    assert [sorted(np.unique(qid, return_counts=True)[1]) for qid in seen] == [[8] * 8] * 3
    _, y, qid = read_svmlight(ranked)
    assert facts["pairs"] == count_pairs(y, y, qid)[2].sum()
    assert facts["concordance"] > 0.7


def test_the_roc_area_by_cross_validation_is_the_mean_over_folds(call, two, monkeypatch):
    areas = []

    def keep(scores, positive):
        areas.append(roc_auc_score(positive, scores))
        return areas[-1]

    monkeypatch.setattr("widemargin.evaluation.retrieval.roc_area", keep)
    facts = json.loads(call("train", "--task", "rocarea", "-v", "3", "-q", "--json", two)[1])
    assert len(areas) == 3
    assert facts["roc_area"] == pytest.approx(np.mean(areas))


# SVM-light's text


@pytest.mark.parametrize("task", ["rank", "rocarea", "measure"])
def test_a_model_in_svm_lights_text_predicts_the_same(task, call, data, tmp_path):
    for form in ("widemargin", "svmlight"):
        assert call("train", "-q", "--task", task, "--format", form, data[task], f"{form}.model") == (0, "", "")
    assert (tmp_path / "svmlight.model").read_text().startswith("SVM-light Version V6.")
    first, second = (call("predict", data[task], f"{form}.model", form) for form in ("widemargin", "svmlight"))
    assert first == second
    assert (tmp_path / "widemargin").read_bytes() == (tmp_path / "svmlight").read_bytes()


def test_a_model_of_svm_rank_is_told_to_be_a_ranking(call, ranked, tmp_path):
    call("train", "-q", "--task", "rank", "--format", "svmlight", ranked, "model")
    text = (tmp_path / "model").read_text()
    (tmp_path / "theirs").write_text(re.sub(" ?sha256=[0-9a-f]+", "", text.replace("RankSVM#", "empty#")))
    assert call("predict", "--task", "rank", ranked, "theirs", "out") == call("predict", ranked, "model", "out")
    assert call("predict", "-q", ranked, "theirs", "labels")[0] == 0
    assert set((tmp_path / "labels").read_text().split()) == {"-1", "1"}
    call("train", "-q", "--task", "rank", ranked, "ours")
    status, _, err = call("predict", "--task", "rank", ranked, "ours", "out")
    assert (status, "ours: task='rank' is for SVM-light's text" in one_line(err)) == (1, True)


def test_several_classes_have_no_place_in_svm_lights_text(call, three, tmp_path):
    status, _, err = call("train", "--format", "svmlight", three, "model")
    assert status == 1
    assert "three: files of --format svmlight have one weight vector, and no place for 3 classes" in one_line(err)
    assert not (tmp_path / "model").exists()


def test_what_the_text_has_no_room_for_is_one_line_and_status_1(call, tmp_path, rng):
    X = rng.standard_normal((10_000, 2))
    write_svmlight(tmp_path / "long", X, np.where(X[:, 0] > 0, -2147483646, -2147483647))
    words = ["train", "-q", "--task", "measure", "--format", "svmlight", "--measure"]
    assert call(*words, "precision@1000", "long", "model") == (0, "", "")
    assert load_model(tmp_path / "model").classes_.tolist() == [-2147483647, -2147483646]
    status, out, err = call(*words, "precision@10000", "long", "other")
    assert (status, out) == (1, "")
    assert "widemargin: error: other: SVM-light's text has 49 characters for labels and measure" in one_line(err)
    assert not (tmp_path / "other").exists()


# What goes wrong


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--task", "measure", "--measure", "average_precision", "-B", "2"], "no intercept changes the average"),
        (["--task", "measure", "--measure", "beauty"], "measure must be 'error', 'f1', 'prbep', 'precision@K'"),
        (["--measure", "f1"], "--measure is for --task measure"),
        (["--measure", "f1", "-t", "2"], "--measure is for --task measure"),
        (["--task", "rank", "--measure", "f1"], "--measure is for --task measure"),
        (["--task", "rank", "--loss", "hinge"], "--loss is not for --task rank; leave it out"),
        (["--task", "rank", "-g", "1"], "--task rank with a kernel needs --basis, such as --basis 1000"),
        (["--task", "rank", "-t", "4", "--basis", "9"], "a precomputed kernel is not for --task rank"),
        (["--task", "rank", "-t", "0", "--basis", "9"], "--basis is for kernels other than linear"),
        (["--task", "rank", "-t", "2", "-d", "2", "--basis", "9"], "-d/--degree is for the kernel poly"),
        (["--task", "rank", "--basis", "9", "--scaling", "standard"], "--scaling is for linear machines"),
        (["--task", "rank", "--basis", "9", "--format", "svmlight"], "--format svmlight has no place for a kernel"),
        (["--task", "rank", "-m", "9"], "-m/--cache-size is not for --task rank; leave it out"),
        (["--task", "ordinal", "-B", "1"], "-B/--bias is not for --task ordinal"),
        (["--task", "measure", "-B", "0"], "--bias must not be 0"),
        (["--task", "rocarea", "-w1", "2"], "--class-weight is not for --task rocarea"),
        (["--task", "measure", "--no-penalize-intercept"], "--no-penalize-intercept is not for --task measure"),
        (["--task", "rank", "--solver", "dcd"], "--solver dcd is not for --task rank; use svmperf or ocas"),
        (
            ["--task", "rank", "--stopping", "kkt"],
            "--stopping kkt is for none of the solvers that would do here",
        ),
        (
            ["--task", "rank", "--stopping", "violation"],
            "--stopping violation is a rule of svmperf, the solver is ocas",
        ),
        (["--task", "rank", "--format", "liblinear"], "--format liblinear has no place for --task rank"),
        (["--task", "ordinal", "--format", "svmlight"], "--format svmlight has no place for --task ordinal"),
        (["--task", "order"], "invalid choice: 'order'"),
        (
            ["--no-penalize-intercept", "--solver", "dcd"],
            "--no-penalize-intercept needs --solver auto, newton, svmperf or ocas, got dcd",
        ),
        (["--no-penalize-intercept", "-B", "1"], "-B/--bias is for an intercept with a penalty"),
        (
            ["--no-penalize-intercept", "--stopping", "kkt"],
            "--stopping kkt is for none of the solvers that would do here",
        ),
        (["--no-penalize-intercept", "--multi-class", "crammer_singer"], "is not for --multi-class crammer_singer"),
        (["--no-penalize-intercept", "-t", "0"], "--no-penalize-intercept is for linear machines"),
        (["--format", "svmlight", "-t", "0"], "--format svmlight is for linear machines"),
        (["--stopping", "violation"], "--stopping violation is a rule of svmperf, the solver is auto"),
        (["--stopping", "kkt", "--solver", "ocas"], "--stopping kkt is a rule of auto, dcd, avsf or climb"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(words, says, call, two, tmp_path):
    status, out, err = call("train", *words, two)
    assert (status, out) == (2, "")
    assert one_line(err).startswith("widemargin: error: ")
    assert says in err
    assert sorted(tmp_path.iterdir()) == [two]


@pytest.mark.parametrize(
    ("task", "text", "says"),
    [
        ("rank", "1 qid:1 1:1\n1 qid:1 1:2\n", "bad: y has no two different values within any query"),
        ("rank", "1 1:1\n1 1:2\n", "bad: y has no two different values: there is no pair"),
        ("rank", "1 qid:1 1:1\n2 qid:2 1:2\n3 qid:1 1:3\n", "bad: Rows of query 1 are not together"),
        ("rank", "1 qid:1 1:1\n2 1:2\n", "bad:2:"),
        ("ordinal", "1 1:1\n1 1:2\n", "bad: y must hold at least 2 classes, got 1"),
        ("ordinal", "1 1:1\n1.5 1:2\n", "bad: the label of row 2 is 1.5, but classes are whole numbers"),
        ("rocarea", "1 1:1\n2 1:2\n3 1:2\n", "bad: Only binary classification is supported"),
        ("measure", "1 1:1\n1 1:2\n", "bad: y must hold at least 2 classes, got 1 class: [1]."),
    ],
)
def test_bad_data_are_one_line_and_status_1(task, text, says, call, tmp_path):
    (tmp_path / "bad").write_text(text)
    status, out, err = call("train", "-q", "--task", task, "bad")
    assert (status, out) == (1, "")
    assert one_line(err).startswith(f"widemargin: error: {says}")
    assert not (tmp_path / "bad.model").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--task", "rank", "-v", "13", "ranked"], "ranked: 13 folds need as many queries, got 12"),
        (["--task", "measure", "--measure", "precision@61", "two"], "k must be at most the number of rows, 60"),
    ],
)
def test_a_failed_run_is_one_line_and_status_1(words, says, call, two, ranked):
    status, _, err = call("train", "-q", *words)
    assert status == 1
    assert says in one_line(err)


def test_scores_of_a_ranking_need_no_option(call, ranked):
    call("train", "-q", "--task", "rank", ranked, "model")
    status, _, err = call("predict", "--scores", ranked, "model", "out")
    assert status == 2
    assert "--scores is for classification, model is a ranking model; leave it out" in one_line(err)


def test_help_defines_what_is_printed(call):
    _, train, _ = call("train", "--help")
    assert all(word in train for word in ("rocarea", "--measure", "--no-penalize-intercept", "svmlight", "violation"))
    _, predict, _ = call("predict", "--help")
    assert all(word in predict for word in ("NDCG@10 has the gain 2^label - 1", "it is swapped if", "PRBEP", "--task"))


# End to end


def test_a_ranking_of_real_data_is_good_on_queries_it_has_not_seen(call, read_bundled, tmp_path):
    X, y = read_bundled("diabetes")
    grade, qid = np.digitize(y, np.quantile(y, [0.25, 0.5, 0.75])), np.arange(len(y)) // 10
    seen = qid < 30
    write_svmlight(tmp_path / "train", X[seen], grade[seen], qid=qid[seen])
    write_svmlight(tmp_path / "test", X[~seen], grade[~seen], qid=qid[~seen])
    assert call("train", "-q", "--task", "rank", "-c", "20", "train", "model") == (0, "", "")
    facts = json.loads(call("predict", "-q", "--json", "test", "model", "out")[1])
    assert (facts["rows"], facts["queries"]) == (np.sum(~seen), len(np.unique(qid[~seen])))
    assert facts["concordance"] > 0.7  # 0.5 is chance
    assert facts["ndcg@10"] > 0.75


def test_rows_whose_order_is_linear_are_put_in_order(call, read_bundled, tmp_path):
    X, y = read_bundled("wine")
    order = np.lexsort((X[:, 0], y))[::6]  # of so few rows with 13 features, every order is linear
    write_svmlight(tmp_path / "wine", scale(X)[order][:12], np.arange(12), qid=np.ones(12, int))
    call("train", "-q", "--task", "rank", "-c", "1e4", "wine", "model")
    _, out, _ = call("predict", "wine", "model", "out")
    assert out.startswith("Swapped pairs = 0 of ")
