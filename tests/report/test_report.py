"""Reports: what a page says is true, marks have their rows, nothing of a file becomes markup, mistakes are one line."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import average_precision_score, confusion_matrix, roc_auc_score
from sklearn.preprocessing import StandardScaler

from widemargin import (
    SVC,
    SVR,
    LinearSVC,
    LinearSVR,
    MeasureSVC,
    NuSVR,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    ROCAreaSVC,
    load_model,
    read_svmlight,
    save_model,
    write_svmlight,
)
from widemargin.report import palette, scales
from widemargin.report.figures import Picture
from widemargin.report.markup import number, percent, table
from widemargin.report.model_report import report_page
from widemargin.report.report_data import examine

ALWAYS = {"convergence"}
CURVES = {"confusion", "roc", "precision-recall", "margins"}
WEIGHTS = {"features", "weights"}
SUPPORT = {"support", "coefficients"}
ERRORS = {"truth", "residuals", "errors-along"}
HOSTILE = '<script>alert("1")</script>&<img src=x onerror=alert(2)>'


class Page(HTMLParser):
    """What a page holds: figures with their marks, tables and texts, ids, headings, tags."""

    def __init__(self, text):
        super().__init__()
        self.marks, self.rows, self.texts, self.ids, self.headings, self.tags = {}, {}, {}, [], [], []
        self._figure, self._inside, self._cell = None, [], None
        self.words = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "figure":
            self._figure = attributes["id"]
            self.marks[self._figure], self.rows[self._figure], self.texts[self._figure] = 0, [], ""
        if self._figure and "m" in attributes.get("class", "").split():
            drawn = re.findall("[ML]", attributes["d"]) if tag == "path" else [tag]
            self.marks[self._figure] += len(drawn)
        if self._figure and tag == "tr":
            self.rows[self._figure].append([])
        self._cell = tag if self._figure and tag in ("td", "th") else self._cell
        if self._cell == tag:
            self.rows[self._figure][-1].append("")
        self._inside.append(tag)

    def handle_endtag(self, tag):
        if tag == "figure":
            self._figure = None
        if tag in ("td", "th", "table"):
            self._cell = None

    def handle_data(self, data):
        if self._inside and self._inside[-1] not in ("script", "style"):
            self.words.append(data)
        if self._cell and self._figure:
            self.rows[self._figure][-1][-1] += data.rstrip("\n")
        elif self._figure:
            self.texts[self._figure] += data

    @property
    def text(self):
        """All words of the page."""
        return " ".join(" ".join(self.words).split())

    def data(self, figure):
        """Return the rows of a figure's table, without the heads."""
        return self.rows[figure][1:]


@pytest.fixture(scope="module")
def cancer():
    """Two classes, scaled: 569 rows, 30 features."""
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def iris():
    """Three classes: 150 rows, 4 features."""
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def diabetes():
    """A regression: 442 rows, 10 features."""
    X, y = load_diabetes(return_X_y=True)
    return 20.0 * X, y / 50.0


KINDS = {
    "linear, two classes": (LinearSVC(), "cancer", ALWAYS | CURVES | WEIGHTS | {"labels"}),
    "linear, three classes": (LinearSVC(), "iris", ALWAYS | CURVES | WEIGHTS | {"labels"}),
    "linear regression": (LinearSVR(max_iter=10_000), "diabetes", ALWAYS | ERRORS | WEIGHTS | {"targets"}),
    "kernel, two classes": (SVC(), "cancer", ALWAYS | CURVES | SUPPORT | {"labels"}),
    "kernel, three classes with probabilities": (
        SVC(probability="libsvm"), "iris", ALWAYS | CURVES | SUPPORT | {"labels", "calibration"},
    ),
    "kernel, linear": (SVC(kernel="linear"), "cancer", ALWAYS | CURVES | SUPPORT | WEIGHTS | {"labels"}),
    "kernel regression": (SVR(probability=True), "diabetes", ALWAYS | ERRORS | SUPPORT | {"targets"}),
    "nu regression": (NuSVR(), "diabetes", ALWAYS | ERRORS | SUPPORT | {"targets"}),
    "one class": (OneClassSVM(nu=0.2), "cancer", ALWAYS | SUPPORT | {"labels", "scores"}),
    "ranking": (RankSVM(), "iris", ALWAYS | WEIGHTS | {"labels", "scores"}),
    "ordinal": (OrdinalSVC(), "iris", ALWAYS | WEIGHTS | {"labels", "scores", "confusion"}),
    "ROC area": (ROCAreaSVC(), "cancer", ALWAYS | CURVES | WEIGHTS | {"labels"}),
    "measure": (MeasureSVC(), "cancer", ALWAYS | CURVES | WEIGHTS | {"labels"}),
}  # fmt: skip


