"""Types of the parameters of estimators, for annotations; `fit` checks values by `_parameter_constraints`."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from widemargin._runtime.argument_types import FilePath, Rows
from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.problems.row_loss import RowLoss
from widemargin.solvers.contract import Progress

Callback: TypeAlias = Callable[[Progress], object]
Callbacks: TypeAlias = Callback | Sequence[Callback] | None
ClassWeight: TypeAlias = dict[Any, float] | Literal["balanced"] | None
RandomState: TypeAlias = int | np.random.RandomState | None

KernelChoice: TypeAlias = Literal["linear", "poly", "rbf", "sigmoid", "precomputed"] | Callable[[Any, Any], Any]
PlaneKernel: TypeAlias = Literal["linear", "poly", "rbf", "sigmoid"]
BasisPoints: TypeAlias = int | Literal["auto"] | Rows | None
BasisChoice: TypeAlias = Literal["auto", "uniform", "kmeans", "leverage", "greedy"]
Gamma: TypeAlias = Literal["scale", "auto"] | float
KernelStopping: TypeAlias = Literal["kkt", "gap"]

RowsOrBlocks: TypeAlias = Rows | RowBlocks
Scaling: TypeAlias = Literal["standard", "maxabs"] | None
MaxMemory: TypeAlias = float | str | None
Checkpoint: TypeAlias = FilePath | None

LinearStopping: TypeAlias = Literal["gap", "kkt", "violation"]
PlaneStopping: TypeAlias = Literal["gap", "violation"]
ClassificationLoss: TypeAlias = Literal["hinge", "squared_hinge", "log_loss"] | RowLoss
RegressionLoss: TypeAlias = Literal["epsilon_insensitive", "squared_epsilon_insensitive"] | RowLoss
Measure: TypeAlias = str | Callable[[Any, Any, int, int], Any]
