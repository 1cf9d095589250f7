"""LIBSVM's probabilities follow from its decision values by our functions; each fit is the optimum it claims to be."""

import ctypes
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from libsvm import svm, svmutil
from scipy.optimize import approx_fprime, minimize
from scipy.stats import laplace
from threadpoolctl import threadpool_limits

from widemargin.models.calibration import (
    couple,
    density_marks,
    fit_sigmoid,
    laplace_interval,
    laplace_scale,
    marks_probability,
    sigmoid,
)

C_LIBRARY = ctypes.CDLL(None)  # LIBSVM shuffles by the C library's rand: once that is seeded, its folds are known


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """LIBSVM's threads sum in any order: the last bits of its decision values would differ from call to call."""
    with threadpool_limits(1, user_api="openmp"):
        yield


def decisions_by_libsvm(model, X):
    """Return one column per pair of classes, not by svm_predict, which has room for one pair only in nu-SVC."""
    values = (ctypes.c_double * math.comb(model.get_nr_class(), 2))()
    decision = np.empty((len(X), len(values)))
    for i, row in enumerate(X):
        svm.libsvm.svm_predict_values(model, svm.gen_svm_nodearray(row)[0], values)
        decision[i] = values
    return decision


def probabilities_by_libsvm(model, X):
    return np.array(svmutil.svm_predict([], X, model, "-q -b 1")[2])


# ---------------------------------------------------------------------------------------------------- two classes

OVERLAPS = {"overlapping": 0.5, "nearly apart": 2.0, "apart": 30.0, "no relation": 0.0, "reversed": -1.0}


