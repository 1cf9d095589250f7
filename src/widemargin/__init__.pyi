"""The public names, and where they live; `__init__.py` imports each when it is first used."""

from ._runtime.progress import show_progress
from .data.blocks.reader import open_blocks
from .data.blocks.row_blocks import RowBlocks
from .data.blocks.writer import WrittenBlocks, write_blocks
from .data.scaling import FeatureRanges, learn_ranges
from .data.svmlight.blocks import SvmlightBlocks, write_svmlight_blocks
from .data.svmlight.range_file import read_ranges, write_ranges
from .data.svmlight.reader import read_svmlight
from .data.svmlight.writer import write_svmlight
from .errors import ConvergenceWarning, FormatError
from .evaluation.leave_one_out import LeaveOneOutEstimates, leave_one_out_estimates
from .models.cutting_plane.measure import MeasureSVC
from .models.cutting_plane.ordinal import OrdinalSVC
from .models.cutting_plane.ranking import RankSVM
from .models.cutting_plane.roc_area import ROCAreaSVC
from .models.kernel.compression import compress
from .models.kernel.compression_report import Compression
from .models.kernel.nu_svc import NuSVC
from .models.kernel.nu_svr import NuSVR
from .models.kernel.one_class import OneClassSVM
from .models.kernel.svc import SVC
from .models.kernel.svr import SVR
from .models.kernel.transductive import TransductiveSVC
from .models.linear import LinearSVC, LinearSVR
from .models.linear_one_class import LinearOneClassSVM
from .persistence.alpha_file import read_alphas, write_alphas
from .persistence.export.c_scorer import export_c
from .persistence.export.numpy_scorer import export_numpy
from .persistence.export.onnx_file import export_onnx
from .persistence.export.skl2onnx_converters import register_onnx_converters
from .persistence.model_file import load_model, save_model
from .plots.convergence import plot_convergence
from .plots.grid import plot_grid
from .problems import certificates
from .problems.row_loss import RowLoss
from .selection.c_path import c_path
from .selection.grid_result import GridResult
from .selection.grid_search import grid_search
from .selection.linear_cv import LinearSVCCV, LinearSVRCV
from .selection.path_result import CPath
from .selection.results_file import read_grid
from .solvers.contract import Progress
from .workflows.check import check_file
from .workflows.compress import compress_file
from .workflows.convert import convert_file
from .workflows.demo.run import run_demo
from .workflows.easy import easy_files
from .workflows.export import export_file
from .workflows.grid import grid_file
from .workflows.predict import predict_file
from .workflows.report import report_file
from .workflows.scale import scale_file
from .workflows.subset import subset_file
from .workflows.train import cross_validate_file, train_file
from .workflows.warmup import warmup

__version__: str

__all__ = [
    "SVC",
    "SVR",
    "CPath",
    "Compression",
    "ConvergenceWarning",
    "FeatureRanges",
    "FormatError",
    "GridResult",
    "LeaveOneOutEstimates",
    "LinearOneClassSVM",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "LinearSVRCV",
    "MeasureSVC",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OrdinalSVC",
    "Progress",
    "ROCAreaSVC",
    "RankSVM",
    "RowBlocks",
    "RowLoss",
    "SvmlightBlocks",
    "TransductiveSVC",
    "WrittenBlocks",
    "c_path",
    "certificates",
    "check_file",
    "compress",
    "compress_file",
    "convert_file",
    "cross_validate_file",
    "easy_files",
    "export_c",
    "export_file",
    "export_numpy",
    "export_onnx",
    "grid_file",
    "grid_search",
    "learn_ranges",
    "leave_one_out_estimates",
    "load_model",
    "open_blocks",
    "plot_convergence",
    "plot_grid",
    "predict_file",
    "read_alphas",
    "read_grid",
    "read_ranges",
    "read_svmlight",
    "register_onnx_converters",
    "report_file",
    "run_demo",
    "save_model",
    "scale_file",
    "show_progress",
    "subset_file",
    "train_file",
    "warmup",
    "write_alphas",
    "write_blocks",
    "write_ranges",
    "write_svmlight",
    "write_svmlight_blocks",
]
