"""Each program has a table of all its options; the parser, the help and the pages of the documentation follow it."""

import re
from pathlib import Path

import pytest
from tests.cli.programs.originals import recorded

import widemargin
from widemargin.cli.messages import UsageError
from widemargin.cli.programs.registry import MODULES, program
from widemargin.cli.programs.table import ANY_VALUE, markdown

PAGES = Path(__file__).parents[3] / "docs" / "from"
PAGE_OF = {"SVM-light": "svmlight", "SVM-Perf": "svmlight", "SVM-rank": "svmlight", "LIBSVM": "libsvm",
           "LIBLINEAR": "liblinear", "OCAS": "ocas"}  # fmt: skip
LETTERS = {  # of programs whose options are not in OPTIONS.md, from their manual pages
    "svm-train": "-s -t -d -g -r -c -n -p -m -e -h -b -wi -v -q",
    "svm-predict": "-b -q",
    "svm-scale": "-l -u -y -s -r",
    "train": "-s -c -p -n -e -B -R -wi -v -C -q",
    "predict": "-b -q",
    "svm_classify": "-v -f",
    "svm_perf_classify": "-v --d",
    "svm_rank_classify": "-v",
    "linclassif": "-e -o -t -v",
    "msvmocas": "-c -n -m -s -a -r -q -t -v",
}
SECTIONS = {
    "svm_learn": "svm_learn 6.20",
    "svm_perf_learn": "svm_perf_learn 3.00",
    "svmocas": "svmocas 0.97 / msvmocas",
}


def letters_of(name):
    return {option.letter for option in program(name).options}


@pytest.mark.parametrize("name", MODULES)
def test_options_are_named_once_with_their_meaning(name):
    options = program(name).options
    assert len({option.letter for option in options}) == len(options)
    assert program(name).name == name
    for option in options:
        assert option.meaning, option.letter
        assert option.here, option.letter
        assert option.becomes or option.noted or option.refused, option.letter


@pytest.mark.parametrize("name", LETTERS)
def test_letters_are_those_of_the_manual(name):
    assert letters_of(name) == set(LETTERS[name].split())


@pytest.mark.parametrize("name", SECTIONS)
def test_every_letter_of_the_list_is_there(name):
    text = recorded("OPTIONS.md")
    (_, _, table) = text.partition(f"| {SECTIONS[name]} ")
    cells = [line.split("|")[1] for line in table.partition("\n\n")[0].splitlines()[2:]]
    listed = {word.strip(",") for cell in cells for word in cell.split() if word.startswith("-") and word != "-"}
    listed -= {"-"}
    assert len(listed) > 8
    assert listed == letters_of(name), listed ^ letters_of(name)


@pytest.mark.parametrize("name", SECTIONS)
def test_defaults_are_those_of_the_list(name):
    options = {option.letter: option for option in program(name).options}
    (_, _, table) = recorded("OPTIONS.md").partition(f"| {SECTIONS[name]} ")
    for line in table.partition("\n\n")[0].splitlines()[2:]:
        letters, default = (cell.strip() for cell in line.split("|")[1:3])
        letter = letters.split(",")[0].split()[0]
        if re.fullmatch(r"-?[0-9.]+|[a-z]", default):
            assert options[letter].default == default, letter


@pytest.mark.parametrize("name", MODULES)
def test_the_table_of_the_documentation_is_that_of_the_program(name):
    page = (PAGES / f"{PAGE_OF[program(name).system]}.md").read_text(encoding="utf-8")
    assert markdown(program(name)) in page


@pytest.mark.parametrize("name", MODULES)
def test_help_lists_every_option(name):
    text = program(name).help()
    assert all(f"  {letter} " in text for letter in letters_of(name))