def platt_loss(point, decision, sign, weight):
    """Return −Σ w (t log P + (1 − t) log(1 − P)) by its definition."""
    n_positive, n_negative = weight[sign > 0].sum(), weight[sign < 0].sum()
    target = np.where(sign > 0, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    z = point[0] * decision + point[1]
    return np.sum(weight * (target * np.logaddexp(0, z) + (1 - target) * np.logaddexp(0, -z)))


def scored(rng, distance, n_rows=150, positive=0.3):
    sign = np.where(rng.random(n_rows) < positive, 1.0, -1.0)
    return rng.normal(size=n_rows) + distance * sign, sign


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("positive", [0.3, 0.02])
@pytest.mark.parametrize("distance", OVERLAPS.values(), ids=OVERLAPS)
def test_fit_sigmoid_is_the_minimum_that_scipy_finds(distance, positive, weighted, rng):
    decision, sign = scored(rng, distance, positive=positive)
    weight = rng.uniform(0.0, 3.0, len(sign)) if weighted else np.ones(len(sign))
    fitted = np.array(fit_sigmoid(decision, sign, weight if weighted else None))
    best = minimize(platt_loss, np.zeros(2), args=(decision, sign, weight), method="BFGS", options={"gtol": 1e-4})
    np.testing.assert_allclose(fitted, best.x, rtol=1e-3, atol=1e-4)
    assert platt_loss(fitted, decision, sign, weight) <= best.fun + 1e-9


@given(
    rows=st.lists(st.tuples(st.floats(-5, 5), st.sampled_from([-1.0, 1.0]), st.floats(0.1, 3)), min_size=1, max_size=9)
)
def test_fit_sigmoid_leaves_no_slope(rows):
    decision, sign, weight = np.array(rows).T
    fitted = np.array(fit_sigmoid(decision, sign, weight))
    slope = [
        (platt_loss(fitted + move, decision, sign, weight) - platt_loss(fitted - move, decision, sign, weight)) / 2e-4
        for move in 1e-4 * np.eye(2)
    ]
    np.testing.assert_allclose(slope, 0.0, atol=2e-5)


def test_the_slope_test_sees_a_point_beside_the_optimum(rng):
    decision, sign = scored(rng, 0.5)
    beside = np.add(fit_sigmoid(decision, sign), [1e-3, 0.0])
    assert np.abs(approx_fprime(beside, platt_loss, 1e-7, decision, sign, np.ones(len(sign)))).max() > 1e-3


def test_weight_two_is_the_row_twice_and_weight_zero_is_no_row(rng):
    decision, sign = scored(rng, 0.5)
    count = rng.integers(0, 4, len(sign))
    repeated = fit_sigmoid(np.repeat(decision, count), np.repeat(sign, count))
    np.testing.assert_allclose(fit_sigmoid(decision, sign, count), repeated, rtol=1e-9)


def test_fit_sigmoid_follows_order_sign_and_scale(rng):
    decision, sign = scored(rng, 0.5)
    A, B = fit_sigmoid(decision, sign)
    assert A < 0.0
    order = rng.permutation(len(sign))
    np.testing.assert_allclose(fit_sigmoid(decision[order], sign[order]), (A, B), rtol=1e-9)
    np.testing.assert_allclose(fit_sigmoid(decision, -sign), (-A, -B), rtol=1e-9)
    np.testing.assert_allclose(fit_sigmoid(-decision, -sign), (A, -B), rtol=1e-9)
    for scale in (1e-2, 1e4, 1e99, 1e160, 1e300):
        scaled_A, scaled_B = fit_sigmoid(decision * scale, sign)
        np.testing.assert_allclose((scaled_A * scale, scaled_B), (A, B), rtol=1e-5)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_absent_class_has_the_probability_of_its_softened_target(sign, rng):
    decision = rng.normal(size=12)
    A, B = fit_sigmoid(decision, np.full(12, sign))
    assert A == 0.0
    np.testing.assert_allclose(sigmoid(decision, A, B), 13 / 14 if sign > 0 else 1 / 14, rtol=1e-14)


@pytest.mark.parametrize("constant", [0.0, 0.7, -1e-3, 1e4])
@pytest.mark.parametrize(("n_positive", "n_negative"), [(2, 1), (10, 30), (60_000, 140_000)])
def test_equal_decision_values_get_the_mean_target(constant, n_positive, n_negative):
    sign = np.repeat([1.0, -1.0], [n_positive, n_negative])
    A, B = fit_sigmoid(np.full(len(sign), constant), sign)
    mean = n_positive * (n_positive + 1) / (n_positive + 2) + n_negative / (n_negative + 2)
    np.testing.assert_allclose(sigmoid(constant, A, B), mean / len(sign), rtol=1e-5)
    # Nothing tells how the probability changes elsewhere: from the start, A and B move as little as they can.
    np.testing.assert_allclose(A, constant * (B - math.log((n_negative + 1) / (n_positive + 1))), rtol=1e-3, atol=1e-12)


def crossvalidated_by_libsvm(X, sign, options):
    """Return decision values of the five folds that LIBSVM makes for '-b 1' from the same state of rand."""
    n_rows, order = len(sign), np.arange(len(sign))
    for i in range(n_rows):
        j = i + C_LIBRARY.rand() % (n_rows - i)
        order[i], order[j] = order[j], order[i]
    decision = np.empty(n_rows)
    for fold in range(5):
        begin, end = fold * n_rows // 5, (fold + 1) * n_rows // 5
        train, held = np.delete(order, np.s_[begin:end]), order[begin:end]
        model = svmutil.svm_train(sign[train], X[train], options)
        decision[held] = decisions_by_libsvm(model, X[held])[:, 0] * model.get_labels()[0]
    return decision


@pytest.mark.parametrize("noise", [0.3, 2.0])
@pytest.mark.parametrize("n_rows", [40, 203])
def test_libsvm_fits_the_same_sigmoid_to_the_same_decision_values(n_rows, noise, rng):
    X = rng.normal(size=(n_rows, 3))
    sign = np.sort(np.where(X[:, 0] + noise * rng.normal(size=n_rows) > 0.4, 1.0, -1.0))[::-1]
    X[:, 0] += 0.5 * sign
    C_LIBRARY.srand(5)
    model = svmutil.svm_train(sign, X, "-g 0.3 -q -b 1")
    C_LIBRARY.srand(5)
    decision = crossvalidated_by_libsvm(X, sign, "-g 0.3 -q")
    np.testing.assert_allclose(fit_sigmoid(decision, sign), (model.probA[0], model.probB[0]), rtol=1e-10)


def test_sigmoid_is_its_formula_and_takes_one_pair_per_column(rng):
    decision, A, B = rng.normal(size=(5, 3)), rng.normal(size=3), rng.normal(size=3)
    np.testing.assert_allclose(sigmoid(decision, A, B), 1 / (1 + np.exp(A * decision + B)), rtol=1e-13)


def test_sigmoid_does_not_overflow():
    extreme = np.array([-1e308, -1e3, 0.0, 1e3, 1e308])
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_array_equal(sigmoid(extreme, -1e3, 0.0), [0.0, 0.0, 0.5, 1.0, 1.0])
    assert sigmoid(np.float32(700.0), 1.0, 0.0) == pytest.approx(math.exp(-700.0), rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], []), "decision must be an array of one dimension with a value or more"),
        (([[0.1]], [1]), r"decision must be an array of one dimension .* got shape \(1, 1\)"),
        (([0.1, np.nan], [1, -1]), "decision must be finite, got nan"),
        (([0.1, np.inf], [1, -1]), "decision must be finite, got inf"),
        (([0.1, 0.2], [1]), "equal lengths, got 2, 1 and 2"),
        (([0.1, 0.2], [1, -1], [1.0]), "equal lengths, got 2, 2 and 1"),
        (([0.1, 0.2], [1, 0]), r"sign must be \+1 or -1 for each row, got 0"),
        (([0.1, 0.2], [1, -1], [1.0, -2.0]), "weight must be >= 0 .* got minimum -2"),
        (([0.1, 0.2], [1, -1], [0.0, 0.0]), "weight must be >= 0 and positive for some row"),
    ],
)
def test_fit_sigmoid_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        fit_sigmoid(*arguments)