@pytest.fixture(params=KINDS)
def kind(request):
    """A model of each kind, fitted to all rows but every fifth, and those: (model, X, y, figures)."""
    model, data, figures = KINDS[request.param]
    X, y = request.getfixturevalue(data)
    held = np.arange(len(y)) % 5 == 0
    return model.fit(X[~held], y[~held]), X[held], y[held], figures


# Every kind of model


def test_each_kind_of_model_has_its_figures_and_each_mark_its_row(kind):
    model, X, y, figures = kind
    page = Page(report_page(model, X, y))
    assert set(page.marks) == figures
    for figure, n_marks in page.marks.items():
        assert n_marks == len(page.data(figure)) > 0, figure
        assert {len(row) for row in page.rows[figure]} == {len(page.rows[figure][0])}, figure


def test_a_page_is_whole_and_in_order(kind):
    model, X, y, _ = kind
    text = report_page(model, csr_array(X), y, command="widemargin report m d")
    page = Page(text)
    assert text.startswith("<!doctype html>\n<html lang=en>")
    assert len(page.ids) == len(set(page.ids))
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
    for tag, attributes in page.tags:
        assert not {"src", "srcset", "xlink:href"} & attributes.keys(), tag
        assert attributes.get("href", "#")[:1] == "#" or attributes["href"] == "data:,"
        for name in attributes.get("aria-labelledby", "").split():
            assert name in page.ids
        assert attributes.get("href", "#main").lstrip("#") in [*page.ids, "data:,"]
    assert text.count("<svg ") == text.count("role=img") == text.count("tabindex=0 role=img") == len(page.marks)
    assert text.count("<details>") == len(page.marks)
    assert len(text) < 300_000


