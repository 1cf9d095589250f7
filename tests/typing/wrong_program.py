"""Wrong calls: the type checker refuses every line that ends with `# wrong`, and no other. It is read, not run."""

import numpy as np

from widemargin import (
    SVC,
    SVR,
    GridResult,
    LinearSVC,
    LinearSVRCV,
    MeasureSVC,
    NuSVC,
    OneClassSVM,
    Progress,
    RankSVM,
    SvmlightBlocks,
    c_path,
    certificates,
    grid_search,
    learn_ranges,
    load_model,
    plot_grid,
    read_svmlight,
    save_model,
    write_svmlight,
)

X, y = np.eye(4), np.array([0, 1, 0, 1])


def prints(progress: Progress) -> None:
    print(progress.gap)
    print(progress.duality_gap)  # wrong


def wants_more(progress: Progress, more: int) -> None:
    print(progress, more)


SVC(1.0)  # wrong
SVC(C="large")  # wrong
SVC(kernel="gauss")  # wrong
SVC(gamma="big")  # wrong
SVC(penalty="l2")  # wrong
SVC(callbacks=prints)
SVC(callbacks=wants_more)  # wrong
SVC(class_weight="equal")  # wrong
NuSVC(stopping="violation")  # wrong
SVR().predict(X, y)  # wrong
LinearSVC(loss="log")  # wrong
LinearSVC(multi_class="ovo")  # wrong
LinearSVC(max_iter=1.5)  # wrong
LinearSVRCV(cv=3.5)  # wrong
OneClassSVM(nu=None)  # wrong
RankSVM().fit(X, y, sample_weight=y)  # wrong
MeasureSVC(measure=3)  # wrong
grid_search(SVC(), X, y, cv=5)
grid_search(SVC(), X, y, {"C": 1.0})  # wrong
grid_search(SVC(), X, y, {"C": [1.0]}, 5)  # wrong
grid_search(SVC(), X, y, callback=prints)  # wrong
c_path(X, y, [1.0])  # wrong
c_path(None, X, y, [1.0], 5)  # wrong
learn_ranges(X, method="log")  # wrong
learn_ranges(X, "standard")  # wrong
read_svmlight(3.5)  # wrong
read_svmlight("train.txt", zero_based="yes")  # wrong
write_svmlight("train.txt", X)  # wrong
SvmlightBlocks("train.txt", block_bytes="1 MB")  # wrong
save_model(SVC(), "model", format="pickle")  # wrong
load_model("model", task="clustering")  # wrong
plot_grid("results")  # wrong
certificates.relative_gap("2", 1.0)  # wrong
certificates.prove(X, y)  # wrong
GridResult(("C",), (), X, "accuracy")  # wrong
