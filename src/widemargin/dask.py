"""The estimators of widemargin for rows on a Dask cluster.

`LinearSVC, LinearSVR, LinearSVCCV, RankSVM, OrdinalSVC, ROCAreaSVC, MeasureSVC`, and with a basis `SVC, SVR,
OneClassSVM`, have the parameters of the ordinary ones, and `client`. They take Dask arrays, Dask data frames, lists of
delayed blocks, and row-block files that the workers read themselves, `from_blocks("part-*.arrow")`. Needs the extra
`dask`: `pip install "widemargin[dask]"`.
"""

from widemargin.distributed.cutting_plane import MeasureSVC, OrdinalSVC, RankSVM, ROCAreaSVC
from widemargin.distributed.kernel import SVC, SVR, OneClassSVM
from widemargin.distributed.linear import LinearSVC, LinearSVR
from widemargin.distributed.linear_cv import LinearSVCCV
from widemargin.distributed.sources import BlockFiles, from_blocks
from widemargin.errors import ClusterError

__all__ = [
    "SVC", "SVR", "BlockFiles", "ClusterError", "LinearSVC", "LinearSVCCV", "LinearSVR", "MeasureSVC", "OneClassSVM",
    "OrdinalSVC", "ROCAreaSVC", "RankSVM", "from_blocks",
]  # fmt: skip
