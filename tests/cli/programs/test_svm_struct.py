"""svm_perf_learn, svm_rank_learn and their classify programs print and write what the originals did."""

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.cli.programs.originals import data_file, figures, recorded

from widemargin import RankSVM, load_model, read_svmlight, write_svmlight

LOSSES = (0, 1, 2, 3, 4, 5, 10)
OF_EXAMPLE1 = {  # |w| and xi of SVM-Perf on svmlight-example1, -c 1
    0: (0.27898, 1.00336), 1: (6.34678, 47.85632), 2: (6.70130, 42.96208), 3: (6.70736, 42.84944),
    4: (5.62877, 55.60787), 5: (6.84000, 42.89696), 10: (6.13738, 12.34702),
}  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
def test_objectives_are_those_of_svm_perf(loss, call, tmp_path):
    """Both intervals between dual and primal objective hold the optimum; the original's tolerance is 0.1."""
    theirs = figures(recorded(f"svm_perf_learn-l{loss}.out"))
    data = data_file("heart_scale", tmp_path)
    status, out, _ = call("as", "svm_perf_learn", "-c", "1", "-l", loss, "-e", "0.01", data, "model")
    ours = figures(out)
    assert status == 0
    assert ours["Dual objective value"] <= theirs["Primal objective value"] + 1e-5
    assert theirs["Dual objective value"] <= ours["Primal objective value"] + 1e-5
    assert ours["Primal objective value"] - ours["Dual objective value"] <= 0.01 + 1e-5
    if loss:  # the optimum of the zero/one loss is next to w = 0, where |w| says nothing
        assert ours["Norm of weight vector"] == pytest.approx(theirs["Norm of weight vector"], abs=0.15)
        assert ours["Value of slack variable (global)"] == pytest.approx(
            theirs["Value of slack variable (global)"], abs=0.5
        )
    assert "Training set properties: 14 features, 270 examples (120 pos / 150 neg)" in out


@pytest.mark.parametrize("loss", [1, 2, 10])
def test_norms_on_text_are_those_of_svm_perf(loss, call, tmp_path):
    length, slack = OF_EXAMPLE1[loss]
    data = data_file("svmlight-example1", tmp_path)
    _, out, _ = call("as", "svm_perf_learn", "-c", "1", "-l", loss, data, "model")
    assert figures(out)["Norm of weight vector"] == pytest.approx(length, rel=1e-2)
    primal = 0.5 * length**2 + slack
    assert figures(out)["Primal objective value"] == pytest.approx(primal, abs=0.12)


@pytest.mark.parametrize("loss", LOSSES)
def test_measures_of_the_originals_model_are_those_it_printed(loss, call, tmp_path):
    theirs = recorded(f"svm_perf_classify-l{loss}.out")
    (tmp_path / "theirs").write_text(recorded(f"svm_perf_learn-l{loss}.model"))
    status, out, _ = call("as", "svm_perf_classify", data_file("heart_scale", tmp_path), "theirs", "out")
    assert status == 0
    assert [line for line in out.splitlines() if "cpu-seconds" not in line] == theirs.splitlines()
    assert len(np.loadtxt(tmp_path / "out")) == 270


def test_the_model_of_svm_perf_has_its_scores(call, tmp_path):
    """SVM-Perf multiplies scores by one half in its constraints: F1's weights are twice those of MeasureSVC."""
    wanted = load_text(recorded("svm_perf_learn-l1.model"))
    call("as", "svm_perf_learn", "-c", "1", "-l", "1", "-e", "0.01", data_file("heart_scale", tmp_path), "model")
    model = load_model(tmp_path / "model")
    np.testing.assert_allclose(model.coef_.ravel(), wanted, atol=0.06)


def load_text(text):
    """Return the only vector of a model."""
    cells = text.splitlines()[11].split()[1:-1]
    w = np.zeros(13)
    for cell in cells:
        w[int(cell.split(":")[0]) - 1] = float(cell.split(":")[1])
    return w


def test_k_is_a_fraction_of_the_positive_rows(call, two, tmp_path):
    _, y, _ = read_svmlight(two)
    call("as", "svm_perf_learn", "-l", "4", "--p", "0.25", two, "model")
    assert load_model(tmp_path / "model").measure == f"precision@{int(0.25 * np.sum(y > 0))}"
    call("as", "svm_perf_learn", "-l", "4", two, "model")
    assert load_model(tmp_path / "model").measure == f"precision@{int(0.5 * np.sum(y > 0))}"


@pytest.fixture
def ranked(tmp_path, rng):
    """Three queries of different size, and one without pairs."""
    X, query = rng.standard_normal((40, 3)), np.repeat([1, 2, 3, 4], [4, 9, 22, 5])
    y = np.round(X @ [1.0, -1.0, 0.5] + 0.5 * rng.standard_normal(40))
    y[query == 4] = 1.0
    write_svmlight(tmp_path / "ranked", X, y, qid=query)
    return tmp_path / "ranked", X, y, query


