"""Every public name as it is meant to be used: the type checker accepts all of it. It is read, not run."""

from io import BytesIO
from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

import widemargin
from widemargin import (
    SVC,
    SVR,
    Compression,
    ConvergenceWarning,
    CPath,
    FeatureRanges,
    FormatError,
    GridResult,
    LeaveOneOutEstimates,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LinearSVRCV,
    MeasureSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OrdinalSVC,
    Progress,
    RankSVM,
    ROCAreaSVC,
    RowBlocks,
    RowLoss,
    SvmlightBlocks,
    TransductiveSVC,
    WrittenBlocks,
    c_path,
    certificates,
    check_file,
    compress,
    compress_file,
    convert_file,
    cross_validate_file,
    easy_files,
    export_c,
    export_file,
    export_numpy,
    export_onnx,
    grid_file,
    grid_search,
    learn_ranges,
    leave_one_out_estimates,
    load_model,
    open_blocks,
    plot_convergence,
    plot_grid,
    predict_file,
    read_alphas,
    read_grid,
    read_ranges,
    read_svmlight,
    register_onnx_converters,
    report_file,
    run_demo,
    save_model,
    scale_file,
    show_progress,
    subset_file,
    train_file,
    warmup,
    write_alphas,
    write_blocks,
    write_ranges,
    write_svmlight,
    write_svmlight_blocks,
)

X: NDArray[np.float64] = np.eye(4)
y: NDArray[np.int64] = np.array([0, 1, 0, 1])
target: NDArray[np.float64] = np.arange(4.0)


def until_good_enough(progress: Progress) -> bool:
    assert_type(progress.iteration, int)
    assert_type(progress.solver, str)
    return progress.gap < 0.1


def fit_classifiers() -> None:
    model = SVC(C=10, kernel="rbf", gamma=0.1, class_weight={"a": 2.0}, callbacks=until_good_enough)
    assert_type(model.fit(X, y, sample_weight=[1.0, 1.0, 2.0, 0.0]), SVC)
    assert_type(model.decision_function(csr_array(X)), NDArray[np.float64])
    assert_type(model.gap_, float)
    assert_type(model.status_, str)
    SVC(kernel=lambda A, B: A @ B.T, probability="libsvm", random_state=np.random.RandomState(0)).fit([[0.0], [1.0]], y)
    assert_type(NuSVC(nu=0.2, stopping="gap").fit(X, y).n_support_, NDArray[np.int32])
    linear = LinearSVC("l2", "hinge", dual=True, max_iter=None, callbacks=[until_good_enough]).fit(
        X, ["a", "b", "a", "b"]
    )
    assert_type(linear, LinearSVC)
    linear.sparsify().densify().predict(X)
    assert_type(LinearSVCCV([0.1, 1.0], cv=3, scoring="roc_auc").fit(X, y, groups=y).C_, float)
    OrdinalSVC(C=2.0, solver="svmperf", stopping="violation").fit(X, y).position(X)
    ROCAreaSVC().fit(X, y).decision_function(X)
    MeasureSVC("precision@2", fit_intercept=False).fit(X, y).predict(X)


def fit_others() -> None:
    assert_type(SVR(epsilon=0.5, probability=True).fit(X, target).predict(X), NDArray[np.float64])
    NuSVR(nu=0.3, C=2, max_seconds=1).fit(X, target)
    LinearSVR(loss="squared_epsilon_insensitive", penalize_intercept=False).fit(X, target).predict(X)
    LinearSVR(loss=RowLoss(lower=-1.0, upper=1.0, curvature=0.5)).fit(X, target)
    assert_type(RowLoss(0, 1).upper, float)
    assert_type(LinearSVRCV().fit(X, target).path_, CPath)
    assert_type(LinearOneClassSVM(nu=0.1, solver="ocas").fit(X).predict(X), NDArray[np.int64])
    assert_type(OneClassSVM(nu=0.1, gamma="auto").fit(X).score_samples(X), NDArray[np.float64])
    assert_type(RankSVM(10.0).fit(X, target, qid=[1, 1, 2, 2]).score(X, target), float)
    partly = TransductiveSVC(unlabeled=0, positive_share=0.5, kernel="linear").fit(X, [1, 0, 0, -1])
    assert_type(partly.decision_function(X), NDArray[np.float64])
    assert_type(partly.inductive_objective_, float)


