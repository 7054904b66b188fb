"""Screens as PNG files: the newest, and those of several workers side by side."""

import io
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

MOST = 9
"""Workers in a mosaic."""
_GAP = 4  # pixels between two screens
_GROUND = (16, 16, 24)


def png(screen: NDArray[np.uint8]) -> bytes:
    """A picture, (height, width, 3), as PNG."""
    content = io.BytesIO()
    # Screens of consoles are flat areas: the lightest compression is some ms faster, and not much larger.
    Image.fromarray(screen).save(content, "png", compress_level=1)
    return content.getvalue()


def mosaic(screens: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """The first `MOST` pictures in as many columns as rows, each in the middle of its place."""
    shown = screens[:MOST]
    side = math.ceil(math.sqrt(len(shown)))
    rows = math.ceil(len(shown) / side)
    height, width = (max(screen.shape[axis] for screen in shown) for axis in (0, 1))
    canvas = np.full((rows * (height + _GAP) - _GAP, side * (width + _GAP) - _GAP, 3), _GROUND, np.uint8)
    for place, screen in enumerate(shown):
        top = place // side * (height + _GAP) + (height - screen.shape[0]) // 2
        left = place % side * (width + _GAP) + (width - screen.shape[1]) // 2
        canvas[top : top + screen.shape[0], left : left + screen.shape[1]] = screen
    return canvas
