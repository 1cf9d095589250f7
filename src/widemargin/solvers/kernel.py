"""The solvers of kernel problems, by name."""

from widemargin.solvers.decomposition import svmlight
from widemargin.solvers.smo import smo

KERNEL_SOLVERS = {"auto": svmlight, "svmlight": svmlight, "smo": smo}