# --------------------------------------------------------------------------------------------------- many classes


def pairwise_of(above):
    """Return r with r_ji = 1 − r_ij from what stands above the diagonal."""
    above = np.triu(above, 1)
    return above + np.tril(1 - np.swapaxes(above, -1, -2), -1)


def quadratic_form(r):
    """Return Q of ½ p'Qp = ½ Σ_{i<j} (r_ji p_i − r_ij p_j)², one square at a time."""
    n_classes = len(r)
    Q = np.zeros((n_classes, n_classes))
    for i in range(n_classes):
        for j in range(i):
            row = np.zeros(n_classes)
            row[i], row[j] = r[j, i], -r[i, j]
            Q += np.outer(row, row)
    return Q


def exact_coupling(r):
    """Return p of the linear system Qp + b e = 0, Σp = 1."""
    n_classes = len(r)
    system = np.ones((n_classes + 1, n_classes + 1))
    system[:-1, :-1], system[-1, -1] = quadratic_form(r), 0.0
    return np.linalg.solve(system, np.eye(n_classes + 1)[-1])[:-1]


@pytest.mark.parametrize("spread", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("n_classes", [3, 4, 9, 20])
def test_coupled_probabilities_satisfy_the_conditions_of_the_optimum(n_classes, spread, rng):
    above = 1 / (1 + np.exp(spread * rng.normal(size=(60, n_classes, n_classes))))
    r = pairwise_of(np.clip(above, 1e-7, 1 - 1e-7))
    for tol in (0.005, 1e-10):
        p = couple(r, tol=tol)
        assert p.min() >= 0.0
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        for row, probabilities in zip(r, p, strict=True):
            Qp = quadratic_form(row) @ probabilities
            assert np.abs(Qp - probabilities @ Qp).max() < tol / n_classes + 1e-15
    np.testing.assert_allclose(p, [exact_coupling(row) for row in r], atol=1e-7)


@pytest.mark.parametrize("n_classes", [3, 5, 12])
def test_couple_returns_probabilities_that_all_pairs_agree_on(n_classes, rng):
    truth = rng.dirichlet(np.ones(n_classes), size=40)
    r = truth[:, :, None] / (truth[:, :, None] + truth[:, None, :])
    np.testing.assert_allclose(couple(r, tol=1e-12), truth, atol=1e-8)
    np.testing.assert_allclose(couple(r), truth, atol=0.05)


def test_a_settled_row_does_not_move_with_the_others(rng):
    easy, hard = np.full((4, 6, 6), 0.5), rng.random((30, 6, 6))
    r = pairwise_of(np.concatenate([easy, hard, easy]))
    alone = np.concatenate([couple(row[None]) for row in r])
    np.testing.assert_allclose(couple(r), alone, rtol=1e-12)
    assert np.abs(couple(r) - couple(r, tol=1e-12)).max() > 1e-4  # sweeping on would have been seen


def test_couple_names_no_class_first(rng):
    r, order = pairwise_of(rng.random((30, 5, 5))), rng.permutation(5)
    np.testing.assert_allclose(couple(r[:, order][:, :, order], tol=1e-12), couple(r, tol=1e-12)[:, order], atol=1e-9)


def test_ties_share_equally():
    np.testing.assert_allclose(couple(np.full((2, 7, 7), 0.5)), 1 / 7, rtol=1e-14)
    cycle = pairwise_of(np.array([[[0, 0.9, 0.1], [0, 0, 0.9], [0, 0, 0]]]))  # each beats the next
    np.testing.assert_allclose(couple(cycle), 1 / 3, rtol=1e-14)
    twins = pairwise_of(np.array([[[0, 0.5, 0.8], [0, 0, 0.8], [0, 0, 0]]]))
    p = couple(twins, tol=1e-13)[0]
    assert p[0] == pytest.approx(p[1], rel=1e-10)
    assert p[0] > p[2]


def test_two_classes_keep_their_pair_within_the_clip():
    given_to_first = np.array([0.0, 1e-9, 0.3, 0.5, 1.0])
    r = pairwise_of(np.stack([np.stack([np.zeros(5), given_to_first], 1), np.zeros((5, 2))], 1))
    expected = np.array([1e-7, 1e-7, 0.3, 0.5, 1 - 1e-7])
    np.testing.assert_array_equal(couple(r), np.stack([expected, 1 - expected], 1))


@given(above=st.lists(st.sampled_from([0.0, 1e-300, 1e-7, 0.5, 1 - 1e-16, 1.0]), min_size=15, max_size=15))
def test_certain_pairs_couple_to_probabilities(above):
    r = np.zeros((1, 6, 6))
    r[0][np.triu_indices(6, 1)] = above
    p = couple(pairwise_of(r))
    assert p.min() >= 0.0
    assert p.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("options", ["", "-s 1 -n 0.2", "-t 0", "-w0 5 -c 10"])
@pytest.mark.parametrize("n_classes", [2, 3, 4, 8])
def test_libsvm_estimates_the_same_class_probabilities(n_classes, options, rng):
    y = np.arange(40 * n_classes) % n_classes
    X = rng.normal(size=(len(y), 4)) + 1.5 * rng.normal(size=(n_classes, 4))[y]
    model = svmutil.svm_train(y, X, f"-g 0.3 -q -b 1 {options}")
    new = 2.0 * rng.normal(size=(300, 4))
    decision = decisions_by_libsvm(model, new)
    first, second = np.triu_indices(n_classes, 1)
    r = np.zeros((300, n_classes, n_classes))
    r[:, first, second] = sigmoid(decision, model.probA[: len(first)], model.probB[: len(first)])
    np.testing.assert_allclose(couple(pairwise_of(r)), probabilities_by_libsvm(model, new), rtol=0, atol=1e-11)


def test_no_rows_couple_to_no_rows():
    assert couple(np.empty((0, 4, 4))).shape == (0, 4)
    assert couple(np.empty((0, 2, 2))).shape == (0, 2)


@pytest.mark.parametrize(
    ("pairwise", "message"),
    [
        (np.zeros((3, 3)), r"shape \(n_rows, n_classes, n_classes\) .* got \(3, 3\)"),
        (np.zeros((1, 3, 2)), r"got \(1, 3, 2\)"),
        (np.ones((1, 1, 1)), "2 classes or more"),
        (pairwise_of(np.full((1, 3, 3), 1.2)), "probabilities, 0 to 1, got 1.2"),
        (pairwise_of(np.full((1, 3, 3), np.nan)), "probabilities, 0 to 1, got nan"),
        (np.triu(np.full((1, 3, 3), 0.5)), r"r_ij \+ r_ji = 1, got a sum that is off by 0.5: fill both halves"),
    ],
)
def test_couple_refuses(pairwise, message):
    with pytest.raises(ValueError, match=message):
        couple(pairwise)


# ----------------------------------------------------------------------------------------------------- regression


def test_laplace_scale_recovers_a_sampled_scale(rng):
    residuals = rng.laplace(scale=2.5, size=200_000)
    beyond = math.exp(-5 * math.sqrt(2))  # of a Laplace, this part lies outside 5 standard deviations
    expected = 2.5 * (1 - beyond * (1 + 5 * math.sqrt(2))) / (1 - beyond)
    assert laplace_scale(residuals) == pytest.approx(expected, rel=0.01)


def test_laplace_scale_drops_outliers_once_and_keeps_the_border():
    ones = np.tile([1.0, -1.0], 500)
    assert laplace_scale(np.append(ones, [1e3, -1e4])) == 1.0
    assert laplace_scale(np.append(ones, 7.0)) == pytest.approx(1007 / 1001)  # 7 < 5 √2 · 1007/1001
    assert laplace_scale(np.append(ones, 7.2)) == 1.0
    # Without 1e6 the mean is 1.99, and 500 would go too; but there is no second round.
    assert laplace_scale(np.append(ones, [1e6, 500.0])) == pytest.approx(1500 / 1001)
    assert laplace_scale(np.zeros(3)) == 0.0
    assert laplace_scale([-4.0]) == 4.0


@pytest.mark.parametrize("options", ["-s 3 -p 0.1", "-s 4 -n 0.3"])
def test_libsvm_finds_the_same_scale_for_the_same_residuals(options, rng):
    X = rng.normal(size=(121, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.laplace(scale=0.4, size=121)
    y[::30] += 40.0
    C_LIBRARY.srand(5)
    model = svmutil.svm_train(y, X, f"-g 0.3 -q -b 1 {options}")
    predicted = (ctypes.c_double * len(y))()
    C_LIBRARY.srand(5)
    problem, parameter = svm.svm_problem(y, X), svm.svm_parameter(f"-g 0.3 -q {options}")
    svm.libsvm.svm_cross_validation(problem, parameter, 5, predicted)
    residuals = y - np.array(predicted)
    assert laplace_scale(residuals) == pytest.approx(model.get_svr_probability(), rel=1e-12)
    assert laplace_scale(residuals) < 0.9 * np.abs(residuals).mean()  # outliers were there to be dropped


@pytest.mark.parametrize("level", [1e-9, 0.1, 0.5, 0.9, 1 - 1e-9])
def test_laplace_interval_holds_its_level(level):
    half_width = laplace_interval(1.7, level)
    np.testing.assert_allclose((-half_width, half_width), laplace.interval(level, scale=1.7), rtol=1e-6)
    assert laplace_interval(0.0, level) == 0.0


@pytest.mark.parametrize(
    ("scale", "level", "message"),
    [
        (-1.0, 0.9, "scale must be a finite number >= 0, got -1"),
        (math.nan, 0.9, "scale must be a finite number >= 0, got nan"),
        (math.inf, 0.9, "scale must be a finite number >= 0, got inf"),
        (1.0, 0.0, "level must lie between 0 and 1, got 0"),
        (1.0, 1.0, "level must lie between 0 and 1, got 1"),
        (1.0, 90, "level must lie between 0 and 1, got 90: 0.9 is"),
        (1.0, math.nan, "level must lie between 0 and 1, got nan"),
    ],
)
def test_laplace_interval_refuses(scale, level, message):
    with pytest.raises(ValueError, match=message):
        laplace_interval(scale, level)


def test_laplace_scale_refuses():
    with pytest.raises(ValueError, match="residuals must be an array of one dimension with a value or more"):
        laplace_scale([])
    with pytest.raises(ValueError, match="residuals must be finite, got nan among 1 such"):
        laplace_scale([1.0, math.nan])


# ------------------------------------------------------------------------------------------------------ one class


@pytest.mark.parametrize(("n_rows", "nu"), [(60, 0.3), (97, 0.5), (250, 0.1), (251, 0.85)])
def test_libsvm_sets_the_same_marks_and_predicts_the_same_probabilities(n_rows, nu, rng):
    X = rng.normal(size=(n_rows, 3))
    model = svmutil.svm_train(np.ones(n_rows), X, f"-s 2 -n {nu} -g 0.3 -q -b 1")
    marks = density_marks(decisions_by_libsvm(model, X)[:, 0])
    np.testing.assert_allclose(marks, model.prob_density_marks[:10], rtol=1e-12)
    new = 1.5 * rng.normal(size=(400, 3))
    inlier = marks_probability(decisions_by_libsvm(model, new)[:, 0], marks)
    np.testing.assert_allclose(np.stack([inlier, 1 - inlier], 1), probabilities_by_libsvm(model, new), rtol=1e-12)
    assert len(np.unique(inlier)) >= 10  # nearly every bin was met


def test_libsvm_puts_a_value_on_a_mark_into_the_same_bin(rng):
    X = rng.normal(size=(100, 3))
    model = svmutil.svm_train(np.ones(100), X, "-s 2 -n 0.3 -g 0.3 -q -b 1")
    decision = decisions_by_libsvm(model, X)[:, 0]
    marks = np.append(np.sort(decision)[5:95:10], decision.max() + 1.0)
    for i in range(10):
        model.prob_density_marks[i] = marks[i]
    np.testing.assert_array_equal(marks_probability(decision, marks), probabilities_by_libsvm(model, X)[:, 0])


def test_marks_of_a_small_set_are_the_midpoints_worked_out_on_paper():
    decision = [3.0, -5.0, 1.0, -1.0, 5.0, -3.0, 4.0, -2.0, 2.0, -4.0]
    np.testing.assert_allclose(density_marks(decision), [-4.5, -3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 4.5])


def test_zero_counts_as_inside():
    assert density_marks([-1.0] * 5 + [0.0] * 5).tolist() == [-1.0] * 4 + [-0.5] + [0.0] * 5
    with pytest.raises(ValueError, match="got 4 and 6: train on more rows, raise nu"):
        density_marks([-1.0] * 4 + [0.0] * 6)


@pytest.mark.parametrize(("n_rows", "nu"), [(40, 0.05), (30, 0.95), (9, 0.5)])
def test_marks_are_refused_where_libsvm_gives_up(n_rows, nu, rng, capfd):
    X = rng.normal(size=(n_rows, 2))
    model = svmutil.svm_train(np.ones(n_rows), X, f"-s 2 -n {nu} -g 0.1 -e 1e-6 -q -b 1")
    assert not model.prob_density_marks
    assert "too few" in capfd.readouterr().err
    with pytest.raises(ValueError, match="at least 5 values below zero and 5 others"):
        density_marks(decisions_by_libsvm(model, X)[:, 0])


@pytest.mark.parametrize("decision", [np.arange(-20.0, 0.0), np.arange(20.0)])
def test_marks_need_both_sides_of_zero(decision):
    with pytest.raises(ValueError, match="at least 5 values below zero and 5 others"):
        density_marks(decision)


def test_probabilities_step_at_each_mark_and_never_fall():
    marks = np.arange(10.0)
    steps = [0.001, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.999]
    np.testing.assert_array_equal(marks_probability(np.arange(-1.0, 10.0), marks), steps)
    np.testing.assert_array_equal(marks_probability(np.nextafter(marks, -np.inf), marks), steps[:-1])
    np.testing.assert_array_equal(marks_probability([[-np.inf], [np.inf]], marks), [[0.001], [0.999]])
    np.testing.assert_array_equal(marks_probability([0.9, 1.0], np.ones(10)), [0.001, 0.999])


@pytest.mark.parametrize(
    ("decision", "marks", "message"),
    [
        ([0.0], np.arange(9.0), "marks must be 10 numbers in non-decreasing order"),
        ([0.0], -np.arange(10.0), "marks must be 10 numbers in non-decreasing order"),
        ([0.0], np.full(10, np.nan), "marks must be finite, got nan among 10"),
        ([0.0, np.nan], np.arange(10.0), "decision must not be NaN"),
    ],
)
def test_marks_probability_refuses(decision, marks, message):
    with pytest.raises(ValueError, match=message):
        marks_probability(decision, marks)
