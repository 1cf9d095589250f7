"""What solvers take and return."""

from dataclasses import replace

import pytest

from widemargin.solvers.contract import KernelSettings, Settings, changed


@pytest.mark.parametrize("kind", [Settings, KernelSettings])
def test_changed_is_replace(kind):
    settings = kind(tol=0.5, n_jobs=3)
    copy = changed(settings, task=2, tol=0.25)
    assert copy == replace(settings, task=2, tol=0.25)
    assert type(copy) is kind
    assert settings.tol == 0.5


def test_changed_refuses_a_field_that_there_is_not():
    with pytest.raises(TypeError, match="Settings has no field 'toll'"):
        changed(Settings(), toll=1.0)
