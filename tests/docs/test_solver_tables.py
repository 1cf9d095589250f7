"""The tables of solvers in the pages are those of the specs."""

import re
from pathlib import Path

import pytest

from widemargin.problems.elastic_net import ElasticNet
from widemargin.problems.formulations import DualQP, FixedSumQP, Intercept, KernelQP, RiskProblem
from widemargin.solvers.registry import SPECS, names_of

DOCS = Path(__file__).parents[2] / "docs"
SHAPES = {
    "`DualQP`": names_of(DualQP),
    "`DualQP` with `free_intercept`": names_of(DualQP, intercept=Intercept.FREE),
    "`FixedSumQP`": names_of(FixedSumQP),
    "`RiskProblem`": names_of(RiskProblem),
    "`KernelQP`": names_of(KernelQP),
    "`ElasticNet`": names_of(ElasticNet),
}


def cells_of(page):
    """Yield the cells of every line of a table."""
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]


@pytest.mark.parametrize("shape", SHAPES)
def test_solvers_by_formulation(shape):
    (cells,) = (cells for cells in cells_of("howto/add-a-solver.md") if cells[0] == shape)
    assert set(re.findall(r"`(\w+)`", cells[-1])) == set(SHAPES[shape]) - {"auto"}


def test_the_guide_lists_every_solver():
    listed = {found[1] for cells in cells_of("guide/solvers.md") if (found := re.match(r"\[`(\w+)`\]", cells[0]))}
    assert listed == {spec.name for spec in SPECS}
