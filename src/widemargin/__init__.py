"""Support vector machines at the speed of memory, each model with a proof of how good it is."""

from widemargin.data.rangefile import read_ranges, write_ranges
from widemargin.data.scaling import FeatureRanges, learn_ranges
from widemargin.data.textblocks import SvmlightBlocks, write_svmlight_blocks
from widemargin.data.textfile import read_svmlight
from widemargin.data.textwriter import write_svmlight
from widemargin.errors import ConvergenceWarning, FormatError
from widemargin.models.kernel_classification import SVC, NuSVC
from widemargin.models.kernel_regression import SVR, NuSVR
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.models.linearcv import LinearSVCCV, LinearSVRCV
from widemargin.models.measures import MeasureSVC
from widemargin.models.modelfile import load_model, save_model
from widemargin.models.oneclass import OneClassSVM
from widemargin.models.path import CPath, c_path
from widemargin.models.ranking import OrdinalSVC, RankSVM, ROCAreaSVC
from widemargin.progress import show_progress
from widemargin.tools.gridfile import read_grid
from widemargin.tools.gridplots import plot_grid
from widemargin.tools.gridresult import GridResult
from widemargin.tools.gridsearch import grid_search
from widemargin.tools.plots import plot_convergence

__version__ = "0.1.0"

__all__ = [
    "SVC",
    "SVR",
    "CPath",
    "ConvergenceWarning",
    "FeatureRanges",
    "FormatError",
    "GridResult",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "LinearSVRCV",
    "MeasureSVC",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OrdinalSVC",
    "ROCAreaSVC",
    "RankSVM",
    "SvmlightBlocks",
    "c_path",
    "grid_search",
    "learn_ranges",
    "load_model",
    "plot_convergence",
    "plot_grid",
    "read_grid",
    "read_ranges",
    "read_svmlight",
    "save_model",
    "show_progress",
    "write_ranges",
    "write_svmlight",
    "write_svmlight_blocks",
]
