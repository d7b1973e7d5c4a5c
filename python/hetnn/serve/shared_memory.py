"""Regions of POSIX shared memory that clients register. Read and written by descriptor, not mapped: a client that cuts
its region short then gets an error, and the server no signal."""

from __future__ import annotations

import os
import re
import stat
import threading
from dataclasses import dataclass
from typing import Any

from hetnn._runtime import Place
from hetnn.errors import InvalidModel

_KEY = re.compile(r"/?[^/\0]{1,254}")
_FOLDER = "/dev/shm"


@dataclass(frozen=True)
class _Region:
    key: str
    offset: int
    byte_size: int
    descriptor: int


class Regions:
    """Registered regions by name. Thread-safe."""

    def __init__(self) -> None:
        self._regions: dict[str, _Region] = {}
        self._lock = threading.Lock()

    def register(self, name: str, key: str, offset: int, byte_size: int) -> None:
        """Opens a region. InvalidModel when the name is taken or the memory is not there or shorter."""
        if not _KEY.fullmatch(key) or key.strip("/") in (".", ".."):
            raise InvalidModel(f"the key of a shared memory region is a name as shm_open takes it; got {key!r:.100}.")
        path = os.path.join(_FOLDER, key.lstrip("/"))
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise InvalidModel(f"shared memory region '{name:.100}': cannot open '{key}': {error.strerror}.") from None
        status = os.fstat(descriptor)
        with self._lock:
            if name in self._regions:
                problem = "is registered already. Unregister it first."
            elif not stat.S_ISREG(status.st_mode) or byte_size == 0 or offset + byte_size > status.st_size:
                problem = f"has {status.st_size} bytes; [{offset}, {offset + byte_size}) is not within them."
            else:
                self._regions[name] = _Region(key, offset, byte_size, descriptor)
                return
        os.close(descriptor)
        raise InvalidModel(f"shared memory region '{name:.100}' {problem}")

    def unregister(self, name: str) -> None:
        """Forgets a region, or all for the name ''. A name that is not there is no error."""
        with self._lock:
            for gone in [*self._regions] if not name else [name] * (name in self._regions):
                os.close(self._regions.pop(gone).descriptor)

    def status(self, name: str) -> list[dict[str, Any]]:
        """`name`, `key`, `offset`, `byte_size` of a region, or of all for the name ''."""
        with self._lock:
            if name and name not in self._regions:
                raise InvalidModel(f"there is no shared memory region '{name:.100}'. Register it first.")
            rows = self._regions.items()
            return [
                {"name": key, "key": row.key, "offset": row.offset, "byte_size": row.byte_size}
                for key, row in rows
                if not name or key == name
            ]

    def read(self, place: Place) -> bytes:
        """A copy of the bytes at a place."""
        with self._lock:
            region = self._at(place)
            data = bytearray()
            while len(data) < place.byte_size:
                at = region.offset + place.offset + len(data)
                part = os.pread(region.descriptor, place.byte_size - len(data), at)
                if not part:
                    raise InvalidModel(f"shared memory region '{place.region}' was cut short.")
                data += part
            return bytes(data)

    def write(self, place: Place, data: bytes | memoryview) -> None:
        if len(data) > place.byte_size:
            raise InvalidModel(
                f"an output takes {len(data)} bytes; shared memory region '{place.region}' has room for "
                f"{place.byte_size} there."
            )
        with self._lock:
            region = self._at(place)
            end = region.offset + place.offset + len(data)
            if os.fstat(region.descriptor).st_size < end:
                raise InvalidModel(f"shared memory region '{place.region}' was cut short.")
            view, at = memoryview(data), region.offset + place.offset
            while view:
                wrote = os.pwrite(region.descriptor, view, at)
                view, at = view[wrote:], at + wrote

    def _at(self, place: Place) -> _Region:
        region = self._regions.get(place.region)
        if region is None:
            raise InvalidModel(f"there is no shared memory region '{place.region:.100}'. Register it first.")
        if place.offset + place.byte_size > region.byte_size:
            raise InvalidModel(
                f"[{place.offset}, {place.offset + place.byte_size}) is not within the {region.byte_size} bytes of "
                f"shared memory region '{place.region}'."
            )
        return region
