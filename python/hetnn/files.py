"""Files that others wrote: what is none, is too large, or is no text where one is expected, is refused by name."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from hetnn.errors import InvalidModel

MOST_TEXT_BYTES = 1 << 29

# Other encodings that begin with a mark of their own.
_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


@contextmanager
def open_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file open for reading. InvalidModel for a pipe or a device, which may never answer; OSError as `open` does."""
    # Without waiting for someone to write into a pipe.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise InvalidModel(f"'{os.fspath(path)}' is no file but a pipe or a device. Write what it gives to a file.")
        yield file


def read_bytes(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """What a file or a pipe holds. InvalidModel when it cannot be read or is larger than `most_bytes`."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if stat.S_ISREG(status.st_mode):
                data = file.read(status.st_size) if status.st_size <= most_bytes else None
            else:
                data = _drain(file, most_bytes)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidModel(f"'{os.fspath(path)}' cannot be read: {why}. Check the path.") from error
    if data is None:
        raise InvalidModel(f"'{os.fspath(path)}' is larger than {most_bytes} bytes, the most that is read of its kind.")
    return data


def _drain(file: BinaryIO, most_bytes: int) -> bytes | None:
    """All that comes out of a pipe; None when that is more than `most_bytes`."""
    data = bytearray()
    while part := file.read(1 << 20):  # memory for a whole part is taken before any of it has come
        data += part
        if len(data) > most_bytes:
            return None
    return bytes(data)


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a UTF-8 file, without a byte order mark. InvalidModel when it cannot be read or is no such text."""
    called = f"'{os.fspath(path)}'"
    data = read_bytes(path, MOST_TEXT_BYTES)
    for mark, name in _MARKS.items():
        if data.startswith(mark):
            raise InvalidModel(f"{called} is a text in {name}; expected UTF-8. Save it in that encoding.")
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidModel(
            f"{called} is no UTF-8 text: byte {data[error.start]:#04x} at {error.start}. Save it in that encoding."
        ) from error