def test_only_the_script_of_the_page_may_run_and_nothing_may_be_loaded(iris):
    text = report_page(LinearSVC().fit(*iris), *iris)
    (policy,) = re.findall(r'http-equiv=Content-Security-Policy content="([^"]*)"', text)
    (script,) = re.findall(r"<script>(.*)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert set(rules) == {"default-src", "style-src", "script-src", "img-src", "base-uri", "form-action"}
    assert len(script) < 10_000
    assert "@import" not in text
    assert "url(" not in text


def test_a_page_is_the_same_each_time(iris):
    model = SVC(probability="libsvm", random_state=0).fit(*iris)
    assert report_page(model, *iris) == report_page(model, *iris)


# What it says


def test_confusion_matrix_counts_as_scikit_learn_does(iris):
    model = LinearSVC(C=0.001).fit(*iris)
    cells = Page(report_page(model, *iris)).data("confusion")
    counts = np.array([int(cell[2]) for cell in cells]).reshape(3, 3)
    np.testing.assert_array_equal(counts, confusion_matrix(iris[1], model.predict(iris[0])))
    assert 0 < np.trace(counts) < 150  # there are mistakes to count
    assert cells[1][3] == percent(counts[0, 1] / counts[0].sum())


def test_areas_of_the_curves_are_those_of_scikit_learn(cancer):
    X, y = cancer
    model = LinearSVC(C=1e-4).fit(X, y)
    page, scores = Page(report_page(model, X, y)), model.decision_function(X)
    assert f"ROC area {roc_auc_score(y, scores):.4f}" in page.texts["roc"]
    assert f"Average precision {average_precision_score(y, scores):.4f}" in page.texts["precision-recall"]
    assert page.data("roc")[0][:2] == ["0%", "0%"]
    assert page.data("roc")[-1][:2] == ["100%", "100%"]


def test_several_classes_have_a_curve_each_against_the_rest(iris):
    X, y = iris
    model = SVC().fit(X, y)
    page = Page(report_page(model, X, y))
    for k in range(3):
        area = roc_auc_score(y == k, model.decision_function(X)[:, k])
        assert f"{k} ({area:.3f})" in page.texts["roc"]
    assert {row[0] for row in page.data("roc")} == {"0", "1", "2"}


def test_of_many_classes_ten_have_curves_and_thirty_are_in_the_matrix(rng):
    y = np.arange(400) % 40
    X = np.eye(40)[y] + 0.3 * rng.standard_normal((400, 40))
    page = Page(report_page(LinearSVC().fit(X, y), X, y))
    assert len({row[0] for row in page.data("roc")}) == 10
    assert len(page.data("confusion")) == 900
    assert "The 30 most frequent of 40 classes." in page.texts["confusion"]


@pytest.mark.parametrize("estimator", [LinearSVC(), SVC(kernel="linear")])
def test_features_are_ranked_by_weight_times_deviation(cancer, estimator):
    X, y = cancer[0] * np.linspace(0.1, 3.0, 30), cancer[1]
    model = estimator.fit(X, y)
    moved = model.coef_[0] * X.std(axis=0)
    top = np.argsort(-np.abs(moved))[:20]
    rows = Page(report_page(model, csr_array(X), y)).data("features")
    assert [int(row[0]) for row in rows] == (top + 1).tolist()
    assert [row[1] for row in rows] == [number(value) for value in moved[top]]


def test_margins_are_scores_towards_the_own_class(cancer):
    X, y = cancer
    model = LinearSVC().fit(X, y)
    margin = np.where(y == 1, 1, -1) * model.decision_function(X)
    page = Page(report_page(model, X, y))
    assert f"{percent(np.mean(margin < 0))} of the rows are on the wrong side" in page.texts["margins"]
    assert sum(int(row[3]) for row in page.data("margins") if row[0] == "class 0") == np.sum(y == 0)
    below = sum(int(row[3]) for row in page.data("margins") if float(row[2]) <= 0)
    assert below == np.sum(margin < 0)


def test_margins_of_a_kernel_machine_are_its_worst_pair(iris):
    X, y = iris
    model = SVC(C=0.05, decision_function_shape="ovo").fit(X, y)
    pairs = model.decision_function(X)  # 0/1, 0/2, 1/2
    margin = np.select(
        [y == 0, y == 1], [pairs[:, :2].min(1), np.minimum(-pairs[:, 0], pairs[:, 2])], -pairs[:, 1:].max(1)
    )
    text = Page(report_page(model, X, y)).texts["margins"]
    assert f"{percent(np.mean(margin < 0))} of the rows are on the wrong side" in text
    assert model.decision_function_shape == "ovo"  # as it was


def test_calibration_counts_every_row_once(cancer):
    X, y = cancer
    model = SVC(probability="libsvm", random_state=0).fit(X, y)
    page, claimed = Page(report_page(model, X, y)), model.predict_proba(X)[:, 1]
    rows = page.data("calibration")
    assert sum(int(row[2]) for row in rows) == len(y)
    low = claimed < 0.1
    assert rows[0] == [percent(claimed[low].mean()), percent(y[low].mean()), str(low.sum())]
    assert f"Brier score {np.mean((claimed - y) ** 2):.4f}" in page.texts["calibration"]


def test_errors_of_a_regression_are_drawn_with_the_tube(diabetes):
    X, y = diabetes
    model = SVR(epsilon=0.5).fit(X, y)
    page, residual = Page(report_page(model, X, y)), y - model.predict(X)
    assert f"mean squared error {number(np.mean(residual**2))}" in page.text
    assert f"within the tube {percent(np.mean(np.abs(residual) <= 0.5))}" in page.text
    assert sum(int(row[2]) for row in page.data("residuals")) == len(y)
    assert [float(row[1]) for row in page.data("truth")] == pytest.approx(y, rel=1e-3)


def test_the_tube_of_a_nu_regression_is_the_one_that_was_found(diabetes):
    model = NuSVR(nu=0.3).fit(*diabetes)
    assert f"errors up to {model.facts_[0]['epsilon']:.4g}" in Page(report_page(model, *diabetes)).text


def test_many_rows_are_thinned_evenly_and_the_page_stays_small(rng):
    X = rng.standard_normal((30_000, 5))
    y = X @ [1.0, -2.0, 0.5, 0.0, 3.0] + rng.standard_normal(30_000)
    text = report_page(LinearSVR().fit(X, y), X, y)
    rows = Page(text).data("truth")
    assert len(rows) == 2000
    assert rows[0][0] == "1"
    assert rows[-1][0] == "30,000"
    assert len(text) < 300_000


def test_certificate_is_that_of_the_model_also_from_a_file(cancer, tmp_path):
    model = LinearSVC(C=2.0, tol=1e-5).fit(*cancer)
    save_model(model, tmp_path / "model")
    page = Page(report_page(load_model(tmp_path / "model"), *cancer))
    assert f"objective {model.objective_:.10g}" in page.text
    assert f"proved lower bound {model.history_['dual'][-1]:.10g}" in page.text
    assert f"at most a relative {model.gap_:.1e} above its minimum" in page.text
    assert "asked: gap 1.0e-05" in page.text
    assert len(page.data("convergence")) == len(model.history_)
    assert page.data("convergence")[-1][2] == number(float(model.history_["gap"][-1]))


def test_support_vectors_are_counted_and_the_heaviest_found_again(iris):
    X, y = iris
    model = SVC(C=5.0).fit(X, y)
    page = Page(report_page(model, X, y))
    assert {row[0]: int(row[1]) for row in page.data("support")} == dict(zip("012", model.n_support_, strict=True))
    heaviest = model.support_[np.argmax(np.abs(model.dual_coef_).max(axis=0))] + 1
    assert f"its label {heaviest}" in page.text  # the first row below the heads


def test_ranking_has_the_measures_of_predict(iris):
    X, y = iris
    model = RankSVM().fit(X, y)
    assert f"Mean concordance {model.score(X, y):g}" in Page(report_page(model, X, y)).text


def test_labels_that_the_model_does_not_know_are_no_part_of_curves(cancer):
    X, y = cancer
    model = LinearSVC().fit(X, y)
    strange = np.where(np.arange(len(y)) < 50, 7, y)
    page = Page(report_page(model, X, strange))
    known = slice(50, None)
    assert f"ROC area {roc_auc_score(y[known], model.decision_function(X[known])):.4f}" in page.texts["roc"]
    assert sum(int(row[2]) for row in page.data("confusion") if row[0] == "7") == 50


def test_many_labels_that_the_model_does_not_know_are_one_line(cancer):
    X, y = cancer
    strange = np.where(np.arange(len(y)) < 50, np.arange(len(y)) + 0.5, y)
    cells = Page(report_page(LinearSVC().fit(X, y), X, strange)).data("confusion")
    assert len(cells) == 9
    assert sum(int(cell[2]) for cell in cells if cell[0] == "others") == 50


def test_rows_without_labels_are_predicted_and_not_measured(cancer):
    X, y = cancer
    model = LinearSVC().fit(X, y)
    page = Page(report_page(model, X, np.full(len(y), 9)))
    assert "nothing can be measured" in page.texts["predicted"]
    assert {row[0]: int(row[1]) for row in page.data("predicted")} == dict(
        zip("01", np.bincount(model.predict(X)), strict=True)
    )
    assert "no row has a known label" in page.text


def facts_of(page):
    """Return names and values of all facts of a page, without remarks."""
    return dict(re.findall(r"<dt>([^<]*)<dd>([^<]*)", page))


def test_labelled_rows_of_a_one_class_model_are_compared_with_its_predictions(cancer):
    X, y = cancer
    model, labels = OneClassSVM(nu=0.2).fit(X), np.where(y == 0, -1, 1)
    predicted, scores = model.predict(X), model.decision_function(X)
    facts = facts_of(report_page(model, X, labels))
    assert facts["As labelled"] == percent(np.mean(predicted == labels))
    assert facts["outliers found"] == percent(np.mean(predicted[labels == -1] == -1))
    assert facts["false alarms"] == percent(np.mean(predicted[labels == 1] == -1))
    assert facts["ROC area"] == number(roc_auc_score(labels, scores))
    for label, named in ((1, "false alarms"), (-1, "outliers found")):  # a file of one label
        only = facts_of(report_page(model, X[labels == label], labels[labels == label]))
        assert only[named] == facts[named]
        assert {"ROC area", "outliers found", "false alarms"} & set(only) == {named}
    others = report_page(model, X, y)
    assert "The labels are not 1 and −1" in others
    assert not {"As labelled", "false alarms"} & set(facts_of(others))


@pytest.mark.parametrize(
    "estimator", [SVC(probability="libsvm", random_state=0), LinearSVC()], ids=["SVC", "LinearSVC"]
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_of_one_class_have_a_report(iris, estimator, n_classes):
    X, y = iris
    model = clone(estimator).fit(X[y < n_classes], y[y < n_classes])
    for label in range(n_classes):
        rows = y == label
        page = report_page(model, X[rows], y[rows])
        assert facts_of(page)["Accuracy"] == percent(np.mean(model.predict(X[rows]) == label))


def test_one_row_is_enough(kind):
    model, X, y, _ = kind
    page = Page(report_page(model, X[:1], y[:1]))
    assert all(n_marks == len(page.data(figure)) > 0 for figure, n_marks in page.marks.items())


def test_classes_may_be_words_and_names_of_features_are_used(cancer):
    pandas = pytest.importorskip("pandas")
    X, y = pandas.DataFrame(cancer[0], columns=load_breast_cancer().feature_names), np.array(["bad", "good"])[cancer[1]]
    page = Page(report_page(LinearSVC().fit(X, y), X, y))
    assert {row[0] for row in page.data("confusion")} == {"bad", "good"}
    assert {row[0] for row in page.data("features")} <= set(X.columns)


# Nothing of a file becomes markup


def test_hostile_names_stay_text(iris):
    pandas = pytest.importorskip("pandas")
    X, y = iris
    labels = np.array([f"{HOSTILE}{k}" for k in range(3)])[y]
    model = LinearSVC().fit(pandas.DataFrame(X, columns=[f"{HOSTILE}{j}" for j in range(4)]), labels)
    names = {"title": HOSTILE, "model_name": HOSTILE, "data_name": HOSTILE, "command": HOSTILE}
    text = report_page(model, X, labels, **names)
    page = Page(text)
    assert text.count("<script") == 1
    assert "<img" not in text
    assert page.text.count(HOSTILE) > 20
    assert not any("onerror" in attributes for _, attributes in page.tags)


def test_file_names_that_are_markup_or_no_characters_make_a_page(call, two, tmp_path):
    hostile = '<img src=x onerror="alert(1)">.model'
    two.rename(tmp_path / "<b>\udcff")
    assert call("train", "-q", "<b>\udcff", hostile)[0] == 0
    status, _, _ = call("report", "-o", "page.html", hostile, "<b>\udcff")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert status == 0
    assert "<img" not in text
    assert "<b>" not in text
    assert "&lt;b&gt;\\udcff" in text


# Models of other programs


@pytest.mark.parametrize("letters", ["--format liblinear", "--format svmlight", "-s 0 -b 1 --format libsvm"])
def test_what_a_text_does_not_record_is_said(call, two, tmp_path, letters):
    call("train", "-q", *letters.split(), two, "m")
    status, _, err = call("report", "-q", "m", two)
    page = Page((tmp_path / "m.html").read_text("utf-8"))
    assert (status, err) == (0, "")
    assert "Not recorded in this file" in page.text
    assert "convergence" not in page.marks
    assert page.marks.keys() >= CURVES


@pytest.mark.parametrize("kernel", ["precomputed", lambda A, B: A @ B.T])
def test_a_kernel_without_support_vectors_has_a_report(rng, kernel):
    X = rng.standard_normal((40, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    rows = X @ X.T if kernel == "precomputed" else X
    page = Page(report_page(SVC(kernel=kernel).fit(rows, y), rows, y))
    assert "nearest row" not in page.text
    assert page.marks.keys() >= SUPPORT


# The command


def test_report_goes_beside_the_work_and_says_so(call, two, tmp_path):
    call("train", "-q", two, "two.model")
    status, out, err = call("report", "two.model", two)
    text = (tmp_path / "two.model.html").read_text("utf-8")
    assert (status, err) == (0, "")
    assert re.fullmatch(r"report  two\.model\.html\nsize    \d+ KB\n", out)
    assert "<h1>two.model on two</h1>" in text
    assert f"<pre>widemargin report two.model {two}</pre>" in text
    assert call("report", "-q", "-o", "other.html", "--title", "A <good> one", "two.model", two) == (0, "", "")
    assert "<h1>A &lt;good&gt; one</h1>" in (tmp_path / "other.html").read_text("utf-8")


def test_json_of_report_is_one_object(call, two, tmp_path):
    call("train", "-q", two, "m")
    status, out, _ = call("report", "--json", "m", two)
    assert status == 0
    assert json.loads(out) == {"report": "m.html", "bytes": (tmp_path / "m.html").stat().st_size}


def test_report_reads_standard_input_and_writes_standard_output(run, two):
    run("train", "-q", two, "m")
    done = run("report", "-o", "-", "m", "-", input=two.read_bytes())
    assert done.returncode == 0
    assert done.stdout.startswith(b"<!doctype html>")
    assert b"standard input" in done.stdout
    assert b"standard output" in done.stderr


def test_queries_of_the_data_reach_the_measures(call, tmp_path, rng):
    X, y, query = rng.standard_normal((30, 3)), rng.integers(0, 3, 30), np.repeat([1, 2, 3], 10)
    write_svmlight(tmp_path / "d", X, y, qid=query)
    call("train", "-q", "--task", "rank", "d", "m")
    assert call("report", "-q", "m", "d") == (0, "", "")
    X, y, query = read_svmlight(tmp_path / "d")
    share = load_model(tmp_path / "m").score(X, y, qid=query)
    assert f"Mean concordance {share:g}" in Page((tmp_path / "m.html").read_text("utf-8")).text


def test_features_count_from_zero_if_the_file_does(call, two, tmp_path):
    call("train", "-q", two, "m")
    numbers = {}
    for based in ("no", "yes"):
        assert call("report", "-q", "--zero-based", based, "m", two)[0] == 0
        page = Page((tmp_path / "m.html").read_text("utf-8"))
        numbers[based] = {int(row[0]) for row in page.data("features")}
    assert numbers["no"] == {1, 2, 3, 4}
    assert min(numbers["yes"]) == 1  # column 0 is empty in a file that counts from 1


def test_a_grid_is_drawn_with_the_model(call, two, tmp_path):
    lines = [{"widemargin_grid": 1, "names": ["C"], "scoring": "accuracy", "n_folds": 2}]
    lines += [{"point": {"C": C}, "fold": k, "score": 0.9 - C / 9, "seconds": 1.0} for C in (0.5, 1.0) for k in (0, 1)]
    (tmp_path / "g").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    call("train", "-q", two, "m")
    assert call("report", "-q", "--grid", "g", "m", two) == (0, "", "")
    page = Page((tmp_path / "m.html").read_text("utf-8"))
    assert "Best: C = 0.5: accuracy 84.44%" in page.texts["grid"]
    assert page.marks["grid"] == len(page.data("grid")) == 2


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["m"], 2, "DATA is missing"),
        (["two", "m"], 2, "m is a model and two is not; the order is: report MODEL DATA"),
        (["-", "-"], 2, "DATA and MODEL cannot both be standard input"),
        (["-", "two"], 2, "-o/--output must be given if MODEL is standard input"),
        (["-o", "two", "m", "two"], 2, "two would be overwritten by the result; name another file"),
        (["-o", "no/where", "m", "two"], 1, "there is no directory"),
        (["absent", "two"], 1, "absent: no such file; check the path"),
        (["m", "absent"], 1, "absent: no such file; check the path"),
        (["two", "two"], 1, "two: not a model file"),
        (["--grid", "absent", "m", "two"], 1, "absent: no such file; check the path"),
        (["--grid", "two", "m", "two"], 1, "two:1: is not a results file of a grid search"),
        (["--grid", "started", "m", "two"], 1, "started: no point of the grid"),
        (["m", "empty"], 1, "empty: holds no rows"),
        (["words", "two"], 1, "words: its classes are words, such as 'a'"),
        (["--task", "rank", "m", "two"], 1, "this file says itself what the model is"),
        (["--titel", "x", "m", "two"], 2, "unknown option --titel; did you mean --title?"),
    ],
)
def test_mistakes_are_one_line_with_the_way_out(call, two, tmp_path, words, status, says):
    call("train", "-q", two, "m")
    header = {"widemargin_grid": 1, "names": ["C"], "scoring": "accuracy", "n_folds": 5}
    (tmp_path / "started").write_text(f"{json.dumps(header)}\n")
    (tmp_path / "empty").write_text("")
    X, y, _ = read_svmlight(two)
    save_model(LinearSVC().fit(X, np.where(y > 0, "a", "b")), tmp_path / "words")
    before = sorted(tmp_path.iterdir())
    found, out, err = call("report", *words)
    assert (found, out) == (status, "")
    (line,) = err.splitlines()
    assert line.startswith("widemargin: error: ")
    assert says in line
    assert sorted(tmp_path.iterdir()) == before


def test_help_of_report_shows_its_use(call):
    status, out, _ = call("report", "--help")
    assert status == 0
    assert out.startswith("usage: widemargin report [options] MODEL DATA")
    assert "exit status:" in out


# Scales, numbers and colours


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0.0, 1.0, ("0", "0.25", "0.50", "0.75", "1.00")), (-3.0, 6.0, ("−4", "−2", "0", "2", "4", "6"))],
)
def test_ticks_are_round_numbers(low, high, ticks):
    assert scales.linear(low, high, 4 if high == 1.0 else 5).texts == ticks


