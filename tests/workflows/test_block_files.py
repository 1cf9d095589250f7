"""The functions of files on row-block files give what they give on the same rows as text."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from widemargin import (
    SVC,
    FormatError,
    LinearSVC,
    LinearSVR,
    OrdinalSVC,
    RankSVM,
    check_file,
    cross_validate_file,
    easy_files,
    grid_file,
    load_model,
    open_blocks,
    predict_file,
    read_svmlight,
    report_file,
    scale_file,
    subset_file,
    train_file,
    write_blocks,
    write_svmlight,
)
from widemargin.workflows import block_checks
from widemargin.workflows.errors import ArgumentError, FileError, FileNote, FileWarning


@pytest.fixture
def rows(rng):
    """600 sparse rows of six features, two classes that overlap."""
    X = rng.standard_normal((600, 6)) * (rng.random((600, 6)) < 0.75) * [1.0, 30.0, 1.0, 1.0, 0.1, 1.0] + 0.0
    X[0, 5] = 1.0
    return X, np.where(X @ [1.0, 0.05, 0.0, -1.0, 4.0, 0.0] + 0.4 * rng.standard_normal(600) > 0.0, 1, -1)


@pytest.fixture
def both(rows, tmp_path, monkeypatch):
    """The names of a file of text and of a row-block file with these rows, of several blocks, in the same order."""
    monkeypatch.chdir(tmp_path)
    write_svmlight("rows.svm", *rows)
    write_blocks("rows.bin", "rows.svm", keep_order=True, block_bytes=4000)
    assert open_blocks("rows.bin").n_blocks > 4
    return "rows.svm", "rows.bin"


def block_file(name, X, y, **options):
    write_blocks(name, [(X, y, options.get("qid"), options.get("weight"))], keep_order=True, block_bytes=3000)
    return name


def flip(path, place):
    """Change a byte of a file."""
    content = bytearray(Path(path).read_bytes())
    content[place] ^= 0xFF
    Path(path).write_bytes(content)


# train


@pytest.mark.parametrize("model", [LinearSVC(C=0.5), LinearSVR(), OrdinalSVC()], ids=lambda model: type(model).__name__)
def test_training_on_blocks_gives_the_model_of_text(model, both):
    text, blocks = (train_file(model, data, f"{data}.model") for data in both)
    assert blocks.facts["rows"] == text.facts["rows"] == 600
    assert blocks.facts["objective"] == pytest.approx(text.facts["objective"], rel=2 * model.tol)
    assert np.allclose(blocks.model.coef_, text.model.coef_, atol=0.05)
    assert np.array_equal(load_model("rows.bin.model").coef_, blocks.model.coef_)


@pytest.mark.parametrize("model", [LinearSVC(tol=1e-8), LinearSVR(tol=1e-8)], ids=lambda model: type(model).__name__)
def test_scaling_applies_to_text_and_to_blocks(model, both):
    model.set_params(scaling="standard")
    text, blocks = (train_file(model, data, "model").model for data in both)
    assert np.allclose(text.coef_, blocks.coef_, rtol=1e-3, atol=1e-4)
    assert np.allclose(blocks.scaling_.scale, load_model("model").scaling_.scale, rtol=0.0, atol=0.0)
    plain = train_file(type(model)(tol=1e-8), both[0], "plain").model
    assert not np.allclose(plain.coef_, text.coef_, rtol=1e-3, atol=1e-4)


def test_several_files_and_a_pattern_are_one_data_set(both, rows):
    X, y = rows
    for k in range(3):
        block_file(f"part-{k}.arrow", X[200 * k : 200 * (k + 1)], y[200 * k : 200 * (k + 1)])
    parts = ["part-0.arrow", "part-1.arrow", "part-2.arrow"]
    listed, pattern = (train_file(LinearSVC(), data, "model") for data in (parts, "part-*.arrow"))
    assert listed.facts["rows"] == pattern.facts["rows"] == 600
    assert np.array_equal(listed.model.coef_, pattern.model.coef_)
    assert listed.facts["objective"] == pytest.approx(
        train_file(LinearSVC(), both[0], "m").facts["objective"], rel=2e-4
    )
    with pytest.raises(ArgumentError, match="must be named if data is several files"):
        train_file(LinearSVC(), parts)
    with pytest.raises(ArgumentError, match=r"rows\.svm is not a row-block file"):
        train_file(LinearSVC(), [*parts, "rows.svm"], "model")
    with pytest.raises(FileNotFoundError, match=r"absent\.arrow"):
        train_file(LinearSVC(), ["absent.arrow"], "model")
    with pytest.raises(ArgumentError, match="at least one file"):
        train_file(LinearSVC(), [], "model")


def test_weights_and_queries_of_the_file_are_used(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, weight = rng.standard_normal((200, 3)), rng.integers(0, 3, 200).astype(float)
    y, qid = np.where(X[:, 0] + rng.standard_normal(200) > 0, 1, 0), np.repeat(np.arange(20), 10)
    block_file("weighted.arrow", X, y, weight=weight)
    trained = train_file(LinearSVC(tol=1e-8), "weighted.arrow", "model").model
    assert np.allclose(trained.coef_, LinearSVC(tol=1e-8).fit(X, y, sample_weight=weight).coef_, atol=1e-5)
    block_file("queries.arrow", X, y, qid=qid)
    trained = train_file(RankSVM(tol=1e-6), "queries.arrow", "model")
    assert trained.facts["queries"] == 20
    assert np.allclose(trained.model.coef_, RankSVM(tol=1e-6).fit(X, y, qid=qid).coef_, atol=1e-3)
    with pytest.warns(FileNote, match="has weights of rows, which OrdinalSVC does not use"):
        train_file(OrdinalSVC(), "weighted.arrow", "model")


def test_labels_may_be_words_if_the_model_file_has_a_place_for_them(both, rows):
    X, y = rows
    block_file("words.arrow", X, np.array(["no", "yes"])[(y > 0).astype(int)])
    trained = train_file(LinearSVC(), "words.arrow", "words.model")
    assert trained.facts["classes"] == ["no", "yes"]
    found = predict_file("words.arrow", "words.model", "words.out")
    assert set(Path("words.out").read_text().split()) == {"no", "yes"}
    assert found.measures["accuracy"] == predict_file("rows.svm", _trained(both), None).measures["accuracy"]
    with pytest.raises(FileError, match=r"labels are words, such as '(no|yes)', and a model file of format liblinear"):
        train_file(LinearSVC(), "words.arrow", "model", format="liblinear")
    with pytest.raises(FileError, match=r"words\.arrow: labels are words.*, and the task needs numbers"):
        train_file(LinearSVR(), "words.arrow", "model")
    with pytest.raises(FileError, match=r"labels are words, such as '(no|yes)', rows.svm.model has numbers"):
        predict_file("words.arrow", "rows.svm.model")


def _trained(both):
    train_file(LinearSVC(), both[0], "rows.svm.model")
    return "rows.svm.model"


@pytest.mark.parametrize(
    ("options", "name"),
    [({"n_features": 9}, "n_features"), ({"zero_based": True}, "zero_based"), ({"dtype": "f4"}, "dtype")],
)
def test_options_of_text_are_refused_for_blocks(options, name, both):
    with pytest.raises(ArgumentError, match=rf"{name} is for text, rows\.bin is a row-block file; leave it out"):
        train_file(LinearSVC(), both[1], "model", **options)


def test_max_memory_is_refused_for_text_and_counts_for_blocks(both):
    with pytest.raises(ArgumentError, match=r"max_memory is for row-block files, rows\.svm is not one"):
        train_file(LinearSVC(max_memory="3GB"), both[0], "model")
    with pytest.raises(FileError, match=r"rows\.bin: The fit needs about .* max_memory is 0\.00 GB"):
        train_file(LinearSVC(max_memory="1M"), both[1], "model")
    assert train_file(LinearSVC(max_memory="30GB"), both[1], "model").model.max_memory == "30GB"


def test_no_rows_and_no_checkpoint_are_overwritten(both):
    before = Path("rows.bin").read_bytes()
    with pytest.raises(ArgumentError, match=r"rows\.bin is a row-block file, which the model would replace"):
        train_file(LinearSVC(), both[0], "rows.bin")
    with pytest.raises(ArgumentError, match=r"rows\.bin would be overwritten"):
        train_file(LinearSVC(), "rows.bin", "rows.bin")
    with pytest.raises(ArgumentError, match="the model and checkpoint are both run"):
        train_file(LinearSVC(checkpoint="run"), "rows.bin", "run")
    with pytest.raises(FileError, match="there is no directory"):
        train_file(LinearSVC(checkpoint="nowhere/run"), "rows.bin", "model")
    assert Path("rows.bin").read_bytes() == before


def test_a_checkpoint_of_another_fit_is_refused_and_one_of_this_fit_is_gone_in_the_end(both):
    Path("run.ckpt").write_bytes(b"something else")
    for data in both:
        with pytest.raises(FormatError, match=r"run\.ckpt: this is not a checkpoint of the fit"):
            train_file(LinearSVC(solver="ocas", checkpoint="run.ckpt"), data, "model")
    os.remove("run.ckpt")
    assert train_file(LinearSVC(checkpoint="run.ckpt"), both[1], "model").facts["status"] == "converged"
    assert not os.path.exists("run.ckpt")


@pytest.mark.parametrize(
    "call",
    [
        lambda data: train_file(SVC(), data, "model"),
        lambda data: cross_validate_file(LinearSVC(), data),
        lambda data: grid_file(LinearSVC(), data, "model"),
        lambda data: easy_files(data),
        lambda data: easy_files("rows.svm", data),
        lambda data: report_file("rows.svm.model", data),
    ],
    ids=["kernel", "folds", "grid", "easy", "easy test", "report"],
)
def test_what_needs_all_rows_in_memory_says_what_to_do(call, both):
    _trained(both)
    with pytest.raises(
        FileError, match=r"rows\.bin is a row-block file, which .* cannot read; write a part of its rows"
    ):
        call(both[1])


@pytest.mark.parametrize("call", [cross_validate_file, grid_file], ids=["folds", "grid"])
def test_a_checkpoint_is_for_one_fit(call, both):
    with pytest.raises(ArgumentError, match="checkpoint is for a single fit"):
        call(LinearSVC(checkpoint="run.ckpt"), both[0])


# predict


def test_predictions_of_blocks_are_those_of_text(both):
    for model in (LinearSVC(), SVC(gamma=0.01)):
        train_file(model, both[0], "model")
        for options in ({}, {"scores": True}):
            text, blocks = (predict_file(data, "model", f"{data}.out", **options) for data in both)
            assert np.array_equal(text.predicted, blocks.predicted)
            assert blocks.measures == text.measures
            lines = [np.genfromtxt(f"{data}.out", skip_header=bool(options)) for data in both]
            assert np.allclose(*lines, rtol=1e-12)
            heads = [Path(f"{data}.out").read_text().partition("\n")[0] for data in both]
            assert heads[0] == heads[1] or not options
    train_file(LinearSVR(), both[0], "model")
    text, blocks = (predict_file(data, "model").measures for data in both)
    assert blocks == pytest.approx(text, rel=1e-9)


def test_measures_of_a_ranking_use_the_queries_of_the_file(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, qid = rng.standard_normal((300, 3)), np.repeat(np.arange(30), 10)
    y = np.digitize(X[:, 0] + rng.standard_normal(300), [-1.0, 0.0, 1.0])
    write_svmlight("q.svm", X, y, qid=qid)
    write_blocks("q.arrow", "q.svm", keep_order=True, block_bytes=1000)
    train_file(RankSVM(), "q.svm", "model")
    assert predict_file("q.arrow", "model").measures == pytest.approx(
        predict_file("q.svm", "model").measures, rel=1e-12
    )


def test_columns_that_file_or_model_lack(both, rows):
    X, y = rows
    train_file(LinearSVC(), both[0], "model")
    block_file("wide.arrow", csr_array(np.column_stack([X, y])), y)
    with pytest.warns(FileWarning, match="has 7 features, the model 6: the columns beyond are dropped"):
        wide = predict_file("wide.arrow", "model")
    assert np.array_equal(wide.predicted, predict_file(both[0], "model").predicted)
    block_file("narrow.arrow", X[:, :4], y)
    zeros = np.column_stack([X[:, :4], np.zeros((600, 2))])
    assert np.array_equal(predict_file("narrow.arrow", "model").predicted, load_model("model").predict(zeros))


def test_names_of_features_must_agree(rng, tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    X = rng.standard_normal((60, 2))
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": (X[:, 0] > 0).astype(int)})
    write_blocks("ab.arrow", frame, label="y")
    write_blocks("ac.arrow", frame.rename(columns={"b": "c"}), label="y")
    train_file(LinearSVC(C=100.0), "ab.arrow", "model")
    assert list(load_model("model").feature_names_in_) == ["a", "b"]
    assert predict_file("ab.arrow", "model").measures["accuracy"] > 0.9
    with pytest.raises(FileError, match="the features have other names than those of model: 'c' instead of 'b'"):
        predict_file("ac.arrow", "model")


def test_a_damaged_block_leaves_the_former_predictions(both):
    _trained(both)
    Path("out").write_text("former\n")
    flip("rows.bin", _somewhere_in_the_rows())
    with pytest.raises(FormatError, match=r"rows\.bin: the file is damaged: block \d+"):
        predict_file("rows.bin", "rows.svm.model", "out")
    assert Path("out").read_text() == "former\n"


def _somewhere_in_the_rows():
    """Return a place in rows.bin that is in the values of a block: three quarters from its beginning."""
    return os.path.getsize("rows.bin") * 3 // 4


# check


def test_the_check_of_blocks_finds_what_that_of_text_finds(both):
    text, blocks = (check_file(data) for data in both)
    assert blocks.n_defects == 0
    assert blocks.summary == text.summary
    assert [warning.kind for warning in blocks.warnings] == [warning.kind for warning in text.warnings]
    json.dumps(blocks.to_dict())


def test_a_summary_of_many_rows_has_all_labels_and_the_features_of_the_first(both, monkeypatch):
    monkeypatch.setattr(block_checks, "_MAX_VALUES_SUMMARISED", 500)
    with pytest.warns(FileNote, match=r"features and repeated rows are those of the first \d+ of 600 rows"):
        found = check_file(both[1])
    whole = check_file(both[0]).summary
    assert (found.summary.n_rows, found.summary.n_entries) == (600, whole.n_entries)
    assert found.summary.labels == whole.labels
    assert found.summary.density == pytest.approx(whole.density)


def test_damages_are_defects(both):
    flip("rows.bin", _somewhere_in_the_rows())
    found = check_file("rows.bin")
    assert found.n_defects == 1
    assert "the file is damaged: block" in str(found)
    assert found.summary.n_rows == 600 - found.n_lines_refused < 600
    Path("cut.arrow").write_bytes(Path("rows.bin").read_bytes()[:-50])
    cut = check_file("cut.arrow")
    assert cut.summary is None
    assert "not a complete row-block file" in cut.defects[0].rule
    with pytest.raises(ArgumentError, match="zero_based is for text"):
        check_file("rows.bin", zero_based=False)


def test_an_arrow_file_of_another_program_is_refused(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    table = pyarrow.table({"a": [1.0, 2.0]})
    with pyarrow.ipc.new_file("table.arrow", table.schema) as file:
        file.write_table(table)
    with pytest.raises(FormatError, match="not a row-block file: it has no column 'label'"):
        train_file(LinearSVC(), "table.arrow", "model")


# scale and subset


@pytest.mark.parametrize("options", [{}, {"method": "variance"}, {"lower": 0.0, "labels": (0.0, 1.0)}])
def test_scaled_blocks_have_the_values_of_scaled_text(options, both):
    text, blocks = (scale_file(data, f"{data}.out", save=f"{data}.range", **options) for data in both)
    assert blocks.to_dict() | {"seconds": 0} == text.to_dict() | {
        "seconds": 0, "ranges": "rows.bin.range", "output": "rows.bin.out",
    }  # fmt: skip
    assert Path("rows.bin.range").read_text() == Path("rows.svm.range").read_text()
    X, y, _ = read_svmlight("rows.svm.out")
    scaled = open_blocks("rows.bin.out")
    assert np.array_equal(csr_array(scaled.to_memory()).toarray(), X.toarray())
    assert np.array_equal(scaled.labels, y)
    again = scale_file(both[1], "again", restore="rows.svm.range")
    assert np.array_equal(csr_array(open_blocks("again").to_memory()).toarray(), X.toarray())
    assert again.ranges == "rows.svm.range"


def test_scaling_keeps_words_weights_and_queries(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, weight, qid = rng.standard_normal((90, 3)), rng.random(90), np.repeat(np.arange(9), 10)
    words = np.array(["a", "b", "c"])[rng.integers(0, 3, 90)]
    block_file("w.arrow", X, words, weight=weight, qid=qid)
    scale_file("w.arrow", "out", method="variance", center=True)
    out = open_blocks("out")
    assert not out.layout.is_sparse
    assert np.allclose(out.to_memory(), (X - X.mean(axis=0)) / X.std(axis=0))
    assert np.array_equal(out.labels, words)
    assert np.array_equal(out.weight, weight)
    assert np.array_equal(out.qid, qid)
    with pytest.raises(ArgumentError, match=r"labels is for numbers, the labels of w\.arrow are words"):
        scale_file("w.arrow", "out2", labels=(0.0, 1.0))
    with pytest.warns(FileNote, match="which are torn apart"):
        taken = subset_file("w.arrow", 30, "part")
    assert [one["label"] for one in taken.facts["classes"]] == ["a", "b", "c"]
    assert sum(one["subset"] for one in taken.facts["classes"]) == 30
    assert np.array_equal(open_blocks("part").labels, words[taken.chosen])
    assert np.array_equal(open_blocks("part").weight, weight[taken.chosen])


@pytest.mark.parametrize("method", [None, "random"])
def test_a_subset_of_blocks_has_the_rows_of_that_of_text(method, both, rows):
    X, y = rows
    text, blocks = (subset_file(data, 0.25, f"{data}.part", f"{data}.rest", method=method, seed=3) for data in both)
    assert np.array_equal(text.chosen, blocks.chosen)
    assert text.facts == blocks.facts
    part, rest = open_blocks("rows.bin.part"), open_blocks("rows.bin.rest")
    assert np.array_equal(csr_array(part.to_memory()).toarray(), X[blocks.chosen])
    assert np.array_equal(rest.labels, np.delete(y, blocks.chosen))
    as_text = subset_file(both[1], 0.25, "part.svm.gz", method=method, seed=3, text=True)
    assert np.array_equal(as_text.chosen, text.chosen)
    assert np.array_equal(read_svmlight("part.svm.gz", n_features=6)[0].toarray(), X[text.chosen])


def test_whole_queries_of_blocks(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    qid = np.repeat(np.arange(30), 7)
    block_file("q.arrow", rng.standard_normal((210, 2)), rng.integers(0, 3, 210), qid=qid)
    taken = subset_file("q.arrow", 70, "part", by_query=True)
    assert (taken.facts["queries_in_subset"], taken.facts["subset"]) == (10, 70)
    assert np.unique(open_blocks("part").qid, return_counts=True)[1].tolist() == [7] * 10
    with pytest.warns(FileNote, match="has queries .qid., which are torn apart"):
        subset_file("q.arrow", 70, "torn")


def test_wrong_subsets_are_refused(both, rows):
    with pytest.raises(ArgumentError, match=r"text=True is for row-block files, rows\.svm is text"):
        subset_file(both[0], 5, "part", text=True)
    with pytest.raises(FileError, match="601 rows are wanted, there are 600"):
        subset_file(both[1], 601, "part")
    with pytest.raises(FileError, match="there is no qid for by_query=True"):
        subset_file(both[1], 60, "part", by_query=True)
    block_file("words.arrow", rows[0], np.array(["x", "y"] * 300))
    with pytest.raises(FileError, match="labels are words, such as 'x', which text has no place for"):
        subset_file("words.arrow", 60, "part", text=True)
    block_file("weights.arrow", *rows, weight=np.ones(600))
    with pytest.warns(FileNote, match="weights of rows, which text has no place for"):
        subset_file("weights.arrow", 60, "part", text=True)


# the extra


def test_without_the_extra_the_message_names_it(both, monkeypatch):
    from widemargin.data.blocks import extra

    monkeypatch.setattr(extra, "find_spec", lambda name: None)
    for call in (
        lambda: train_file(LinearSVC(), both[1], "model"),
        lambda: check_file(both[1]),
        lambda: scale_file(both[1], "out"),
        lambda: subset_file(both[1], 5, "out"),
    ):
        with pytest.raises(
            FileError, match=r'rows\.bin: row-block files need pyarrow.* pip install "widemargin\[arrow\]"'
        ):
            call()
    with pytest.raises(ImportError, match=r'pip install "widemargin\[arrow\]"'):
        open_blocks(both[1])


def test_the_package_works_where_pyarrow_is_not_installed(both):
    script = (
        "import sys\n"
        "sys.modules['pyarrow'] = sys.modules['xxhash'] = None\n"
        "from widemargin import RowBlocks, open_blocks, write_blocks\n"
        "from widemargin.cli.main import main\n"
        "assert main(['train', '-q', 'rows.svm', 'model']) == 0\n"
        "sys.exit(main(['train', '-q', 'rows.bin', 'model']))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "widemargin: error: rows.bin: row-block files need pyarrow and xxhash, which are not installed: "
        'pip install "widemargin[arrow]"\n'
    )
