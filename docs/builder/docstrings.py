"""What our docstrings say, as griffe and Markdown would otherwise misread it; an extension of griffe.

griffe takes the first of `{"a", "b"} or callable, default="b"` for the default, and reads kinds as Python; and Markdown
takes <x, z> for a tag.
"""

import re

from griffe import Extension

_KIND = re.compile(r"^(?P<names>[ ]*\w+(?:, \w+)* : )(?P<kind>.+)$", re.MULTILINE)
_PLAIN = re.compile(r"`[^`\n]*`|^[ ]*>>>.*$|<", re.MULTILINE)
_JOINER = "\u2060"  # shows nothing, and is no Python


class PlainDocstrings(Extension):
    """Kinds of parameters stay the text that they are, and so does what is between < and >."""

    def on_object(self, *, obj, **others):
        """Change the docstring of an object, once."""
        if obj.docstring and _JOINER not in obj.docstring.value:
            obj.docstring.value = _KIND.sub(rf"\g<names>{_JOINER}\g<kind>", _escaped(obj.docstring.value))


def _escaped(text):
    """Return Markdown that shows the text's < as such; code is left alone."""
    return _PLAIN.sub(lambda found: "&lt;" if found[0] == "<" else found[0], text)