@pytest.mark.parametrize("low", [-7.3e8, -2.1, 0.0, 1e-7, 12345.6])
@pytest.mark.parametrize("length", [0.0, 1e-6, 0.37, 4.0, 9e7])
def test_scales_hold_what_they_were_made_for(low, length):
    scale = scales.linear(low, low + length)
    assert scale.low <= low <= low + length <= scale.high
    assert 2 <= len(scale.ticks) <= 8
    places = scale.places([scale.low, *scale.ticks, scale.high])
    assert (np.diff(places) >= -1e-12).all()
    assert (places[0], places[-1]) == (0.0, 1.0)


def test_powers_of_ten_are_evenly_spaced():
    scale = scales.powers_of_ten(3e-5, 0.7)
    assert (scale.low, scale.high) == (1e-5, 1.0)
    np.testing.assert_allclose(np.diff(scale.places([1e-5, 1e-4, 1e-3, 1e-2])), 0.2)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"), (12345, "12,345"), (0.0, "0"), (0.5, "0.5"), (0.123456, "0.1235"), (12.3456, "12.35"),
        (-1234.5678, "-1,235"), (1e-7, "1e-07"), (2.5e9, "2.5e+09"), (float("nan"), "–"), (np.float32(2), "2"),
    ],
)  # fmt: skip
def test_numbers_are_written_for_people(value, text):
    assert number(value) == text


