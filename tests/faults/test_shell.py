"""Faults at the shell: whatever files and words a command is given, it ends with a status and one line, never more.

All command lines of a test run in one process that forks for each (`shell_driver.py`), with a limit of memory and time.
"""

import json
import os
import random
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from widemargin import write_svmlight

DRIVER = Path(__file__).with_name("shell_driver.py")
pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
PREFIX = "widemargin: error: "
HUGE = "1 1:1e300\n-1 1:-1e300\n1 1:2e300 2:1\n-1 2:-1e299\n"
SOUND = ["two", "slope", "ranked", "kernel"]
BROKEN = {  # by what is wrong; None is written apart
    "empty": b"",
    "blank": b"\n\n   \n# nothing\n",
    "binary": random.Random(0).randbytes(3000),
    "zeros": bytes(1000),
    "notext": "Grüße aus Köln\n".encode(),
    "words": b"spam ham eggs\n",
    "csv": b"a,b,c\n1,2,3\n",
    "nolabels": b"1:2 2:3\n",
    "nan": b"1 1:nan\n-1 1:1\n",
    "inf": b"1 1:1e999\n-1 1:1\n",
    "falling": b"1 2:1 1:1\n-1 1:1\n",
    "negative": b"1 -1:1\n-1 1:1\n",
    "toowide": b"1 2147483648:1\n-1 1:1\n",
    "endless": b"1 " + b"9" * 100_000 + b":1\n",
    "halfqid": b"1 qid:1 1:1\n-1 1:2\n",
    "gz": b"\x1f\x8b\x08\x00 not really",
    "xz": b"\xfd7zXZ\x00 not really",
    "utf16": "1 1:2\n".encode("utf-16"),
    "returns": b"1 1:2\r-1 1:3\r",
    "directory": None,
    "missing": None,
}
OF_EACH_KIND = ["empty", "binary", "csv", "nan", "gz", "directory", "missing"]
READERS = ["train -q {} m", "scale {}", "subset {} 1", "check --json {}"]
COMMANDS = [
    "train -q {} m", "train -q -t 2 {} m", "train -q -t 4 {} m", "train -q --task rank {} m", "train -v 2 {}",
    "predict {} two.model out", "predict two {} out", "predict {} rbf.model out", "grid -q --log2c 0,2,2 -v 2 {} m",
    "easy -q {}", "easy -q two {}", "scale {}", "scale -r ranges {}", "scale -r {} two", "subset {} 1",
    "report two.model {}", "report {} two", "report --grid {} two.model two", "check --json {}",
]  # fmt: skip
ODD = {  # in order, but hardly what a machine can be made of
    "onerow": "1 1:1\n",
    "oneclass": "1 1:1\n1 1:2\n",
    "onlylabels": "1\n-1\n",
    "constant": "1 1:1\n-1 1:1\n1 1:1\n-1 1:1\n",
    "tiny": "1 1:1e-320\n-1 1:-1e-320\n1 1:2e-320\n-1 2:1e-310\n",
    "fractions": "0.5 1:1\n1.5 1:2\n2.5 1:3\n",
    "labels": "1e300 1:1\n-1e300 1:2\n1 1:3\n",
    "oneeach": "1 1:1\n2 1:2\n3 1:3\n4 1:4\n",
    "queries": "1 qid:1 1:1\n2 qid:2 1:2\n3 qid:3 1:3\n",
    "scattered": "1 qid:1 1:1\n2 qid:2 1:2\n3 qid:1 1:3\n",
}
MACHINES = [
    "", "--task regression", "-b 1", "-s 1 -t 0", "-s 2", "-s 3", "-s 4", "--task rank", "--task ordinal",
    "--task rocarea", "--task measure", "--multi-class crammer_singer", "--no-penalize-intercept", "--solver newton",
    "--format libsvm -t 2", "--float32 --loss hinge",
]  # fmt: skip
MISUSED = [
    "", "nonsense", "train", "train two m extra", "train -c", "train -c 0 two", "train -c inf two", "train -c nan two",
    "train -c x two", "train -s 1e9 two", "train -s 99999999999999999999 two", "train -t 9 two", "train -e -1 two",
    "train --max-iter 0 two", "train -j 0 two", "train -v 1 two", "train -w1 two", "train -w1", "train -wx 2 two",
    "train --class-weight 1:0 two", "train --loss huber two", "train --measure precision@0 --task measure two",
    "train --seed -1 two", "train --n-features 0 two", "train --max-seconds 0 two", "train --progress maybe two",
    "train -q --progress yes two", "train - ", "train two two", "train -B 0 two", "train --kernel rbf -t 0 two",
    "train -d 1.5 two", "train -g -1 two", "train -n 2 two", "train -b 2 two", "train -C two",
    "predict two", "predict - - out", "predict -b 1 two two.model out", "predict two two.model two", "easy", "easy -",
    "easy --kernel poly two", "grid --log2c 1 two", "grid --log2c 1,2,0 two", "grid --log2c 1,1e9,1 two",
    "grid --values C two", "grid --values C= two", "grid --values C=a two", "grid --values nonsense=1 two",
    "grid --results - two", "grid --plot g.gif two", "grid --task oneclass two", "grid -b 1 two", "scale",
    "scale -l 1 -u 0 two", "scale -y 1 two", "scale --method variance -l 0 two", "scale -s r -r r two",
    "scale -o two two", "subset two", "subset two 0", "subset two x", "subset two -1", "subset two 1 a a",
    "subset --by-query two 1", "report two.model", "report - -", "report two two.model", "check", "check --limit x two",
    "demo extra", "train --\udcff two",
]  # fmt: skip
UNWRITABLE = ["nowhere/m", "directory", "full", "two/m"]  # full is a link to /dev/full, which no mistake may remove
WRITING = [
    "train -q two {}", "predict -q two two.model {}", "scale -q -o {} two", "scale -q -s {} -o out two",
    "subset -q two 5 {}", "report -q -o {} two.model two", "grid -q --log2c 0,2,2 --log2g 0,0,1 -v 2 two {}",
    "grid -q --log2c 0,2,2 --log2g 0,0,1 -v 2 --overwrite --results {} two m2",
]  # fmt: skip
PRINTING = [
    "train two -", "train two m3", "train --json two m3", "train -v 2 two", "predict two two.model -",
    "predict two two.model out", "scale two", "subset two 5", "check two", "check --json two", "--help", "--version",
    "report -o - two.model two", "report two.model two", "train --help",
    "grid --overwrite --log2c 0,2,2 --log2g 0,0,1 -v 2 two",
    "easy --overwrite --kernel linear -v 2 two",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of sound and broken files, and models."""
    folder, rng = tmp_path_factory.mktemp("shell"), np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    write_svmlight(folder / "two", X, np.where(X[:, 0] + 0.3 * rng.standard_normal(40) > 0, 1, -1))
    write_svmlight(folder / "slope", X, X @ [1.0, -2.0, 0.5])
    write_svmlight(folder / "ranked", X, rng.integers(0, 3, 40), qid=np.repeat(np.arange(8), 5))
    K = np.column_stack([np.arange(1, 41), X @ X.T])
    write_svmlight(folder / "kernel", K, np.tile([1, -1], 20), zero_based=True)
    for name, content in {
        **BROKEN,
        **{name: text.encode() for name, text in ODD.items()},
        "huge": HUGE.encode(),
    }.items():
        if content is not None:
            (folder / name).write_bytes(content)
    (folder / "directory").mkdir()
    (folder / "full").symlink_to("/dev/full")
    return folder


@pytest.fixture(scope="module")
def shell(folder):
    """Return a function that runs command lines, each a dict of words and streams, and returns what came of each."""
    first = ["train -q two two.model", "train -q -t 2 two rbf.model", "train -q --task rank ranked rank.model"]
    first += ["predict -q two two.model out", "scale -q -s ranges -o out two", "check -q two"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, str(DRIVER), *first], cwd=folder, **pipes) as driver:

        def shell(cases):
            cases = [{"words": case.split()} if isinstance(case, str) else case for case in cases]
            driver.stdin.write(json.dumps(cases) + "\n")
            driver.stdin.flush()
            return list(zip(cases, json.loads(driver.stdout.readline()), strict=True))

        yield shell
        driver.stdin.close()


def complaint(case, found, *, statuses, silent=False):
    """Return what is wrong with the outcome of a command line, or None."""
    lines = [
        line for line in found["err"].splitlines() if not line.startswith(("compiling (", "widemargin: warning: "))
    ]
    errors = [line for line in lines if not line.startswith("widemargin: note: ")]
    if found["signal"]:
        return f"killed by signal {found['signal']}"
    if "Traceback" in found["err"] + found["out"] or "a defect of widemargin" in found["err"]:
        return found["err"]
    if found["status"] not in statuses:
        return f"status {found['status']}, {errors}"
    if found["status"] and not silent and not (len(errors) == 1 and errors[0].startswith(PREFIX)):
        return f"not one line: {errors}"
    return None


def complaints(outcomes, **expected):
    found = {" ".join(case["words"]): complaint(case, found, **expected) for case, found in outcomes}
    return {words: why for words, why in found.items() if why is not None}


def test_a_broken_file_is_one_line_and_status_1(shell):
    others = [name for name in BROKEN if name not in OF_EACH_KIND]
    pairs = [*product(COMMANDS, OF_EACH_KIND), *product(READERS, others)]
    lines = [command.format(name) for command, name in pairs]
    checks = [line for line in lines if line.startswith("check")]
    defects = [line for line in lines if line.startswith("easy")]  # a line for each defect, then the error
    rest = [line for line in lines if line not in {*checks, *defects}]
    assert complaints(shell(rest), statuses={1, 2}) == {}
    assert complaints(shell([*checks, *defects]), statuses={1, 2}, silent=True) == {}


def test_data_that_are_odd_are_trained_on_or_refused_in_one_line(shell):
    lines = [f"train -q {machine} {name} m" for machine, name in product(MACHINES, ODD)]
    lines += [f"train -q -v 2 {machine} {name}" for machine, name in product(["", "-t 2", "--task rank"], ODD)]
    outcomes = shell(lines)
    assert complaints(outcomes, statuses={0, 1, 2}) == {}
    assert all("nan" not in found["out"].lower() for case, found in outcomes if "-v" not in case["words"])


def test_numbers_near_the_largest_are_trained_on_or_refused_in_one_line(shell):
    assert complaints(shell([f"train -q {machine} huge m" for machine in MACHINES]), statuses={0, 1, 2}) == {}


def test_words_that_make_no_sense_are_one_line_and_status_2(shell):
    cases = [{"words": line.encode("utf-8", "surrogateescape").decode("latin-1").split()} for line in MISUSED]
    outcomes = shell(cases)
    assert complaints(outcomes[1:], statuses={1, 2}) == {}
    assert outcomes[0][1]["status"] == 2  # no words at all: the help


def test_a_target_that_cannot_be_written_is_one_line_and_status_1(shell):
    lines = [command.format(target) for command, target in product(WRITING, UNWRITABLE)]
    assert complaints(shell(lines), statuses={1, 2}) == {}
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize("way", ["closed", "full"])
def test_a_standard_output_that_takes_nothing_is_one_line_and_status_1(shell, way):
    outcomes = shell([{"words": line.split(), "stdout": way} for line in PRINTING])
    assert complaints(outcomes, statuses={1}) == {}
    says = {"closed": "standard output: is closed; open it, or name a file", "full": "standard output: no space left"}
    assert all(says[way] in found["err"] for _, found in outcomes)


def test_a_standard_error_that_takes_nothing_changes_no_status(shell):
    expected = {"train -q two m": 0, "train -q missing m": 1, "train -q -c 0 two m": 2}
    for way in ("closed", "full"):
        outcomes = shell([{"words": line.split(), "stderr": way} for line in expected])
        assert [found["status"] for _, found in outcomes] == list(expected.values())
        assert {(found["signal"], found["err"]) for _, found in outcomes} == {(0, "")}


def test_a_standard_input_that_is_closed_or_broken_is_one_line_and_status_1(shell):
    lines = ["train - m", "predict - two.model out", "predict two - out", "scale -", "subset - 1", "report - two -o o"]
    cases = [{"words": line.split(), "stdin": way} for line in lines for way in ("closed", "capture", "\xff\x00 bad")]
    assert complaints(shell(cases), statuses={1}) == {}


def test_names_may_hold_any_byte(shell, folder):
    name = b"na\xefve \xff"
    (folder / os.fsdecode(name)).write_bytes((folder / "two").read_bytes())
    word = name.decode("latin-1")
    cases = [["train", "-q", word, word + ".model"], ["predict", word, word + ".model", word + ".out"]]
    cases += [["check", word], ["scale", "-o", word + ".scale", word], ["subset", word, "5", word + ".part"]]
    cases += [["report", word + ".model", word], ["grid", "--kernel", "linear", "-v", "2", word], ["train", word]]
    assert complaints(shell([{"words": words} for words in cases]), statuses={0}) == {}
    missing = [["train", word + "x"], ["predict", word, word + "x", "out"], ["train", word, word + "/x"]]
    assert complaints(shell([{"words": words} for words in missing]), statuses={1}) == {}


@pytest.mark.skipif(os.geteuid() == 0, reason="everything may be read by root")
def test_files_that_may_not_be_read_or_written_are_one_line(shell, folder):
    (folder / "secret").write_bytes((folder / "two").read_bytes())
    (folder / "secret").chmod(0)
    lines = ["train -q secret m", "predict secret two.model out", "check secret", "scale secret", "subset secret 1"]
    assert complaints(shell(lines), statuses={1}) == {}


def test_predictions_that_are_lost_are_an_error_in_a_process_of_its_own(shell, folder):
    shell([])  # two.model is there
    command = f"{sys.executable} -m widemargin predict two two.model -"
    done = subprocess.run(["sh", "-c", f"{command} >&-"], cwd=folder, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, f"{PREFIX}standard output: is closed; open it, or name a file\n")
