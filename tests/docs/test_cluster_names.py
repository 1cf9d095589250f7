"""The estimators of `widemargin.dask` look like those that they stand for: signature, docstring, repr, clone, help."""

import inspect
import pydoc
import re
from pathlib import Path

import dask.array as da
import pytest
from dask.utils import key_split
from distributed import Client
from distributed.diagnostics.plugin import SchedulerPlugin
from sklearn.base import clone
from tests.docs.test_docstrings import documented_in

import widemargin
import widemargin.dask

ROOT = Path(__file__).parents[2]
ESTIMATORS = {
    name: thing for name in widemargin.dask.__all__ if hasattr(thing := getattr(widemargin.dask, name), "to_local")
}
_SECTIONS = {"Parameters", "Returns", "Raises", "Attributes", "Examples", "Notes", "See Also"}


def entries_of(docstring):
    """Return the unindented lines of each section of a docstring in numpydoc's form."""
    parts = re.split(r"^(\w[\w ]*)\n-+\n", docstring, flags=re.MULTILINE)
    return {
        name: re.findall(r"^\S.*$", text, re.MULTILINE) for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def test_all_ten_are_there():
    expected = {"LinearSVC", "LinearSVR", "LinearSVCCV", "RankSVM", "OrdinalSVC", "ROCAreaSVC", "MeasureSVC"}
    assert ESTIMATORS.keys() == expected | {"SVC", "SVR", "OneClassSVM"}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_signature_is_that_of_the_ordinary_class_and_client(name):
    ordinary = inspect.signature(getattr(widemargin, name)).parameters
    here = inspect.signature(ESTIMATORS[name]).parameters
    assert [*here] == [*ordinary, "client"]
    assert all(here[one].default == ordinary[one].default for one in ordinary)
    assert here["client"].default is None
    assert here["client"].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("name", ESTIMATORS)
def test_parameters_come_and_go_as_with_the_ordinary_class(name):
    kind = ESTIMATORS[name]
    model = kind(tol=0.5, max_seconds=3.0)
    assert model.get_params() == {**getattr(widemargin, name)(tol=0.5, max_seconds=3.0).get_params(), "client": None}
    assert clone(model).get_params() == model.get_params()
    assert type(clone(model)) is kind
    assert re.fullmatch(rf"{name}\(.*tol=0\.5.*\)", repr(model), re.DOTALL)
    assert "client" not in repr(model)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_docstring_is_in_numpydocs_form_and_refers_to_the_ordinary_class(name):
    entries = entries_of(inspect.getdoc(ESTIMATORS[name]))
    assert entries.keys() <= _SECTIONS
    assert [head.partition(" :")[0] for head in entries["Parameters"]] == ["**parameters", "client"]
    assert documented_in(inspect.getdoc(ESTIMATORS[name])) == ["client"]
    assert f"`widemargin.{name}`" in inspect.getdoc(ESTIMATORS[name])
    assert "client=None" in pydoc.plain(pydoc.render_doc(ESTIMATORS[name])).replace(
        ": 'Client | None' = ", "="
    ).replace(": distributed.client.Client | None = ", "=")


@pytest.mark.parametrize("name", [*ESTIMATORS, "from_blocks"])
def test_functions_and_methods_document_what_they_take(name):
    function = getattr(widemargin.dask, name)
    function = function if inspect.isfunction(function) else function.fit
    entries = entries_of(inspect.getdoc(function))
    assert "Returns" in entries
    if "Parameters" in entries:
        named = [one for head in entries["Parameters"] for one in head.partition(" :")[0].split(", ")]
        assert named == [one for one in inspect.signature(function).parameters if one != "self"]
    else:
        assert "`LinearSVC.fit`" in inspect.getdoc(function)


@pytest.mark.parametrize("name", widemargin.dask.__all__)
def test_every_name_is_in_the_reference(name):
    assert f"\n::: widemargin.dask.{name}\n" in (ROOT / "docs/reference/cluster.md").read_text(encoding="utf-8")


def test_tasks_have_names_on_the_dashboard():
    """Dask shows the words of a key up to the first that it takes for a number."""
    rows = da.random.default_rng(0).standard_normal((400, 3), chunks=(100, 3))
    seen = []

    class Listener(SchedulerPlugin):
        def transition(self, key, start, finish, *others, **more):
            seen.append(key)

    with Client(processes=False, dashboard_address=":0", n_workers=1, threads_per_worker=1) as client:
        client.cluster.scheduler.add_plugin(Listener())
        widemargin.dask.LinearSVC(loss="hinge", client=client).fit(rows, (rows[:, 0] > 0.1).astype(int))
    shown = {key_split(key) for key in seen if str(key).startswith("widemargin-")}
    assert {"widemargin-Facts-Of", "widemargin-Newton-System", "widemargin-Evaluated"} <= shown
    assert "widemargin" not in shown
