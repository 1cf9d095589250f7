"""Completion in shells: bash is asked what it would complete; zsh and fish read their scripts if installed."""

import shutil
import subprocess

import pytest

from widemargin.cli.main import COMMANDS


def completed(script, *words):
    """Return what bash completes for the last of the words after `widemargin`."""
    quoted = " ".join(f"'{word}'" for word in ("widemargin", *words))
    ask = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _widemargin; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    answer = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True)
    assert answer.stderr == ""
    return answer.stdout.split()


@pytest.fixture
def script(call):
    status, out, err = call("completion", "bash")
    assert (status, err) == (0, "")
    return out


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_commands_options_values_and_files(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "heart_scale").write_text("")
    assert completed(script, "") == [*COMMANDS, "--help", "--version"]
    assert completed(script, "pre") == ["predict"]
    assert completed(script, "train", "--los") == ["--loss"]
    assert "hinge" in completed(script, "train", "--loss", "h")
    assert completed(script, "train", "hea") == ["heart_scale"]
    assert completed(script, "as", "svm_l") == ["svm_learn"]
    assert completed(script, "completion", "f") == ["fish"]
    assert completed(script, "scale", "--nonsense") == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_every_command_and_option_is_in_the_other_scripts(call, shell):
    status, out, _ = call("completion", shell)
    assert status == 0
    for command in COMMANDS:
        assert command in out
    for form in ("loss", "max-seconds", "basis"):
        assert form in out
    if shutil.which(shell) is not None:  # where it is installed, it reads the script
        answer = subprocess.run([shell, "-n", "/dev/stdin"], input=out, capture_output=True, text=True, check=False)
        assert (answer.returncode, answer.stderr) == (0, "")


def test_an_unknown_shell_is_refused_with_those_that_are_known(call):
    status, out, err = call("completion", "tcsh")
    assert (status, out) == (2, "")
    assert "SHELL must be one of bash, zsh, fish, got 'tcsh'" in err
    assert call("completion")[0] == 2