@pytest.mark.parametrize(
    ("name", "letter", "value"),
    [(name, option.letter, value) for name in MODULES for option in program(name).options for value in option.refused],
)
def test_what_cannot_be_had_is_refused_by_name_with_the_reason(name, letter, value):
    option = next(option for option in program(name).options if option.letter == letter)
    words = [letter] if option.read is None else [letter, "1" if value == ANY_VALUE else value]
    with pytest.raises(UsageError, match=f"^{re.escape(letter)}.*cannot be had: "):
        program(name).parse([*words, *["file"] * len(program(name).files)])


def test_defaults_are_read_as_given_values_are():
    arguments = program("svm_learn").parse(["-c", "2", "-z", "r", "data"])
    assert (arguments["-c"], arguments["-z"], arguments["-w"], arguments["-t"], arguments["-y"]) == (
        2,
        "r",
        0.1,
        0,
        None,
    )
    assert arguments.files == ["data", None]


def test_class_weights_are_read_by_label():
    arguments = program("svm-train").parse(["-w1", "2", "-w-1", "0.5", "-q", "data"])
    assert (arguments.by_label, arguments["-q"], arguments["-b"]) == ({1: 2.0, -1: 0.5}, True, 0)


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["-c", "0", "data"], "-c 0: must be > 0"),
        (["-c"], "-c needs a value"),
        (["-c", "nan", "data"], "-c nan: must be a finite number"),
        (["-d", "1.5", "data"], "-d 1.5: must be a whole number >= 0"),
        (["-s", "9", "data"], "-s 9: must be one of 0, 1, 2, 3, 4"),
        (["--c", "1", "data"], "svm-train has no option --c"),
        (["-wx", "1", "data"], "-wx: a class weight is -wLABEL with an integer label"),
        (["-wi", "1", "data"], "-wi: a class weight is -wLABEL with an integer label"),
        ([], "DATA is missing"),
        (["a", "b", "c"], "unexpected argument 'c'"),
    ],
)
def test_wrong_usage_is_named(words, rule):
    with pytest.raises(UsageError, match=re.escape(rule)):
        program("svm-train").parse(words)


def test_wrong_usage_ends_with_the_programs_status(call):
    status, out, err = call("as", "svm-train", "-k", "data")
    assert (status, out) == (1, "")
    assert "svm-train has no option -k" in err


def test_an_option_without_effect_is_noted(call, two):
    status, _, err = call("as", "svm_learn", "-n", "5", two, "model")
    assert status == 0
    assert err == "svm_learn: note: -n has no effect here: the solver chooses the working set by itself\n"


def test_messages_begin_with_the_name_of_the_program(call, two):
    assert call("as", "svm-train", "absent")[2] == "svm-train: error: absent: no such file; check the path\n"
    assert call("as", "svmocas", "-c", "0", two, "model")[2] == "svmocas: error: -c 0: must be > 0\n"
    assert call("train", "absent")[2].startswith("widemargin: error: ")


def test_installed_scripts_run_the_programs(call, two, tmp_path):
    import subprocess

    (tmp_path / "bin").mkdir()
    status, out, _ = call("as", "--install", "bin")
    assert status == 0
    assert [Path(line).name for line in out.splitlines()] == list(MODULES)
    (tmp_path / "elsewhere").mkdir()
    script, there = tmp_path / "bin" / "svm-train", {"cwd": tmp_path / "elsewhere", "capture_output": True}
    bare = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(widemargin.__file__).parents[1])}
    done = subprocess.run([script, "-q", two, "script.model"], check=True, env=bare, **there)
    assert done.stdout == b""
    failed = subprocess.run([script, "absent"], check=False, env=bare, **there)
    assert (failed.returncode, failed.stderr) == (1, b"svm-train: error: absent: no such file; check the path\n")
    assert (tmp_path / "elsewhere" / "script.model").read_bytes().startswith(b"svm_type c_svc")


def test_install_does_not_replace_other_programs(call, tmp_path):
    (tmp_path / "svm_learn").write_text("mine")
    status, _, err = call("as", "--install", tmp_path)
    assert status == 1
    assert "svm_learn is another program" in err
    assert (tmp_path / "svm_learn").read_text() == "mine"
    assert not (tmp_path / "svm-train").exists()
