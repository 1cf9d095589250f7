"""The solvers of kernel problems, by name."""

from widemargin.solvers.decomposition.svmlight import svmlight
from widemargin.solvers.decomposition.smo import smo

KERNEL_SOLVERS = {"auto": svmlight, "svmlight": svmlight, "smo": smo}