def hinges(scores, y, query):
    """Return, for each query, the losses of its pairs."""
    found = []
    for q in np.unique(query):
        s, t = scores[query == q], y[query == q]
        higher = t[:, None] > t[None, :]
        found.append(np.maximum(0.0, 1.0 - (s[:, None] - s[None, :]))[higher])
    return found


@pytest.mark.parametrize("loss", [1, 2])
def test_the_objective_is_that_of_svm_rank(loss, call, ranked, tmp_path):
    path, X, y, query = ranked
    status, out, _ = call("as", "svm_rank_learn", "-c", "3", "-l", loss, "-e", "1e-6", path, "model")
    model = load_model(tmp_path / "model")
    assert (status, type(model)) == (0, RankSVM)
    losses = hinges(X @ model.coef_, y, query)
    of_queries = [one.sum() if loss == 1 else one.mean() if len(one) else 0.0 for one in losses]
    objective = 0.5 * model.coef_ @ model.coef_ + 3.0 * np.mean(of_queries)
    assert figures(out)["Primal objective value"] == pytest.approx(objective, rel=1e-5)
    assert "3 features, 4 rankings, 40 examples" in out


def test_svm_rank_on_its_own_example(call, tmp_path):
    """The weights of svm_learn -z p, whose C is that of a sum over pairs: 14 pairs in 3 queries, c = 3 * 0.01."""
    recorded("svm_learn-ranking.model")
    data = data_file("svmrank-example3.train", tmp_path)
    call("as", "svm_rank_learn", "-c", "0.03", "-e", "1e-7", data, "a")
    call("as", "svm_learn", "-z", "p", "-c", "0.01", "-e", "1e-7", data, "b")
    a, b = (load_model(tmp_path / name).coef_ for name in "ab")
    np.testing.assert_allclose(a, b, atol=1e-5)
    status, out, _ = call("as", "svm_rank_classify", data, "a", "out")
    assert status == 0
    assert "Zero/one-error on test set: " in out
    assert "3 total)" in out


def test_swapped_pairs_are_counted_with_ties(call, tmp_path):
    (tmp_path / "data").write_text(
        "2 qid:1 1:1\n1 qid:1 1:2\n0 qid:1 1:0\n1 qid:2 1:1\n0 qid:2 1:1\n1 qid:3 1:2\n0 qid:3 1:1\n"
    )
    call("as", "svm_rank_learn", "-c", "1", "data", "model")
    text = (tmp_path / "model").read_text().splitlines()
    (tmp_path / "plain").write_text(
        "\n".join([*text[:6], "empty# kernel parameter -u ", *text[7:11], "1 1:1 #"]) + "\n"
    )
    _, out, _ = call("as", "svm_rank_classify", "data", "plain", "out")
    assert "Total Num Swappedpairs  :      2" in out
    assert "Average loss on test set: 0.4444" in out
    assert "Zero/one-error on test set: 66.67% (1 correct, 2 incorrect, 3 total)" in out


@pytest.fixture
def noisy(tmp_path, rng):
    """Two features and two classes that overlap."""
    X = np.round(rng.standard_normal((30, 2)), 3)
    y = np.where(X[:, 0] - X[:, 1] + 0.8 * rng.standard_normal(30) > 0.3, 1, -1)
    write_svmlight(tmp_path / "noisy", X, y)
    return tmp_path / "noisy", X, y


def one_minus_f1(fn, fp, n_positive):
    return (fn + fp) / (2.0 * n_positive - fn + fp)


def error_rate(fn, fp, n_positive):
    return (fn + fp) / 30.0


def slack_of_perf(scores, y, loss, rescaled):
    """Return SVM-Perf's slack of scores: the largest of all counts, losses in percent."""
    positive, negative = np.sort(scores[y > 0]), -np.sort(-scores[y < 0])
    slack = 0.0
    for fn in range(len(positive) + 1):
        for fp in range(len(negative) + 1):
            sums = 100.0 / len(y) * (negative[:fp].sum() - positive[:fn].sum())
            percent = 100.0 * loss(fn, fp, len(positive))
            slack = max(slack, percent * (1.0 + sums) if rescaled else percent + sums)
    return slack