def search() -> None:
    path = c_path(None, X, y, [0.1, 1.0], cv=2, each=lambda C, scores: print(C, scores))
    assert_type(path, CPath)
    assert_type(path.best, int)
    found = grid_search(SVC(), X, y, {"C": [1, 10], "gamma": ["scale", 0.1]}, cv=2, callback=lambda result: None)
    grid_search(SVC(), X, y, [{"kernel": ["linear"]}, {"gamma": [0.1, 1.0]}], results=Path("r"), resume=True)
    assert_type(found, GridResult)
    assert_type(found.best_score, float)
    print(found.best_params["C"], found.cv_results_["mean_test_score"])
    plot_grid(read_grid("results"), Path("grid.png"))
    plot_convergence([SVC().fit(X, y)], labels=["rbf"], path="gap.png")


def read_and_write() -> None:
    rows, labels, queries = read_svmlight("train.txt", n_features=10, dtype=np.float32, zero_based="auto")
    assert_type(labels, NDArray[np.float64])
    write_svmlight(BytesIO(), rows, labels, qid=queries, comment="a comment")
    blocks = SvmlightBlocks(Path("train.txt"), block_bytes=1 << 20)
    for block in blocks:
        assert_type(block.y, NDArray[np.float64])
    write_svmlight_blocks("copy.txt.gz", blocks)
    assert_type(write_blocks("rows.arrow", ((X, y) for _ in range(3)), keep_order=True), WrittenBlocks)
    assert_type(write_blocks(Path("rows.arrow"), blocks, seed=3, max_memory=10**9).rows, int)
    rows_on_disk = open_blocks(["rows.arrow", Path("more.arrow")])
    assert_type(rows_on_disk[:1000], RowBlocks)
    assert_type(LinearSVC(max_memory="3GB", checkpoint="run").fit(rows_on_disk).predict(rows_on_disk), NDArray[Any])
    print(run_demo())
    ranges = learn_ranges(blocks, method="standard")
    assert_type(ranges, FeatureRanges)
    assert_type(learn_ranges(X, lower=0).apply_to_labels(y), NDArray[np.float64])
    write_ranges("ranges", ranges, zero_based=True)
    assert_type(read_ranges("ranges").n_features, int)
    save_model(SVC().fit(X, y), Path("model"), format="libsvm")
    load_model("model", task="rank").predict(X)
    export_onnx(SVC().fit(X, y), Path("model.onnx"), dtype="float32")
    register_onnx_converters()
    export_numpy(LinearSVC().fit(X, y), "scorer.py")
    export_c(LinearSVC().fit(X, y), "model.c", prefix="model")
    write_alphas("alphas", [0.5, -0.5])
    assert_type(read_alphas("alphas", 2), NDArray[np.float64])
    assert_type(leave_one_out_estimates(SVC().fit(X, y), X, y, exact=True), LeaveOneOutEstimates)
    small = compress(SVC().fit(X, y), X, n_vectors=3, refit="coefficients")
    assert_type(small, SVC)
    assert_type(small.compression_, Compression)
    assert_type(small.compression_.bound, float | None)


def from_files_to_files() -> None:
    print(warmup(["LinearSVC"], n_jobs=1).compiled, warmup().to_dict())
    print(check_file("train.txt", limit=10), check_file(BytesIO(b"1 1:2\n")).to_dict())
    scale_file(Path("train.txt"), "scaled.txt", lower=0.0, save="train.range")
    convert_file("train.parquet", "train.arrow", label="y", columns=["a", "b"], max_memory="3GB", compression="zstd")
    subset_file("train.txt", 0.5, "part.txt", "rest.txt", seed=1)
    print(train_file(SVC(), "train.txt", "svc.model"), cross_validate_file(LinearSVC(), "train.txt", n_folds=3))
    print(predict_file("test.txt", "svc.model", "predictions.txt", scores=True))
    print(grid_file(SVC(), "train.txt", grid={"C": [1, 10]}, overwrite=True))
    print(compress_file("svc.model", "small.model", n_vectors=10, rows="train.txt", refit="vectors").compression)
    print(export_file("svc.model", "svc.onnx", to="onnx", dtype="float32").n_bytes)
    print(report_file("svc.model", "test.txt", "report.html", title="a report"))
    print(easy_files("train.txt", Path("test.txt"), n_jobs=-1))


def watch() -> None:
    assert_type(certificates.relative_gap(2.0, 1.0), float)
    assert_type(certificates.Certificate(2.0, 1.0).gap, float)
    assert_type(widemargin.__version__, str)
    with show_progress():
        try:
            read_svmlight("train.txt")
        except FormatError as error:
            assert_type(error.line, int | None)
        except ConvergenceWarning:
            pass
