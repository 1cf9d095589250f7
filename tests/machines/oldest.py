"""The oldest versions that pyproject.toml allows: `python tests/machines/oldest.py` prints them as pip's constraints.

Every requirement of the package and of its extra `test` (with the extras that this one includes) has the form
`name>=version` and perhaps an upper bound; its oldest version is the one named. A version that was never released, that
has no wheel or does not get on with the other oldest ones fails when pip installs it.
"""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[[\w,]+\])?>=(?P<version>[\w.]+)(,<[\w.]+)?\s*(;(?P<marker>.*))?")


def requirements(extra="test"):
    """Return the texts of all requirements of the package with the extra, extras within extras resolved."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    texts, extras = list(project["dependencies"]), [extra]
    while extras:
        for text in project["optional-dependencies"][extras.pop()]:
            own = re.fullmatch(rf"{project['name']}\[([\w,]+)\]", text)
            extras.extend(own[1].split(",")) if own else texts.append(text)
    return texts


def oldest():
    """Return triples of name, oldest version and environment marker ("" where there is none)."""
    found = []
    for text in requirements():
        match = REQUIREMENT.fullmatch(text)
        if match is None:
            raise ValueError(f"a requirement must be name>=version, perhaps with an upper bound, but is {text!r}")
        found.append((match["name"], match["version"], (match["marker"] or "").strip()))
    return found


if __name__ == "__main__":
    for name, version, marker in oldest():
        print(f"{name}=={version}{f' ; {marker}' if marker else ''}")
