"""Options that the programs of Joachims share: kernels, and what steers their solvers."""

from widemargin.cli.programs.table import Option
from widemargin.cli.programs.values import non_negative, number, one_of, positive, whole

KERNELS = ("linear", "poly", "rbf", "sigmoid")
_OWN_KERNEL = (
    "a kernel of your own is compiled into the original; here it is a function in Python, kernel=function of SVC"
)

KERNEL_OPTIONS = (
    Option("-t", "0", "kernel: 0 linear, 1 (s a·b + r)^d, 2 exp(-g |a-b|²), 3 tanh(s a·b + r), 4 the user's",
           "`kernel` linear, poly, rbf, sigmoid", one_of("0", "1", "2", "3", "4"), refused={"4": _OWN_KERNEL}),
    Option("-d", "3", "degree of kernel 1", "`degree`", whole(0)),
    Option("-g", "1", "g of kernel 2", "`gamma`", non_negative),
    Option("-s", "1", "s of kernels 1 and 3", "`gamma`", non_negative),
    Option("-r", "1", "r of kernels 1 and 3", "`coef0`", number),
    Option("-u", "", "text for kernel 4", read=str, default_words="empty", refused={"*": _OWN_KERNEL}),
)  # fmt: skip

SOLVER_OPTIONS = (
    Option("-m", "40", "megabytes of kernel values that are kept", "`cache_size`", positive),
    Option("-h", "100", "iterations after which a variable at its bound is left out", read=whole(1),
           noted="the solver decides by itself, and checks all variables in the end"),
    Option("-#", "100000", "iterations without progress after which it stops", read=whole(1),
           noted="the solver stops by its certificate"),
)  # fmt: skip


def kernel_of(arguments):
    """Return the name of the kernel and its numbers, as SVC calls them."""
    name = KERNELS[arguments["-t"]]
    numbers = {
        "linear": {},
        "poly": {"degree": arguments["-d"], "gamma": arguments["-s"], "coef0": arguments["-r"]},
        "rbf": {"gamma": arguments["-g"]},
        "sigmoid": {"gamma": arguments["-s"], "coef0": arguments["-r"]},
    }
    return name, numbers[name]
