"""A matplotlib Figure that a notebook shows, without pyplot, which would change settings of the whole process.

In a Jupyter kernel it is shown at the end of the cell that made it, whether it is the cell's last expression or not,
once, and as it is after all that the cell does to it. In another cell it is shown where it is the last expression. In
scripts and at a terminal nothing is shown; `savefig` writes a file.
"""

import sys
from io import BytesIO

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

_SHARPNESS = 2  # pixels of the picture for each of the page, for screens that are dense


class ShownFigure(Figure):
    """A Figure that shows itself in notebooks; drawn without a display."""

    _is_shown = False

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        FigureCanvasAgg(self)
        shell = _notebook()
        if shell is not None:
            shell.events.register("post_execute", self._at_end_of_cell)

    def _at_end_of_cell(self):
        """Show the figure unless the cell did."""
        _notebook().events.unregister("post_execute", self._at_end_of_cell)
        if not self._is_shown:
            self._ipython_display_()

    def _ipython_display_(self):
        """Show the figure where IPython shows things."""
        from IPython.display import display

        self._is_shown = True
        width, height = (self.get_size_inches() * self.dpi).round().astype(int).tolist()
        metadata = {"image/png": {"width": width, "height": height}}
        display({"image/png": self._repr_png_(), "text/plain": repr(self)}, raw=True, metadata=metadata)

    def _repr_png_(self):
        """Return the picture as bytes of PNG."""
        file = BytesIO()
        self.savefig(file, format="png", dpi=_SHARPNESS * self.dpi)
        return file.getvalue()


def _notebook():
    """Return the shell of the Jupyter kernel that this runs in, None elsewhere; nothing is imported to find out."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell if hasattr(shell, "kernel") else None