def test_tables_align_words_left_and_escape_them():
    made = table(("a<", "b"), [("<i>", 1), ("y", 2)])
    assert 'class="data l1"' in made
    assert "<th scope=col>a&lt;" in made
    assert "<td>&lt;i&gt;<td>1" in made


def test_a_picture_refuses_points_without_rows():
    picture = Picture(scales.linear(0, 1), scales.linear(0, 1), ("x",))
    with pytest.raises(ValueError, match="rows must be as many as points, 2, got 1"):
        picture.curve([0.0, 1.0], [0.0, 1.0], [(0,)])


@pytest.mark.parametrize(
    ("theme", "series", "dark"),
    [(palette.LIGHT, palette.LIGHT_SERIES, False), (palette.DARK, palette.DARK_SERIES, True)],
)
def test_colours_are_readable_in_both_themes(theme, series, dark):
    for name in ("ink", "soft", "accent", "good", "bad"):
        assert palette.contrast(theme[name], theme["card"]) >= 4.5
        assert palette.contrast(theme[name], theme["back"]) >= 4.5
    assert palette.contrast(theme["on"], theme["accent"]) >= 4.5
    assert all(palette.contrast(colour, theme["card"]) >= 3.0 for colour in series)
    text = dict(re.findall(r"--(\w+):(#\w+);", palette.properties(dark)))
    assert all(palette.contrast(text[f"h{k}"], text[f"t{k}"]) >= 4.5 for k in range(palette.N_STEPS))


def test_contrast_is_that_of_wcag():
    assert palette.contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert palette.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_report_measures_as_predict_does(cancer):
    X, y = cancer
    model = LinearSVC(C=1e-4).fit(X, y)
    assert examine(model, X, y).measures["accuracy"] == model.score(X, y)
