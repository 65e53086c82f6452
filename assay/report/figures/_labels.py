"""Names beside points, each placed where it covers least of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

MARKER = 10.0  # width of a point, in points
# Offsets in points, the best first: near, then farther away.
PLACES = [(side * 7.0, height) for height in (6.0, -8.0, 0.0, 18.0, -20.0, 30.0, -32.0) for side in (1, -1)]


def name_points(points: Mapping[str, tuple[float, float]], ax: Axes) -> None:
    """Write the name of each point beside it; the limits of the axes must be final."""
    from matplotlib.transforms import Bbox

    shown = {name: point for name, point in points.items() if all(map(isfinite, point))}
    half = MARKER / 2 * ax.get_figure(root=True).dpi / 72  # type: ignore[union-attr]
    centers = [ax.transData.transform(point) for point in shown.values()]
    taken = [Bbox.from_extents(x - half, y - half, x + half, y + half) for x, y in centers]
    for name, point in shown.items():
        text = ax.annotate(name, point, PLACES[0], textcoords="offset points", fontsize="small", va="center", zorder=5)
        boxes = {place: _put(text, place) for place in PLACES}
        taken.append(_put(text, min(PLACES, key=lambda place: _covered(boxes[place], taken, ax.bbox))))


def _put(text: Annotation, place: tuple[float, float]) -> Bbox:
    """Move the text, and return the box that it covers."""
    text.set(position=place, ha="left" if place[0] > 0 else "right")
    return text.get_window_extent()


def _covered(box: Bbox, taken: Sequence[Bbox], whole: Bbox) -> float:
    """How much a box overlaps the boxes that are taken, and how much of it is outside of the whole."""
    return sum(_common(box, other) for other in taken) + box.width * box.height - _common(box, whole)


def _common(a: Bbox, b: Bbox) -> float:
    width, height = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
    return float(max(width, 0.0) * max(height, 0.0))
