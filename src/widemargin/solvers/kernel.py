"""The solvers of kernel problems, by name."""

from widemargin.solvers.decomposition.smo import smo
from widemargin.solvers.decomposition.svmlight import svmlight

KERNEL_SOLVERS = {"auto": svmlight, "svmlight": svmlight, "smo": smo}
