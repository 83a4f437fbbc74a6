"""What holds of every picture: nothing is cut off, covered, or longer than the axes it names."""

import warnings
from itertools import combinations

from matplotlib.backends.backend_agg import FigureCanvasAgg

SLACK = 3  # pixels


def inside(figure):
    """The figure drawn without a warning, all its texts and axes within it, labels within the
    reach of their axes, and no two texts of a panel, or panels, over each other."""
    canvas, whole = FigureCanvasAgg(figure), figure.bbox
    with warnings.catch_warnings(action="error"):
        canvas.draw()
    renderer = canvas.get_renderer()
    named = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    panels = [ax.get_tightbbox(renderer) for ax in named]
    around = [box.get_window_extent() for box in figure.legends]
    around += [figure._suptitle.get_window_extent()] if figure._suptitle else []
    bars = [ax.get_tightbbox(renderer) for ax in figure.axes if ax.get_label() == "<colorbar>"]
    for box in panels + around + bars:
        assert box.x0 >= whole.x0 - 1, box
        assert box.y0 >= whole.y0 - 1, box
        assert box.x1 <= whole.x1 + 1, box
        assert box.y1 <= whole.y1 + 1, box
    for ax in (ax for ax in named if ax.axison):
        own = ax.get_window_extent()
        assert own.width > 40, "a panel without width"
        upright = ax.yaxis.label.get_window_extent()
        assert upright.height <= own.height + SLACK, ax.get_ylabel()
        for axis in (ax.xaxis, ax.yaxis):
            ticks = [text for text in axis.get_ticklabels() if text.get_text()]
            apart([text.get_window_extent() for text in ticks], f"ticks of {ax.get_title()!r}")
    apart([ax.get_window_extent() for ax in figure.axes], "panels")
    for box in around:
        for panel in panels:
            assert not over(box, panel), "a panel and the legend or title"
    return figure


def apart(boxes, what):
    for one, two in combinations(boxes, 2):
        assert not over(one, two), what


def over(one, two):
    """Whether two boxes share more than their edges."""
    across = min(one.x1, two.x1) - max(one.x0, two.x0)
    down = min(one.y1, two.y1) - max(one.y0, two.y0)
    return across > SLACK and down > SLACK
