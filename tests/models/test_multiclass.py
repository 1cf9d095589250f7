"""One against one: the table of coefficients and the vote, judged by loops over pairs."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from sklearn.utils.multiclass import _ovr_decision_function

from widemargin import SVC
from widemargin.models.multiclass import (
    labels_of,
    one_against_rest,
    pair_coefficients,
    pair_decisions,
    pairs_of,
    pairwise_probabilities,
    tabulate,
    winners,
)


@pytest.fixture
def machine(rng):
    """Four classes, rows of which have random coefficients in each pair, some of them zero."""
    label = rng.permutation(np.arange(40) % 4)
    pairs = pairs_of(np.arange(40)[rng.random(40) < 0.8], label, 4)
    coefs = [rng.standard_normal(len(pair.rows)) * (rng.random(len(pair.rows)) < 0.4) for pair in pairs]
    return label, pairs, coefs, rng.standard_normal(6)


def test_pairs_have_the_rows_of_the_first_class_then_of_the_second(machine):
    label, pairs, _, _ = machine
    assert [(pair.first, pair.second) for pair in pairs] == list(combinations(range(4), 2))
    for pair in pairs:
        np.testing.assert_array_equal(label[pair.rows], np.where(pair.sign > 0, pair.first, pair.second))
        assert pair.has_both


@pytest.mark.parametrize("n_classes", [3, 4, 11])
def test_votes_are_counted_pair_by_pair_and_ties_follow_the_order(n_classes, rng):
    pairs, order = list(combinations(range(n_classes), 2)), rng.permutation(n_classes)
    decisions = rng.integers(-1, 2, (200, len(pairs))).astype(np.float64)  # with zeros, which are for the second class
    decisions[0, 0], decisions[1] = np.nan, 0.0
    for row, found in zip(decisions, winners(decisions, n_classes, order), strict=True):
        votes = np.bincount([i if f > 0.0 else j for f, (i, j) in zip(row, pairs, strict=True)], minlength=n_classes)
        assert found == order[votes[order].argmax()]


def test_absent_classes_leave_a_constant_decision_for_the_other():
    label = np.array([0, 0, 2])
    by_classes = {(pair.first, pair.second): pair for pair in pairs_of(np.arange(3), label, 4)}
    assert by_classes[0, 2].has_both
    assert [by_classes[key].has_both for key in ((0, 1), (1, 2), (1, 3))] == [False] * 3
    assert [by_classes[key].constant for key in ((0, 1), (1, 2), (1, 3))] == [1.0, -1.0, 0.0]


def test_the_table_gives_each_pairs_decisions_back(machine, rng):
    label, pairs, coefs, intercepts = machine
    table = tabulate(pairs, coefs, intercepts, label, 4)
    assert (np.diff(label[table.support]) >= 0).all()
    np.testing.assert_array_equal(np.bincount(label[table.support], minlength=4), table.n_support)
    K = rng.standard_normal((7, 40))
    expected = np.column_stack(
        [K[:, pair.rows] @ coef + b for pair, coef, b in zip(pairs, coefs, intercepts, strict=True)]
    )
    ends = np.concatenate([[0], np.cumsum(table.n_support)])
    sums = np.stack([K[:, table.support[a:b]] @ table.dual_coef[:, a:b].T for a, b in pairwise(ends)], axis=1)
    np.testing.assert_allclose(pair_decisions(sums, table.intercept), expected, atol=1e-12)
    untangled = pair_coefficients(table.dual_coef, table.n_support)
    np.testing.assert_allclose(K[:, table.support] @ untangled.T + intercepts, expected, atol=1e-12)


def test_votes_go_to_the_first_of_equals_and_a_zero_to_the_second_class():
    decisions = np.array([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0], [0.0, 0.0, 0.0]])  # pairs 01, 02, 12
    assert winners(decisions, 3).tolist() == [0, 1, 2]


@pytest.mark.parametrize("n_classes", [3, 5])
def test_scores_of_classes_are_scikit_learns(n_classes, rng):
    decisions = rng.standard_normal((50, n_classes * (n_classes - 1) // 2))
    decisions[0] = 0.0
    expected = _ovr_decision_function(decisions < 0, -decisions, n_classes)
    np.testing.assert_allclose(one_against_rest(decisions, n_classes), expected, atol=1e-15)


def test_pairwise_probabilities_are_filled_on_both_sides():
    r = pairwise_probabilities(np.array([[0.1, 0.2, 0.7]]), 3)[0]
    np.testing.assert_allclose(r, [[0.0, 0.1, 0.2], [0.9, 0.0, 0.7], [0.8, 0.3, 0.0]])


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("break_ties", [False, True])
def test_labels_of_decisions_are_those_that_are_predicted(n_classes, break_ties, rng):
    X = rng.standard_normal((200, 3))
    y = np.array(["e", "d", "c", "b", "a"])[rng.integers(0, n_classes, 200)]
    model = SVC(break_ties=break_ties).fit(X, y)
    predicted = model.predict(X)
    decisions = model.set_params(decision_function_shape="ovo").decision_function(X).reshape(200, -1)
    np.testing.assert_array_equal(labels_of(model, -decisions if n_classes == 2 else decisions), predicted)
