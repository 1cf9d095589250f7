"""The functions behind the commands: the same results, results that print themselves, and errors that say why."""

import ast
import io
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import widemargin
from widemargin import (
    SVC,
    SVR,
    FormatError,
    LinearSVC,
    LinearSVR,
    OneClassSVM,
    RankSVM,
    check_file,
    cross_validate_file,
    easy_files,
    grid_file,
    load_model,
    predict_file,
    read_svmlight,
    report_file,
    save_model,
    scale_file,
    subset_file,
    train_file,
    write_svmlight,
)
from widemargin.cli.messages import OPTIONS
from widemargin.cli.options.model import make_model, make_parser
from widemargin.workflows.errors import DefectiveFile, FileNote, FileWarning
from widemargin.workflows.result_text import model_words

WORKFLOWS = sorted((Path(widemargin.__file__).parent / "workflows").glob("*.py"))
_SECONDS = re.compile(r"(seconds|done in) +[0-9.]+( s)?|\"seconds\": [0-9.e-]+")


def timeless(text):
    """Return a text without the times in it, which differ from run to run."""
    return _SECONDS.sub("(time)", text)


def as_json(facts):
    """Return facts as they come back from JSON, without times; what is no number is None."""
    text = re.sub("NaN|Infinity", "null", json.dumps(facts))
    return json.loads(re.sub(r'"seconds": [0-9.e-]+', '"seconds": 0', text))


@pytest.fixture
def printed(call):
    """Return a function that runs a command, and returns its exit status, its text, and its facts."""

    def printed(command, *words, again=()):
        status, out, _ = call(command, *words)
        _, facts, _ = call(command, "--json", *again, *words)
        return status, timeless(out).rstrip("\n"), as_json(json.loads(facts))

    return printed


@pytest.fixture
def model(two, tmp_path, monkeypatch):
    """The path of a linear model of `two`; the current directory is that of the files."""
    monkeypatch.chdir(tmp_path)
    return train_file(LinearSVC(random_state=0), two, tmp_path / "two.model").output


def test_a_check_prints_what_the_command_prints(two, printed):
    status, text, facts = printed("check", two)
    found = check_file(two)
    assert (status, text, facts) == (0, str(found), as_json(found.to_dict()))
    assert found.summary.n_rows == 60
    assert not found.defects


def test_a_check_lists_defects_and_raises_nothing(tmp_path, printed):
    path = tmp_path / "bad"
    path.write_text("1 1:0.5\n-1 2:1 1:1\n" + "x 1:1\n" * 3)
    status, text, facts = printed("check", "--limit", 2, path)
    found = check_file(path, limit=2)
    assert (status, text, facts) == (1, str(found), as_json(found.to_dict()))
    assert (found.n_defects, len(found.defects), found.defects[0].line) == (4, 2, 2)
    assert found.defect_lines.endswith("... and 2 more")


def test_a_check_reads_file_objects_and_paths(two):
    assert str(check_file(io.BytesIO(two.read_bytes()))) == str(check_file(str(two)))
    with pytest.raises(ValueError, match="task must be 'classification', 'regression' or None, got 'rank'"):
        check_file(two, task="rank")
    with pytest.raises(FileNotFoundError):
        check_file(two.parent / "nothing")


