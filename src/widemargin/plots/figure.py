"""A matplotlib Figure that notebooks show, without pyplot, which would change settings of the whole process.

In a Jupyter kernel the figure is shown once, at the end of the cell that created it, in its final state, whether it is
the last expression of the cell or not. In later cells it is shown if it is the last expression. In scripts and at a
terminal nothing is shown; `savefig` writes a file.
"""

import sys
from io import BytesIO

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

_PIXEL_RATIO = 2  # pixels of the image per pixel of the page, for high-resolution screens


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
        """Show the figure unless the cell has shown it."""
        _notebook().events.unregister("post_execute", self._at_end_of_cell)
        if not self._is_shown:
            self._ipython_display_()

    def _ipython_display_(self):
        """Show the figure in the output of the cell."""
        from IPython.display import display

        self._is_shown = True
        width, height = (self.get_size_inches() * self.dpi).round().astype(int).tolist()
        metadata = {"image/png": {"width": width, "height": height}}
        display({"image/png": self._repr_png_(), "text/plain": repr(self)}, raw=True, metadata=metadata)

    def _repr_png_(self):
        """Return the figure as PNG."""
        file = BytesIO()
        self.savefig(file, format="png", dpi=_PIXEL_RATIO * self.dpi)
        return file.getvalue()


def _notebook():
    """Return the shell of the Jupyter kernel in which this runs, otherwise None; IPython is not imported for this."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell if hasattr(shell, "kernel") else None
