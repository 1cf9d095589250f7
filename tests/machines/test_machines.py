"""What depends on rounding holds on every machine: the same tests with other BLAS kernels and other compiled code.

A sum comes out with other last bits on another processor: OpenBLAS, inside the NumPy and SciPy wheels, has kernels of
its own for each, and LLVM uses the instructions it finds. The older ones run on every newer processor, on demand. Each
machine runs in a process of its own; nothing is compared from one machine to the next.
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import llvmlite.binding
import pytest

ROOT = Path(__file__).parents[2]

# The certificates, the invariances, the agreement of solvers with each other and with their peers.
FILES = [
    "tests/solvers/coordinate_descent/test_coordinate_descent.py",
    "tests/solvers/coordinate_descent/test_crammer_singer.py",
    "tests/solvers/cutting_planes/test_methods.py",
    "tests/solvers/newton/test_active_set.py",
    "tests/solvers/decomposition/test_kernel_solvers.py",
    "tests/solvers/newton/test_smoothed.py",
    "tests/solvers/cutting_planes/test_reduced_qp.py",
    "tests/certificates/test_campaign.py",
    "tests/problems/test_certificates.py",
    "tests/models/cutting_plane/test_cutting_planes.py",
    "tests/models/test_every_setting.py",
    "tests/models/test_linear.py",
    "tests/models/cutting_plane/test_ranking.py",
]
# Not what is about processes, threads, signals, plain Python, or what is independent of the machine.
OTHER_MATTERS = [
    *("plain_bodies", "uncompiled", "ctrl_c", "four_fits", "routed", "refused", "real_data", "shared_sets"),
    *("contract_is_kept", "was_ended", "never_ends"),
]
KEYWORDS = " and ".join(f"not {word}" for word in OTHER_MATTERS)
# All is compiled anew here: the solvers alone, in their fewest containers.
FILES_COMPILED_ANEW = [
    "tests/solvers/coordinate_descent/test_coordinate_descent.py",
    "tests/solvers/cutting_planes/test_methods.py",
    "tests/solvers/decomposition/test_kernel_solvers.py",
    "tests/solvers/newton/test_smoothed.py",
]
KEYWORDS_COMPILED_ANEW = (
    "TestInvariances or order_of_rows or weight_two or exact_qp_solver or finds_what or solvers_agree"
    " or (judge_confirms and not csr and not f32)"
)

# What OpenBLAS calls its kernel (Prescott's table is named after the first of its family), and what that needs.
BLAS_KERNELS = {
    "Haswell": ({"Haswell"}, {"avx2", "fma"}),
    "SkylakeX": ({"SkylakeX"}, {"avx512f", "avx512bw", "avx512dq", "avx512vl"}),
    "Nehalem": ({"Nehalem"}, {"sse4.2"}),
    "Prescott": ({"Prescott", "Katmai"}, {"sse3"}),
}

IS_NIGHTLY = os.environ.get("WIDEMARGIN_NIGHTLY", "") not in ("", "0")
EVERY_TIME = ["Prescott"]  # the one least like those of processors of today; nightly, all of them

# Say on the first line which machine this really is, then run the tests in the same process.
RUN = """
import json, sys
import numpy, pytest, scipy.linalg, threadpoolctl
from numba.core.registry import cpu_target
blas = {}
for library in threadpoolctl.threadpool_info():
    owner = "numpy" if "numpy" in library["filepath"] else "scipy" if "scipy" in library["filepath"] else "others"
    blas.setdefault(owner, []).append([library["internal_api"], library.get("architecture")])
_, processor, features = cpu_target.target_context.codegen().magic_tuple()
print(json.dumps({"blas": blas, "processor": processor, "features": features}), flush=True)
sys.exit(pytest.main(sys.argv[1:]))
"""


def run_tests(files, keywords, **environment):
    """Run the tests in a process with other environment variables; return what it says of itself, and its result."""
    there = [file for file in files if (ROOT / file).exists()]
    options = ["-q", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", keywords]
    result = subprocess.run(
        [sys.executable, "-c", RUN, *options, *there],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "WIDEMARGIN_CERTIFICATES": "few"} | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    first, _, rest = result.stdout.partition("\n")
    assert first.startswith("{"), result.stdout + result.stderr
    return json.loads(first), result.returncode, rest[-20_000:] + result.stderr


@pytest.mark.parametrize("kernel", BLAS_KERNELS if IS_NIGHTLY else EVERY_TIME)
def test_what_depends_on_rounding_holds_with_the_blas_kernel_of(kernel):
    names, needed = BLAS_KERNELS[kernel]
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip(f"the kernel {kernel} is for x86-64 processors, this is {platform.machine()}")
    features = llvmlite.binding.get_host_cpu_features()
    if missing := sorted(feature for feature in needed if not features.get(feature)):
        pytest.skip(f"the kernel {kernel} needs a processor with {', '.join(missing)}")
    machine, returncode, output = run_tests(FILES, KEYWORDS, OPENBLAS_CORETYPE=kernel)
    for owner in ("numpy", "scipy"):
        libraries = machine["blas"].get(owner, [])
        if not any(api == "openblas" for api, _ in libraries):
            pytest.skip(f"{owner} does not come with OpenBLAS here: {libraries}")
        assert {name for api, name in libraries if api == "openblas"} <= names
    assert returncode == 0, output


def test_what_depends_on_rounding_holds_with_code_compiled_for_any_processor():
    machine, returncode, output = run_tests(FILES_COMPILED_ANEW, KEYWORDS_COMPILED_ANEW, NUMBA_CPU_NAME="generic")
    assert (machine["processor"], machine["features"]) == ("generic", "")
    assert returncode == 0, output