@pytest.mark.parametrize(("number", "loss"), [(1, one_minus_f1), (2, error_rate)])
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("rescaling", [1, 2])
def test_slacks_squared_and_rescaled(number, loss, power, rescaling, call, noisy, tmp_path):
    """The printed objective is that of the model, and no weights near by or of another optimiser are better."""
    path, X, y = noisy
    C, options = 0.02, ["-l", number, "-p", power, "-o", rescaling, "-e", "0.001"]
    status, out, _ = call("as", "svm_perf_learn", "-c", C, *options, path, "model")
    assert status == 0
    model = load_model(tmp_path / "model")
    found = np.append(model.coef_.ravel(), model.intercept_)

    def objective(w):
        slack = slack_of_perf(X @ w[:2] + w[2], y, loss, rescaled=rescaling == 1)
        return 0.5 * w @ w + C * slack**power

    printed = figures(out)
    assert printed["Primal objective value"] == pytest.approx(objective(found), rel=1e-4)
    assert printed["Dual objective value"] >= (1.0 - 2e-5) * printed["Primal objective value"] - 1e-5
    others = [minimize(objective, start, method="Nelder-Mead").fun for start in (found, np.zeros(3), [1.0, -1.0, 0.0])]
    assert min(others) >= printed["Dual objective value"] - 2e-5
    slack = slack_of_perf(X @ found[:2] + found[2], y, loss, rescaled=rescaling == 1)
    assert printed["Value of slack variable (global)"] == pytest.approx(slack, rel=1e-3)


def test_a_slack_that_is_zero_has_a_square_too(call, tmp_path):
    (tmp_path / "easy").write_text("1 1:100\n1 1:90\n-1 1:-100\n-1 1:-95\n")
    status, out, _ = call("as", "svm_perf_learn", "-c", "1000", "-p", "2", "-l", "1", "-e", "0.01", "easy", "model")
    assert status == 0
    printed = figures(out)
    assert printed["Primal objective value"] - printed["Dual objective value"] <= 1e-3


@pytest.mark.parametrize("kernel", [["-t", "2", "-g", "0.5"], ["-t", "1", "-d", "2", "-s", "0.5", "-r", "1"]])
@pytest.mark.parametrize("loss", [0, 1, 2, 3, 4, 5, 10])
def test_kernels_of_all_rows_are_exact(loss, kernel, call, noisy, tmp_path):
    """A kernel of degree 2 is a linear machine with products of features, so that both objectives agree."""
    path, X, y = noisy
    status, out, _ = call("as", "svm_perf_learn", "-c", "0.1", "-l", loss, *kernel, "-e", "0.001", path, "model")
    assert status == 0
    printed = figures(out)
    assert printed["Primal objective value"] - printed["Dual objective value"] <= 1e-3
    assert "Compacting" not in out
    status, scored, _ = call("as", "svm_perf_classify", path, "model", "out")
    assert status == 0
    assert "ROCArea" in scored
    if kernel[1] == "1" and loss != 10:
        constant = np.ones((30, 1))
        Z = np.hstack([X, constant])
        first, second = np.triu_indices(3, 1)
        squares = np.hstack([0.5 * Z**2, 0.5 * np.sqrt(2.0) * Z[:, first] * Z[:, second], Z, constant])
        write_svmlight(tmp_path / "squares", squares, y)
        _, linear, _ = call("as", "svm_perf_learn", "-c", "0.1", "-l", loss, "--b", "0", "-e", "0.001", "squares", "b")
        assert figures(linear)["Primal objective value"] == pytest.approx(printed["Primal objective value"], abs=2e-3)


def test_so_many_basis_points(call, noisy, tmp_path):
    path, _, _ = noisy
    _, out, _ = call("as", "svm_perf_learn", "-c", "0.1", "-l", "1", "-t", "2", "-g", "0.5", "--k", "5", path, "model")
    _, exact, _ = call("as", "svm_perf_learn", "-c", "0.1", "-l", "1", "-t", "2", "-g", "0.5", path, "exact")
    assert load_model(tmp_path / "model").basis_.shape[0] == 5
    assert figures(out)["Primal objective value"] >= figures(exact)["Dual objective value"] - 1e-5


def test_svm_rank_with_a_kernel_is_svm_light_with_it(call, ranked, tmp_path):
    path, _, _, _ = ranked
    kernel = ["-t", "2", "-g", "0.3", "-e", "1e-5"]
    call("as", "svm_rank_learn", "-c", "0.4", *kernel, path, "a")
    call("as", "svm_learn", "-z", "p", "-c", "0.1", *kernel, path, "b")  # four queries, a sum over their pairs
    call("as", "svm_rank_classify", path, "a", "of_a")
    call("as", "svm_classify", path, "b", "of_b")
    of_a, of_b = np.loadtxt(tmp_path / "of_a"), np.loadtxt(tmp_path / "of_b")
    np.testing.assert_allclose(of_a - of_a[0], of_b - of_b[0], atol=0.02)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "1", "-l", "10"], "-o 1 is not available with -l 10"),
        (["--k", "10"], "--k is the size of a basis of a kernel"),
        (["--f", "points"], "points of a basis are chosen from the training rows"),
    ],
)
def test_what_svm_perf_learn_refuses(options, message, call, noisy):
    status, _, err = call("as", "svm_perf_learn", *options, noisy[0], "model")
    assert status == 1
    assert message in err
