"""The other side of an isolated backend: makes it, and does what it is asked until the inherited socket ends."""

from __future__ import annotations

import importlib
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hetnn.backends.backend import Backend, Port, Reason, Run
from hetnn.backends.isolated import dtype_of
from hetnn.errors import Error
from hetnn.remote.wire import Closed, Wire

_LONG_S = 1e9  # that the other side may be silent, or take to read


class _Asked:
    """A backend, and the code that it has opened."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        from hetnn.backends.registry import factory_of

        factory: Any
        if header["source"]:
            module, name = header["source"]
            factory = importlib.import_module(module)
            for part in name.split("."):
                factory = getattr(factory, part)
        else:
            factory = factory_of(header["kind"])
        self._backend: Backend = factory(header["name"], header["spec"])
        self._opened: list[Run] = []

    def answer(self, header: Mapping[str, Any], payload: memoryview) -> tuple[dict[str, Any], Sequence[Any]]:
        """What is sent back: words, and arrays or bytes."""
        backend, do = self._backend, header["do"]
        if do == "tell":
            told = ("version", "connected", "constant_budget_bytes", "measures", "images_last")
            return {name: getattr(backend, name) for name in told}, []
        if do == "launch_us":
            return {"value": float(backend.launch_us)}, []
        if do == "reads":
            return {"value": bool(backend.reads(header["version"]))}, []
        if do == "open":
            inputs, outputs = ([Port(*row) for row in header[side]] for side in ("inputs", "outputs"))
            self._opened.append(backend.open(bytes(payload), inputs, outputs))
            return {"value": len(self._opened) - 1}, []
        if do == "run":
            return self._run(header, payload)
        from hetnn import _core

        graph = _core.Graph.parse(bytes(payload).decode())
        if do == "supports":
            reasons = backend.supports(graph)
            reasons = [reasons] if isinstance(reasons, (str, Reason)) else reasons
            return {"value": [list(reason) if isinstance(reason, Reason) else str(reason) for reason in reasons]}, []
        if do == "time_us":
            return {"value": float(backend.time_us(graph, header["macs"], header["flops"], header["bytes"]))}, []
        given: list[Any] = [graph, header["images"]] if backend.images_last else [graph]
        if do == "times_us":
            times = backend.times_us(*given)
            return {"value": None if times is None else {name: float(us) for name, us in times.items()}}, []
        assert do == "compile"
        code = backend.compile(*given)
        if not isinstance(code, (bytes, bytearray, memoryview)):
            raise TypeError(f"compile must give bytes; it gave {type(code).__name__}")
        return {}, [np.frombuffer(code, np.uint8)]

    def _run(self, header: Mapping[str, Any], payload: memoryview) -> tuple[dict[str, Any], Sequence[Any]]:
        arrays, offset = [], 0
        for name, shape in zip(header["dtypes"], header["shapes"], strict=True):
            dtype = dtype_of(name)
            count = int(np.prod(shape, dtype=np.int64))
            array = np.frombuffer(payload, dtype, count, offset).reshape(shape)
            array.flags.writeable = False
            arrays.append(array)
            offset += count * dtype.itemsize
        given = [np.ascontiguousarray(array) for array in self._opened[header["code"]](arrays)]
        names = [array.dtype.str if array.dtype.isbuiltin == 1 else array.dtype.name for array in given]
        return {"dtypes": names, "shapes": [list(array.shape) for array in given]}, given


def main(descriptor: int) -> None:
    """Serves the one who began this process."""
    wire = Wire(socket.socket(fileno=descriptor))
    asked: _Asked | None = None
    while True:
        try:
            header, payload = wire.receive(time.monotonic() + _LONG_S)
        except Closed:
            return
        answer: dict[str, Any]
        arrays: Sequence[Any] = []
        try:
            if asked is None:
                asked, answer = _Asked(header), {}
            else:
                answer, arrays = asked.answer(header, payload)
            answer = {"ok": True, **answer}
        except Error as error:
            answer = {
                "ok": False,
                "kind": type(error).__name__,
                "text": str(error),
                "node": getattr(error, "node", None),
            }
        except Exception as error:
            answer = {"ok": False, "kind": type(error).__name__, "text": str(error)}
        buffers = [array.reshape(-1).view(np.uint8).data for array in arrays if array.size]
        wire.send(answer, buffers, time.monotonic() + _LONG_S)


if __name__ == "__main__":
    main(int(sys.argv[1]))
