"""What hetnn tells `logging`, under the name "hetnn". HETNN_LOG=debug|info|warning|error shows it on stderr."""

from __future__ import annotations

import logging
import os
import warnings

LEVELS = ("debug", "info", "warning", "error")
VARIABLE = "HETNN_LOG"

logger = logging.getLogger("hetnn")
logger.addHandler(logging.NullHandler())


def show_as_asked() -> None:
    """Shows what the environment's HETNN_LOG asks for; a warning where that is no level."""
    asked = os.environ.get(VARIABLE, "")
    if asked.lower() not in LEVELS:
        warnings.warn(f"{VARIABLE} is one of {', '.join(LEVELS)}; found '{asked}'.", RuntimeWarning, stacklevel=2)
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(asked.upper())
