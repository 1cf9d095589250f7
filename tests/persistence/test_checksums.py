"""Texts of models have a checksum where the program that reads them does not look, and we check it when it is there."""

import re
import subprocess
from shutil import which

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from widemargin import SVC, SVR, FormatError, LinearSVC, LinearSVR, RankSVM, load_model, save_model, write_svmlight

PROGRAMS = {"libsvm": "svm-predict", "liblinear": "liblinear-predict"}
SEAL = re.compile(rb"sha256=[0-9a-f]{16}")


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(3).standard_normal((30, 4))


@pytest.fixture(scope="module")
def models(rows):
    """Return fitted models by the name of a text."""
    labels, numbers = np.where(rows[:, 0] > 0, 1, -1), rows @ [1.0, -2.0, 0.5, 0.0]
    three = np.digitize(rows[:, 1], [-0.4, 0.4])[::-1]
    return {
        "libsvm": [SVC().fit(rows, labels), SVC().fit(rows, three), SVR().fit(rows, numbers)],
        "liblinear": [LinearSVC().fit(rows, labels), LinearSVC().fit(rows, three), LinearSVR().fit(rows, numbers)],
        "svmlight": [LinearSVC().fit(rows, labels), LinearSVR().fit(rows, numbers), RankSVM().fit(rows, numbers)],
    }  # fmt: skip


CASES = [(form, k) for form in ("libsvm", "liblinear", "svmlight") for k in range(3)]


@pytest.mark.parametrize(("form", "k"), CASES)
def test_a_text_has_one_checksum_and_is_read_without_it_and_with_the_line_ends_of_windows(form, k, models, tmp_path):
    save_model(models[form][k], tmp_path / "model", format=form)
    content = (tmp_path / "model").read_bytes()
    assert len(SEAL.findall(content)) == 1
    for text in (content.replace(b"\n", b"\r\n"), SEAL.sub(b"", content).replace(b"\n# \n", b"\n")):
        (tmp_path / "other").write_bytes(text)
        save_model(load_model(tmp_path / "other"), tmp_path / "again", format=form)
        assert (tmp_path / "again").read_bytes() == content


@pytest.mark.parametrize(("form", "k"), CASES)
def test_a_digit_that_changed_is_noticed(form, k, models, tmp_path):
    save_model(models[form][k], tmp_path / "model", format=form)
    content = (tmp_path / "model").read_bytes()
    place = next(re.finditer(rb"\.[0-9]{6}", content)).start() + 3
    changed = content[:place] + bytes([ord("0") + (content[place] - ord("0") + 5) % 10]) + content[place + 1 :]
    (tmp_path / "model").write_bytes(changed)
    line = content.count(b"\n", 0, SEAL.search(content).start()) + 1
    with pytest.raises(FormatError, match="the checksum is that of another text: the file is damaged") as caught:
        load_model(tmp_path / "model")
    assert caught.value.line == line


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), case=st.sampled_from(CASES))
def test_a_changed_byte_is_refused_or_changes_nothing(data, case, models, tmp_path):
    form, k = case
    save_model(models[form][k], tmp_path / "model", format=form)
    content = bytearray((tmp_path / "model").read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "changed").write_bytes(content)
    try:
        loaded = load_model(tmp_path / "changed")
    except FormatError:
        return
    save_model(loaded, tmp_path / "again", format=form)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.parametrize(("form", "k"), [case for case in CASES if case[0] in PROGRAMS])
def test_the_programs_read_the_text_with_its_checksum(form, k, models, rows, tmp_path):
    program = which(PROGRAMS[form])
    if program is None:
        pytest.skip(f"{PROGRAMS[form]} is not installed")
    model = models[form][k]
    save_model(model, tmp_path / "model", format=form)
    write_svmlight(tmp_path / "rows", rows, np.zeros(len(rows)))
    files = [tmp_path / name for name in ("rows", "model", "out")]
    subprocess.run([program, *files], check=True, capture_output=True, timeout=60)
    np.testing.assert_allclose(np.loadtxt(tmp_path / "out"), model.predict(rows), rtol=1e-4, atol=1e-5)