def test_scaling_writes_and_prints_what_the_command_does(two, tmp_path, printed):
    status, text, facts = printed("scale", "-l", 0, "-s", "ranges", "-o", "scaled", two)
    rows, ranges = Path("scaled").read_bytes(), Path("ranges").read_bytes()
    made = scale_file(two, Path("scaled"), lower=0, save=Path("ranges"))
    assert (status, text, facts) == (0, timeless(str(made)), as_json(made.to_dict()))
    assert (Path("scaled").read_bytes(), Path("ranges").read_bytes()) == (rows, ranges)
    again = scale_file(two, "again", restore="ranges")
    assert Path("again").read_bytes() == rows
    assert (again.rows, again.features, again.left_out) == (60, 4, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lower": 2}, "lower must be below upper, got 2 and 1"),
        ({"labels": (1, 0)}, "labels: the lower limit must be below the upper"),
        ({"center": True}, 'center=True is for method="variance"; leave it out or name that'),
        ({"keep_zeros": True, "lower": 0}, r"keep_zeros=True scales to \[-upper, upper\] with upper > 0, got upper 1"),
        ({"keep_zeros": True, "method": "variance"}, 'method="variance" keeps zeros without keep_zeros=True'),
        ({"upper": 2, "method": "variance"}, 'lower and upper are for method="range"'),
        ({"method": "log"}, "method must be 'range', 'variance' or None, got 'log'"),
        ({"save": "a", "restore": "b"}, "save saves ranges that are learned from data, restore applies saved ones"),
        ({"restore": "b", "keep_zeros": True}, "keep_zeros=True is for learning ranges, those of restore are learned"),
        ({"save": "out"}, "rows and ranges would both go to out; name another file with output= or save"),
    ],
)
def test_scaling_refuses_arguments_by_their_names_in_python(two, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        scale_file(two, "out", **options)
    assert not Path("out").exists()


def test_scaling_warns_by_warnings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_svmlight("few", np.eye(8), np.ones(8))
    with pytest.warns(FileWarning, match=r"8 entries become 64, .*; lower=0 keeps them, .* keep_zeros=True and method"):
        scale_file("few", "scaled")


def test_a_subset_has_the_rows_of_the_command(two, printed):
    status, text, facts = printed("subset", "--seed", 3, two, 0.4, "some", "others")
    some, others = Path("some").read_bytes(), Path("others").read_bytes()
    taken = subset_file(two, 0.4, "some", "others", seed=3)
    assert (status, text, facts) == (0, str(taken), as_json(taken.to_dict()))
    assert (Path("some").read_bytes(), Path("others").read_bytes()) == (some, others)
    assert [two.read_bytes().splitlines(keepends=True)[row] for row in taken.chosen] == some.splitlines(keepends=True)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((61, "some"), {}, "two: 61 rows are wanted, there are 60; ask for fewer"),
        ((1.5, "some"), {}, "number must be an int >= 1, or a float > 0 and <= 1, got 1.5"),
        ((0, "some"), {}, "number must be an int >= 1, or a float > 0 and <= 1, got 0"),
        ((5, "some"), {"by_query": True}, "two: there is no qid for by_query=True; leave it out"),
        ((5, "some"), {"by_query": True, "method": "random"}, "by_query=True takes queries at random, whatever their"),
        ((5, "some"), {"method": "first"}, "method must be 'stratified', 'random' or None, got 'first'"),
        ((5, "some", "some"), {}, "subset and rest are both some; name two files"),
    ],
)
def test_a_subset_refuses_what_makes_no_sense(two, tmp_path, monkeypatch, arguments, options, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        subset_file(two, *arguments, **options)
    assert not Path("some").exists()


def test_training_writes_and_prints_what_the_command_does(two, printed):
    status, text, facts = printed("train", "-c", 10, "--loss", "hinge", two, "by_command")
    trained = train_file(LinearSVC(C=10.0, loss="hinge", n_jobs=1, random_state=0), two, "by_function")
    assert status == 0
    assert text == timeless(str(trained)).replace("by_function", "by_command")
    assert facts == {**as_json(trained.to_dict()), "model": "by_command"}
    X = read_svmlight(two)[0]
    same = load_model("by_command").decision_function(X)
    np.testing.assert_array_equal(load_model("by_function").decision_function(X), same)
    np.testing.assert_array_equal(trained.model.decision_function(X), same)


def test_a_kernel_machine_prints_the_lines_of_svm_train(three, printed):
    status, text, facts = printed("train", "-t", 2, "-g", 0.5, three, "three.model")
    trained = train_file(SVC(gamma=0.5, cache_size=100.0, n_jobs=1, random_state=0), three, "three.model")
    assert (status, text, facts) == (0, timeless(str(trained)), as_json(trained.to_dict()))
    assert "Total nSV" in str(trained)
    assert not trained.interrupted


def test_training_fits_a_copy_and_names_the_model_after_the_data(two, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    estimator = LinearSVC(random_state=0)
    assert train_file(estimator, two).output == "two.model"
    assert not hasattr(estimator, "coef_")


def test_training_refuses_what_the_estimator_is_not_for(slope, three, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="classes are whole numbers; for regression take SVR or LinearSVR"):
        train_file(LinearSVC(), slope)
    with pytest.raises(ValueError, match="files of format svmlight have one weight vector, and no place for 3 classes"):
        train_file(LinearSVC(), three, format="svmlight")
    with pytest.raises(ValueError, match="the output for the model must be named if data is a file object"):
        train_file(LinearSVC(), io.BytesIO(three.read_bytes()))
    with pytest.raises(ValueError, match="three would be overwritten by the result; name another file"):
        train_file(LinearSVC(), three, three)
    (tmp_path / "broken").write_text("1 x\n")
    with pytest.raises(FormatError, match="broken:1:3: "):
        train_file(LinearSVC(), "broken")
    assert not list(tmp_path.glob("*.model"))


def test_cross_validation_prints_what_the_command_prints(slope, printed):
    status, text, facts = printed("train", "--task", "regression", "-v", 3, slope)
    measured = cross_validate_file(LinearSVR(n_jobs=1, random_state=0), slope, n_folds=3)
    description, _, lines = str(measured).partition("\n")
    assert status == 0
    assert text.startswith(description)
    assert text.endswith(lines)
    assert facts == as_json(measured.to_dict())
    with pytest.raises(ValueError, match="slope: "):
        cross_validate_file(LinearSVR(), slope, n_folds=61)


def test_prediction_writes_and_prints_what_the_command_does(two, model, printed):
    status, text, facts = printed("predict", "--scores", two, model, "out")
    lines = Path("out").read_text()
    found = predict_file(two, model, "out", scores=True)
    assert (status, text, facts) == (0, str(found), as_json(found.to_dict()))
    assert Path("out").read_text() == lines
    X, y, _ = read_svmlight(two)
    np.testing.assert_array_equal(found.predicted, load_model(model).predict(X))
    assert found.measures["accuracy"] == np.mean(found.predicted == y)


def test_prediction_without_output_writes_nothing(two, model):
    before = sorted(Path().iterdir())
    found = predict_file(two, model)
    assert (len(found.predicted), found.output, sorted(Path().iterdir())) == (60, None, before)


def test_prediction_refuses_what_the_model_has_not(two, slope, model):
    with pytest.raises(ValueError, match=r"probability=True: .*two.model has no probability estimates"):
        predict_file(two, model, probability=True)
    with pytest.raises(ValueError, match="probability=True and scores=True both add columns to output"):
        predict_file(two, model, probability=True, scores=True)
    train_file(LinearSVR(), slope, "slope.model")
    with pytest.raises(ValueError, match=r"scores=True is for classification, slope.model is a regression model"):
        predict_file(slope, "slope.model", scores=True)


def test_prediction_tells_of_columns_and_queries_by_warnings(model, tmp_path):
    write_svmlight("wide", np.ones((2, 6)), [1, -1], qid=[1, 1])
    with pytest.warns(FileWarning, match="wide has 6 features, the model 4: the columns beyond are dropped"):  # noqa: SIM117
        with pytest.warns(FileNote, match=re.escape("wide has queries (qid), which only RankSVM uses")):
            predict_file("wide", model)


def test_a_report_is_the_page_of_the_command(two, model, printed):
    status, text, facts = printed("report", "-o", "page.html", model, two)
    page = Path("page.html").read_text()
    made = report_file(model, two, "page.html", command=f"widemargin report --json -o page.html {model} {two}")
    assert (status, facts["report"]) == (0, made.path)
    assert Path("page.html").read_text() == page
    assert str(made).splitlines()[0] == text.splitlines()[0]
    assert report_file(model, two).path == "two.model.html"


def test_a_report_refuses_files_in_the_wrong_order(two, model):
    with pytest.raises(ValueError, match=r"the order is: report_file\(model, data\)"):
        report_file(two, model)
    with pytest.raises(ValueError, match="output path must be given if model is standard input"):
        report_file("-", two)
    with pytest.raises(ValueError, match="data and model cannot both be standard input"):
        report_file("-", "-")
    with pytest.raises(ValueError, match="data and model cannot both be standard input"):
        predict_file("-", "-")


def test_a_search_writes_and_prints_what_the_command_does(two, printed):
    words = ["--kernel", "linear", "--log2c", "-3,3,3", "-v", 3, two, "by_command"]
    status, text, facts = printed("grid", *words, again=["--overwrite"])
    options = {"grid": {"C": [2.0**-3, 1.0, 2.0**3]}, "n_folds": 3, "overwrite": True}
    found = grid_file(LinearSVC(n_jobs=1, random_state=0), two, "by_command", **options)
    assert status == 0
    assert timeless(found.summary) == text.partition("\n")[2].replace("--extend N", "extend=N")
    assert facts == as_json(found.to_dict())
    assert found.result.best_params["C"] == load_model("by_command").C


def test_a_search_does_not_lose_earlier_results(two, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = grid_file(LinearSVC(), two, grid={"C": [0.1, 1.0]}, n_folds=3)
    with pytest.raises(ValueError, match=r"two.grid holds the results of an earlier search; add resume=True to go on"):
        grid_file(LinearSVC(), two, grid={"C": [0.1, 1.0]}, n_folds=3)
    again = grid_file(LinearSVC(), two, grid={"C": [0.1, 1.0]}, n_folds=3, resume=True)
    np.testing.assert_array_equal(first.result.means, again.result.means)


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (OneClassSVM(), {}, "a one-class machine has no labels to be scored by"),
        (LinearSVC(), {"scale_targets": True}, "scale_targets is for regression, got LinearSVC"),
        (RankSVM(), {"scoring": "accuracy"}, "scoring is not for RankSVM"),
        (LinearSVC(), {"plots": ["picture.txt"]}, "plots picture.txt: the name must end with .png, .svg, .pdf, .html"),
        (LinearSVC(), {"results": "-"}, "results must be a file, as it is what a search goes on with, got -"),
        (LinearSVC(), {"resume": True, "overwrite": True}, "resume=True and overwrite=True contradict each other"),
        (SVC(probability="libsvm"), {}, "probability=True is for train_file: the search itself needs no probabilities"),
    ],
)
def test_a_search_refuses_what_does_not_apply(two, tmp_path, monkeypatch, estimator, options, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        grid_file(estimator, two, **options)
    assert not list(tmp_path.glob("*.model"))


def test_easy_makes_and_prints_what_the_command_does(two, printed):
    status, text, facts = printed("easy", "--kernel", "linear", "-v", 3, two, again=["--overwrite"])
    told = []
    made = easy_files(two, kernel="linear", n_folds=3, overwrite=True, tell=told.append)
    assert (status, text) == (0, timeless(str(made)).replace("extend=N", "--extend N"))
    assert facts == as_json(made.to_dict())
    assert told == list(made.lines)
    assert all(Path(path).exists() for path in made.files.values())
    assert made.prediction is None


def test_easy_predicts_a_test_file_and_chooses_the_task(slope, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, _ = read_svmlight(slope)
    write_svmlight("slope.t", X[:20], y[:20])
    made = easy_files(slope, "slope.t", kernel="linear", n_folds=3)
    assert (made.task, made.kernel, type(made.grid.result.best_model)) == ("regression", "linear", LinearSVR)
    assert made.prediction.measures["mse"] < 0.1
    assert sorted(made.grid.result.best_params) == ["C", "epsilon"]


def test_easy_refuses_defects_with_all_of_them(two, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bad").write_text("1 1:1\n1 1:x\ny 1:1\n")
    with pytest.raises(DefectiveFile, match="bad has 2 defects; mend them first") as caught:
        easy_files(two, "bad")
    assert [defect.line for defect in caught.value.check.defects] == [2, 3]
    with pytest.raises(ValueError, match="train and test must be files"):
        easy_files("-")
    with pytest.raises(ValueError, match="a RankSVM is linear"):
        easy_files(two, task="rank", kernel="rbf")
    with pytest.raises(ValueError, match="scale_targets=True is for regression, this is classification"):
        easy_files(two, scale_targets=True)


def test_regression_by_a_kernel_machine_is_that_of_the_command(slope, call):
    status, out, _ = call("easy", "--json", "-v", "2", "--kernel", "rbf", slope)
    assert status == 0
    params = load_model("slope.model").get_params()
    best = json.loads(out)["best"]
    expected = SVR(**best, cache_size=100.0, n_jobs=None, random_state=0).get_params()
    assert params == expected


def test_every_argument_that_messages_name_has_an_option():
    named = set()
    for path in WORKFLOWS:
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == "spelled"
                and isinstance(node.args[0], ast.Constant)
            ):
                named.add(node.args[0].value)
    assert len(named) > 20
    assert named <= set(OPTIONS)
    variables = {"calibration", "labels", "method", "center=True", "keep_zeros=True", "lower", "upper", "prefix"}
    assert set(OPTIONS) <= named | variables


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", "linear SVC, squared hinge loss"),
        ("--loss hinge", "linear SVC, hinge loss"),
        ("--task regression", "linear SVR, epsilon-insensitive loss"),
        ("--multi-class crammer_singer", "linear SVC, Crammer and Singer's loss"),
        ("-t 2", "C-SVC, rbf kernel; LIBSVM's -s 0"),
        ("-s 3 -t 1", "epsilon-SVR, poly kernel; LIBSVM's -s 3"),
        ("--task oneclass", "one-class SVM, rbf kernel; LIBSVM's -s 2"),
        ("--task rank", "RankSVM, pairs within queries, linear"),
        ("--task ordinal", "OrdinalSVC, ranks by thresholds, linear"),
        ("--task rocarea", "ROCAreaSVC, area under the ROC curve, linear"),
        ("--task measure", "MeasureSVC, f1, linear"),
    ],
)
def test_a_machine_has_words(words, expected):
    parser = make_parser()
    assert model_words(make_model(parser, parser.parse([*words.split(), "data"]))) == expected


def test_nothing_is_printed(two, model, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_file(two)
        scale_file(two, "scaled")
        predict_file(two, model, "out")
        report_file(model, two)
        cross_validate_file(LinearSVC(), two, n_folds=2)
    assert capsys.readouterr() == ("", "")


def test_standard_output_takes_the_place_of_a_file(two, model, capfdbinary):
    predict_file(two, model, "-")
    assert len(capfdbinary.readouterr().out.splitlines()) == 60


def test_words_as_classes_have_no_place_in_a_data_file(two, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_model(LinearSVC().fit(np.eye(4), list("abab")), "words.model")
    with pytest.raises(ValueError, match=r"words.model: its classes are words, such as 'a'"):
        report_file("words.model", two)
