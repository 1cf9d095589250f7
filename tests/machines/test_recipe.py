"""The recipe for conda has the version and the requirements of pyproject.toml."""

import re
import tomllib
from pathlib import Path

from widemargin import __version__

ROOT = Path(__file__).parents[2]
RECIPE = (ROOT / "recipe" / "meta.yaml").read_text("utf-8")


def listed(heading):
    """Return the requirements under a heading of the recipe, without spaces."""
    block = re.search(rf"\n  {heading}:\n((?:    - .*\n)+)", RECIPE)[1]
    return {line.removeprefix("    - ").replace(" ", "") for line in block.splitlines()}


def test_the_recipe_has_the_version_of_the_package():
    assert f'{{% set version = "{__version__}" %}}' in RECIPE


def test_the_recipe_has_the_requirements_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {name.partition(";")[0].replace(" ", "") for name in project["dependencies"]}
    assert listed("run") == needed | {f"python{project['requires-python']}"}
