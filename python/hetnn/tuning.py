"""What kernels leave to measurement: measured when a layer is first compiled, then remembered for this processor."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hetnn import _core
from hetnn.machine import cache_folder, cpu_slug, usable_threads, write_whole

# "off" for the kernels' defaults, else the path of the file in which measurements are kept.
VARIABLE = "HETNN_TUNING"
OFF = "off"


def cache_file() -> Path | None:
    """Where this processor's measurements are kept; None when the environment switches them off."""
    given = os.environ.get(VARIABLE)
    if given == OFF:
        return None
    return Path(given) if given else cache_folder() / f"{cpu_slug()}-tuning.json"


class Tuning:
    """Loads what is known before a compilation and saves what it added. Does nothing when switched off.

    The file is a cache: one that cannot be read or written costs time, not results.
    """

    def __init__(self, wanted: bool, threads: int | None) -> None:
        self._file = cache_file() if wanted else None
        self._threads = usable_threads(threads)
        self._before: dict[str, int] = {}

    @property
    def threads(self) -> int:
        """For how many threads kernels measure; 0 when they do not."""
        return 0 if self._file is None else self._threads

    def __enter__(self) -> Tuning:
        if self._file is not None:
            _core.learn_tuning(_read(self._file))
            self._before = _core.known_tuning()
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is None:
            return
        known = _core.known_tuning()
        if known == self._before:
            return
        try:
            # Another process may have added to it meanwhile.
            text = json.dumps({**_read(self._file), **known}, indent=1, sort_keys=True)
            write_whole(self._file, text + "\n")
        except OSError:
            pass


def _read(file: Path) -> dict[str, int]:
    try:
        found: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: group for name, group in found.items() if isinstance(group, int) and 2 <= group <= 16}
