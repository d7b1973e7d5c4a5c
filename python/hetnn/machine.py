"""What is known of this machine, and where hetnn keeps what it measured on it."""

from __future__ import annotations

import numbers
import os
import platform
import re
import sys
from pathlib import Path

from hetnn import _runtime
from hetnn.errors import InvalidModel

MAX_THREADS = 4096


def cpu_name() -> str:
    """What the processor calls itself."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cache_sizes() -> dict[str, int]:
    """Bytes of the first processor's caches of data, as far as the system tells them."""
    levels = {"1": "first_level", "2": "second_level", "3": "third_level"}
    out: dict[str, int] = {}
    for cache in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = (
                (cache / name).read_text(encoding="ascii").strip() for name in ("level", "type", "size")
            )
        except OSError:
            continue
        if kind != "Instruction" and level in levels and size[:-1].isdecimal() and size.endswith("K"):
            out[levels[level]] = int(size[:-1]) << 10
    return out


def cpu_slug() -> str:
    """The processor's name as a part of a file name."""
    return re.sub(r"[^a-z0-9]+", "-", cpu_name().lower()).strip("-") or "cpu"


def default_threads() -> int:
    """Threads of a run for which nothing was said: as many as the environment's HETNN_NUM_THREADS or HETNN_CPUS says,
    else the processors that this process may use, no more than OMP_NUM_THREADS says, or than torch uses where it is
    loaded.
    """
    torch = sys.modules.get("torch")
    said = {"HETNN_CPUS", "HETNN_NUM_THREADS"} & os.environ.keys()
    count = None if said else getattr(torch, "get_num_threads", None)
    return _runtime.usable_threads(count() if count else 0)


def usable_threads(threads: int | None) -> int:
    """Threads of a run for which so many are asked; None or 0: nothing was said."""
    return _runtime.usable_threads(threads) if threads else default_threads()


def thread_count(threads: int | None) -> int:
    """Threads of a run as its caller asks; None or 0: nothing was said. InvalidModel for what is no number of them."""
    if threads is None:
        return default_threads()
    odd = isinstance(threads, bool) or not isinstance(threads, numbers.Integral)
    if odd or not 0 <= threads <= MAX_THREADS:
        raise InvalidModel(f"threads must be an integer in [0, {MAX_THREADS}]; found {threads!r}.")
    return int(threads) or default_threads()


# In place of a file of measurements: none is wanted.
OFF = "off"


def cache_file(name: str) -> Path:
    """The file of that name in the user's cache, one for each kind of processor."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "hetnn" / f"{cpu_slug()}-{name}.json"


def kept_file(name: str, variable: str) -> Path | None:
    """Where measurements are kept: the cache's file, or what the environment's `variable` says; None for "off"."""
    given = os.environ.get(variable)
    return None if given == OFF else Path(given) if given else cache_file(name)


def write_whole(file: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(file.name + f".{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, file)
