"""A vendor's compiler that breaks where its spec says: a crash of native code, an end, or a wait without end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from backends.text_backend import TextBackend
from hetnn import _core
from hetnn.backends import Port, Run
from hetnn.errors import DoesNotFit

WAYS = {
    "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "exit": lambda: os._exit(3),
    "hang": lambda: time.sleep(1000),
    "raise": lambda: 1 // 0,
}


class Crashing(TextBackend):
    """`at` is make, compile, open or run; `way` one of WAYS. With `once`, a file, only while that is not there."""

    def __init__(self, name: str, spec: Mapping[str, Any]) -> None:
        super().__init__(name, spec)
        self._break("make")

    def compile(self, graph: _core.Graph) -> bytes:
        for node in graph.nodes():
            if node["op"] == self.spec.get("refuses"):
                error = DoesNotFit("no room")
                error.node = node["name"]  # type: ignore[attr-defined]
                raise error
        self._break("compile")
        return super().compile(graph)

    def open(self, code: bytes, inputs: Sequence[Port], outputs: Sequence[Port]) -> Run:
        self._break("open")
        right = super().open(code, inputs, outputs)
        print("a vendor's greeting")  # that nobody may take for an answer

        def run(arrays: list[Any]) -> Sequence[Any]:
            self._break("run")
            return right(arrays)

        return run

    def _break(self, at: str) -> None:
        once = self.spec.get("once")
        if self.spec.get("at") != at or (once and Path(once).exists()):
            return
        if once:
            Path(once).touch()
        WAYS[self.spec["way"]]()
