"""Every pair of tokens of a compiled network is needed: without it, or where it says nothing, nothing is loaded."""

from __future__ import annotations

import json
import re
import struct
from typing import Any

import pytest

import hetnn
from hetnn import _core, _runtime
from npu.networks import NAMES, compile_for, network


def npu_code(program: dict[str, Any]) -> dict[str, Any]:
    (found,) = (each["code"] for each in program["subprograms"] if each["kind"] == "npu")
    return dict(found)


class Forger:
    """A file with one subgraph on an NPU: its instructions as lines, and files with other ones."""

    def __init__(self, executable: hetnn.Executable) -> None:
        self.pieces = _runtime.take_apart(executable._engine.image())
        self.program = json.loads(self.pieces["program"])
        (self.variant,) = npu_code(self.program)["variants"]
        begin, count = self.variant["words_offset_bytes"], self.variant["word_count"]
        words = struct.unpack_from(f"<{count}Q", self.pieces["weights"], begin)
        self.lines = [line.partition(";")[0].strip() for line in _core.disassemble(list(words)).splitlines()]

    def pairs(self) -> list[tuple[int, int]]:
        """Where each token is given and taken: of two engines, in the order in which they are given."""
        given: dict[tuple[str, str], list[int]] = {}
        out = []
        for at, line in enumerate(self.lines):
            told = {"from": "0", "to": "0", "at": "0", **dict(re.findall(r"(\w+)=(\d+)", line))}
            if line.startswith("signal"):
                given.setdefault((told["from"], told["to"]), []).append(at)
            elif line.startswith("wait"):
                out.append((given[told["from"], told["at"]].pop(0), at))
        assert not any(given.values())
        return out

    def file(self, lines: list[str]) -> bytes:
        """The same with other instructions, not more of them; what it says of its words fits."""
        words = _core.assemble("\n".join(lines))
        begin = self.variant["words_offset_bytes"]
        self.variant["word_count"] = len(words)
        self.variant["runs"] = [[0, len(words) - 1]]
        weights = bytearray(self.pieces["weights"])
        struct.pack_into(f"<{len(words)}Q", weights, begin, *words)
        return _runtime.put_together(**{**self.pieces, "program": json.dumps(self.program), "weights": bytes(weights)})


def dropped(lines: list[str], given: int, taken: int) -> list[str]:
    return [line for at, line in enumerate(lines) if at not in (given, taken)]


def to_oneself(lines: list[str], given: int, taken: int) -> list[str]:
    """The engine that waits tells itself."""
    waits = re.findall(r"at=(\d+)", lines[taken])
    engine = waits[0] if waits else "0"
    out = list(lines)
    out[given], out[taken] = f"signal from={engine} to={engine}", f"wait at={engine} from={engine}"
    return out


def too_early(lines: list[str], given: int, taken: int) -> list[str]:
    """Given before the instruction that it tells of."""
    del taken
    before = given
    while lines[before].startswith(("signal", "wait")):
        before -= 1
    out = list(lines)
    out.insert(before, out.pop(given))
    return out


FORGERIES = (dropped, to_oneself, too_early)


def accepted(name: str) -> tuple[int, list[str]]:
    """How many pairs of a network were tried, and which forged files were not refused for their order."""
    one = network(name)
    forger = Forger(compile_for(one.graph, one.sheet()))
    hetnn.Executable.from_image(forger.file(forger.lines))
    pairs = forger.pairs()
    wrong = []
    for forge in FORGERIES:
        for given, taken in pairs:
            image = forger.file(forge(forger.lines, given, taken))
            try:
                hetnn.Executable.from_image(image)
                wrong.append(f"{name}: {forge.__name__} {given}, {taken} is loaded")
            except hetnn.InvalidModel as error:
                # The order is proved before cycles are compared with those that the file states.
                if "unordered: instruction" not in str(error):
                    wrong.append(f"{name}: {forge.__name__} {given}, {taken}: {error}")
    return len(pairs), wrong


@pytest.mark.parametrize("name", NAMES)
def test_without_a_token_nothing_is_loaded(name: str) -> None:
    tried, wrong = accepted(name)
    assert tried > 5
    assert wrong == []
