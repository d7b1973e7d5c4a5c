"""Writes the seeds of the fuzzers: small inputs that are accepted, into tests/fuzz/corpus.

PYTHONPATH=tests/python python tests/fuzz/make_corpus.py
"""

from __future__ import annotations

import json
import random
import re
import struct
import tempfile
from pathlib import Path

import numpy as np

import hetnn
from fuzz.fuzz_calls import NUMPY, TYPE, read_attrs
from fuzz.fuzz_executables import CONVOLUTION, DYNAMIC, QUANTIZED, STATE, make_bases
from hetnn import _core, _runtime
from hetnn.serve.proto import MESSAGES
from hetnn.target import resolve_target

CORPUS = Path(__file__).parent / "corpus"


def write(folder: str, name: str, content: bytes | str) -> None:
    path = CORPUS / folder / name.replace(" ", "_")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def containers() -> None:
    for name, image in make_bases().items():
        pieces = _runtime.take_apart(image)
        program = json.dumps(json.loads(pieces["program"]), separators=(",", ":"))
        write("container", name, program.encode() + b"\0" + bytes(pieces["weights"]))


def graph_of(op: dict[str, object], sample: str) -> str:
    """A graph of one node, as a sample of an operator describes it."""
    inside = sample[sample.index("(") + 1 : sample.rindex(")")]
    builder = _core.GraphBuilder(str(op["name"]))
    builder.add_symbol("n", 1, 64, 3)
    values: list[object] = []
    for k, match in enumerate(TYPE.finditer(re.sub(r"\{[^}]*\}", "", inside))):
        dims = [part for part in (match[2] or "").split(",") if part]
        shape = [int(part) if part.isdigit() else 3 for part in dims]
        if match[0] == "_":
            values.append(None)
        elif k == 0:
            values.append(builder.add_input(f"i{k}", match[1], shape))
        else:
            values.append(builder.constant(np.ones(shape, NUMPY[match[1]])))
    kinds = {attr["name"]: attr["kind"] for attr in op["attrs"]}  # type: ignore[attr-defined]
    made = builder.create(op["name"], values, read_attrs(sample[sample.rindex(")") :], kinds))
    for k, value in enumerate(made):
        builder.output(value, f"o{k}")
    return str(builder.finish().print())


def ir_texts() -> None:
    fill = {"WEIGHTS": 108, "MATRIX": 40, "BYTES": 16, "SQUARE": 64}
    for name, text in {"convolution": CONVOLUTION, "dynamic": DYNAMIC, "quantized": QUANTIZED, "state": STATE}.items():
        for word, count in fill.items():
            text = text.replace(word, ", ".join(str(k % 7 - 3) for k in range(count)))
        write("ir_text", name, text)
    for op in _core.operators():
        for sample in op["samples"]:
            try:
                write("ir_text", f"op_{op['name']}", graph_of(op, sample))
                break
            except (hetnn.Error, KeyError, ValueError):  # of a kind that a line does not say
                continue


def data_sheets() -> None:
    for name in ("relu-only", "relu-mul", "relu-table", "relu-rows", "systolic-8x8"):
        write("data_sheet", name, json.dumps(resolve_target(name)["devices"][1]["spec"], separators=(",", ":")))


