"""Message classes from `open_inference.proto`, by a reader of the part of the language that the file uses.

They are in a pool of their own: a client in the same process has messages of the same names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_TOKEN = re.compile(r'//[^\n]*|"[^"]*"|[\w.]+|\S')
_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bool": _Field.TYPE_BOOL,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "uint32": _Field.TYPE_UINT32,
    "uint64": _Field.TYPE_UINT64,
    "float": _Field.TYPE_FLOAT,
    "double": _Field.TYPE_DOUBLE,
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
}


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens: Iterator[str] = (t for t in _TOKEN.findall(text) if not t.startswith("//"))
        self.file = descriptor_pb2.FileDescriptorProto(name="hetnn/open_inference.proto", syntax="proto3")
        self._enums: set[str] = set()
        for token in self._tokens:
            if token == "package":
                self.file.package = next(self._tokens)
            elif token == "message":
                self._message()
            elif token == "enum":
                self._enum()

    def _enum(self) -> None:
        made = self.file.enum_type.add(name=next(self._tokens))
        self._enums.add(made.name)
        next(self._tokens)
        while (name := next(self._tokens)) != "}":
            next(self._tokens)
            made.value.add(name=name, number=int(next(self._tokens)))
            next(self._tokens)

    def _message(self) -> None:
        made = self.file.message_type.add(name=next(self._tokens))
        next(self._tokens)
        while (token := next(self._tokens)) != "}":
            if token == "oneof":
                index = len(made.oneof_decl)
                made.oneof_decl.add(name=next(self._tokens))
                next(self._tokens)
                while (token := next(self._tokens)) != "}":
                    self._field(made, token).oneof_index = index
            else:
                self._field(made, token)

    def _field(self, message: Any, kind: str) -> Any:
        label, value = _Field.LABEL_OPTIONAL, ""
        if kind == "repeated":
            label, kind = _Field.LABEL_REPEATED, next(self._tokens)
        elif kind == "map":
            _, key, _, value, _ = (next(self._tokens) for _ in range(5))
        name = next(self._tokens)
        next(self._tokens)
        number = int(next(self._tokens))
        next(self._tokens)
        if value:  # a map is a list of entries, a message within the message
            kind = "".join(part.capitalize() for part in name.split("_")) + "Entry"
            entry = message.nested_type.add(name=kind)
            entry.options.map_entry = True
            self._typed(entry.field.add(name="key", number=1, label=label), key)
            self._typed(entry.field.add(name="value", number=2, label=label), value)
            label, kind = _Field.LABEL_REPEATED, f"{message.name}.{kind}"
        made = message.field.add(name=name, number=number, label=label)
        self._typed(made, kind)
        return made

    def _typed(self, field: Any, kind: str) -> None:
        if kind in _SCALARS:
            field.type = _SCALARS[kind]
            return
        field.type = _Field.TYPE_ENUM if kind in self._enums else _Field.TYPE_MESSAGE
        field.type_name = f".{self.file.package}.{kind}"


def _read() -> tuple[str, dict[str, Any]]:
    file = _Reader(Path(__file__).with_suffix("").with_name("open_inference.proto").read_text(encoding="utf-8")).file
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    names = [message.name for message in file.message_type]
    classes = {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{name}")) for name in names
    }
    return file.package, classes


PACKAGE, MESSAGES = _read()
