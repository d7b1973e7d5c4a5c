"""The file that an executable was loaded from, and whether it is still what it was."""

from __future__ import annotations

import os
from dataclasses import dataclass

from hetnn.files import open_file

_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class ExecutableFile:
    """A path and what lay there. The file's header has the hash of everything behind it."""

    path: str
    header_hash: str
    status: tuple[int, int, int]

    @classmethod
    def of(cls, path: str) -> ExecutableFile | None:
        """None for what is no file of an executable."""
        try:
            with open_file(path) as file:
                status = os.fstat(file.fileno())
                length = file.read(8)
                from hashlib import sha256  # loads OpenSSL

                hash = sha256(length)
                left = int.from_bytes(length, "little")
                if left > status.st_size:
                    return None
                while left > 0 and (piece := file.read(min(left, _PIECE_BYTES))):
                    hash.update(piece)
                    left -= len(piece)
        except (OSError, ValueError):
            return None
        return cls(path, hash.hexdigest(), (status.st_ino, status.st_mtime_ns, status.st_size))

    def is_there(self) -> bool:
        """Whether nobody has written the path since."""
        try:
            status = os.stat(self.path)
        except OSError:
            return False
        return self.status == (status.st_ino, status.st_mtime_ns, status.st_size)
