"""Texts from files: what is no text is refused by name."""

from __future__ import annotations

import codecs
import os
from pathlib import Path

from hetnn.errors import InvalidModel

# Other encodings that begin with a mark of their own.
_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a UTF-8 file, without a byte order mark. InvalidModel when it cannot be read or is no such text."""
    called = f"'{os.fspath(path)}'"
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InvalidModel(f"{called} cannot be read: {error.strerror}. Check the path.") from error
    for mark, name in _MARKS.items():
        if data.startswith(mark):
            raise InvalidModel(f"{called} is a text in {name}; expected UTF-8. Save it in that encoding.")
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidModel(
            f"{called} is no UTF-8 text: byte {data[error.start]:#04x} at {error.start}. Save it in that encoding."
        ) from error