def schedules() -> None:
    """For the network and the NPU of fuzz_schedule_text.cpp."""
    network, target = (
        (CORPUS.parent / f"{name}.inc").read_text().partition("(")[2].rpartition(")")[0]
        for name in ("npu_network", "small_npu")
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.hetnn"
        hetnn.compile(network, json.loads(target), strategy="take-all", rewrite="always").save(path)
        printed = _core.schedules(str(path))
    write("schedule_text", "printed", printed)
    write("schedule_text", "without_places", re.sub(r" at=\d+", "", printed))
    write("schedule_text", "without_buffers", re.sub(r"(?m)^  (?!layer).*\n", "", printed))


def npu_words() -> None:
    for name in ("npu", "int8 npu", "rows npu", "systolic"):
        pieces = _runtime.take_apart(make_bases()[name])
        for subprogram in json.loads(pieces["program"])["subprograms"]:
            for k, variant in enumerate(subprogram.get("code", {}).get("variants", [])):
                begin = variant["words_offset_bytes"]
                write("npu_words", f"{name} {k}", bytes(pieces["weights"][begin : begin + 8 * variant["word_count"]]))
    write("npu_words", "end", struct.pack("<Q", *_core.assemble("end")))


def problems() -> None:
    for kind in ("layered", "series-parallel", "random", "chain", "fan", "transformer"):
        problem = hetnn.generate_problem(kind, 12, seed=1)
        write("problem", kind, json.dumps(problem, separators=(",", ":")))


def topologies() -> None:
    write("topology", "convolutions", "\x09Layer,H,W,FH,FW,C,F,S\nstem,224,224,7,7,3,64,2,\nlast,7,7,1,1,512,16,1,\n")
    write("topology", "products", "\x20Layer,M,N,K\nfirst,128,384,384\nlast,1,1000,512\n")


def buffers() -> None:
    def number(value: int) -> int:
        return value.bit_length() << 56 | value

    rows = [(0, 4, 3), (2, 6, 4), (5, 9, 3), (0, 9, 2), (3, 5, 1), (6, 8, 4)]
    words = [4, number(10), *(number(value) for row in rows for value in row)]
    write("buffers", "six", struct.pack(f"<{len(words)}Q", *words))


def arrays() -> None:
    """Each a kind (0: with data, 2: without), type + 2, rank + 2, sizes, data."""

    def array(kind: int, dtype: int, dims: list[int], data: bytes = b"") -> bytes:
        return bytes([kind, dtype + 2, len(dims) + 2, *dims]) + data

    rows = np.array([[1, -2, 3], [-4, 5, -6]], np.float32).tobytes()
    places, flags = np.array([3, 0]).tobytes(), b"\1\0\1"
    inputs = array(0, 0, [2, 3], rows) + array(0, 8, [2], places) + array(0, 9, [3], flags)
    write("arrays", "made", b"\0" + inputs + array(2, 0, []) + array(2, 0, []) + array(2, 9, []))
    given = array(0, 0, [2, 3], bytes(24)) + array(0, 0, [2], bytes(8)) + array(0, 9, [3], bytes(3))
    write("arrays", "given", b"\0" + inputs + given)


def calls() -> None:
    """Any bytes choose a call."""
    for seed in range(64):
        write("calls", str(seed), random.Random(seed).randbytes(96))


def requests() -> None:
    """Both forms with raw and written tensors; the first byte says how many bytes behind the JSON are raw."""
    values = np.ones(6, np.float32).tobytes()
    row = {"name": "a", "datatype": "FP32", "shape": [2, 3]}
    small = {"name": "b", "datatype": "INT8", "shape": [2], "data": [[1], [-2]]}
    words, coded = {"name": "t", "datatype": "BYTES", "shape": [2]}, b"\1\0\0\0a\0\0\0\0"
    shared = {"shared_memory_region": "r", "shared_memory_offset": 4, "shared_memory_byte_size": 8}
    outputs = [{"name": "b", "parameters": {"binary_data": False}}, {"name": "a", "parameters": shared}]
    parameters = {"sequence_id": "s", "sequence_start": True, "priority": 1, "timeout": 5, "binary_data_output": True}
    written = {
        "inputs": [{**row, "data": [1, 2, float("nan"), 4, 5, 6]}, small, {**words, "data": ["a", ""]}],
        "outputs": outputs,
        "id": "i",
    }
    raw_row, raw_words = ({**one, "parameters": {"binary_data_size": size}} for one, size in ((row, 24), (words, 9)))
    raw = {"inputs": [raw_row, small, raw_words], "parameters": parameters}
    write("requests", "http_written", b"\0" + json.dumps(written).encode())
    write("requests", "http_raw", bytes([len(values + coded) << 2]) + json.dumps(raw).encode() + values + coded)
    message = MESSAGES["ModelInferRequest"](model_name="two", model_version="1", id="i")
    message.parameters["sequence_id"].int64_param = 3
    message.parameters["sequence_end"].bool_param = True
    rows = (("a", "FP32", [2, 3], values), ("b", "INT8", [2], b"\1\2"), ("t", "BYTES", [2], coded))
    for name, datatype, shape, content in rows:
        message.inputs.add(name=name, datatype=datatype, shape=shape)
        message.raw_input_contents.append(content)
    write("requests", "grpc_raw", b"\1" + message.SerializeToString())
    del message.raw_input_contents[:]
    message.inputs[0].contents.fp32_contents.extend(range(6))
    message.inputs[1].contents.int_contents.extend((1, -2))
    message.inputs[2].contents.bytes_contents.extend((b"a", b""))
    message.outputs.add(name="a").parameters["shared_memory_region"].string_param = "r"
    message.outputs[0].parameters["shared_memory_byte_size"].uint64_param = 8
    write("requests", "grpc_typed", b"\1" + message.SerializeToString())


def dictionary(name: str, words: set[str]) -> None:
    """A line a word; libFuzzer inserts them."""
    lines = sorted('"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' for word in words if word)
    (CORPUS.parent / f"{name}.dict").write_text("\n".join(lines) + "\n")


def dictionaries() -> None:
    words = {"graph @", "{stage = imported", "symbols = [n: 1..8 = 4]", "constant() {value = ", "f32[n,4]", " : ", "%"}
    for op in _core.operators():
        words |= {f"{op['name']}(", *(f"{attr['name']} = " for attr in op["attrs"])}
    dictionary("ir_text", words)


if __name__ == "__main__":
    containers()
    ir_texts()
    data_sheets()
    schedules()
    npu_words()
    problems()
    topologies()
    buffers()
    arrays()
    calls()
    requests()
    dictionaries()
