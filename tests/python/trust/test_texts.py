"""Texts from anywhere: the IR, data sheets, targets, planning problems, topologies and tables are read or refused."""

from __future__ import annotations

import copy
import json
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn
from hetnn import _core
from hetnn.cli import main
from hetnn.files import MOST_TEXT_BYTES, read_bytes, read_text
from hetnn.target import resolve_target

HEAD = "graph @g {stage = imported} "
RELU = HEAD + "(%a: f32[4]) -> (%y) {\n  %y = relu(%a) : f32[4]\n}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(%a: f32[4]) -> (%y) {\n %c = constant() {value = f32[1000000000] {1}} : f32[1000000000]\n", "got 1;"),
        ("(%a: f32[4]) -> (%y) {\n %c = constant() {value = f32[4] {1, 2}} : f32[4]\n", "expected 4 values, got 2"),
        ("(%a: f32[4]) -> (%y) {\n %c = constant() {value = f32[-2] {1}} : f32[-2]\n", "at least 0; found -2"),
        ("(%a: f32[-4]) -> (%y) {\n %y = relu(%a) : f32[-4]\n}", "a size is at least 0; found -4"),
        ("(%a: f32[1,4611686018427387904]) -> (%y) {\n", "at most 2^48 elements"),
        ("(%a: f32[4294967296,4294967296]) -> (%y) {\n", "at most 2^48 elements"),
        ("(%a: f32[99999999999999999999999]) -> (%y) {\n", "exceeds 64-bit integers"),
        ("() -> (%y) {\n %y = arange() {start = 0, end = 9223372036854775807} : i64[9223372036854775807]\n}", "2^48"),
        ("(%a: f32[mod(4,0)]) -> (%y) {\n", "divided by zero"),
        ("(%a: f32[" + "(" * 100_000 + "]) -> (%y) {\n", "dimension"),
    ],
    ids=["4 GiB", "too few", "negative", "negative input", "2^62", "2^64", "10^23", "arange", "mod 0", "deep"],
)
def test_ir_texts_that_ask_for_too_much_are_refused(text: str, message: str) -> None:
    with pytest.raises((hetnn.InvalidModel, hetnn.DoesNotFit), match=re.escape(message)):
        hetnn.compile(HEAD + text)


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        ("bool{0.05:-3}[2]", "must be of integers that may stand for reals, with finite positive scales; got bool"),
        ("f64{0.05}[2]", "must be of integers that may stand for reals, with finite positive scales; got f64"),
        (
            "i8{-1}[2]",
            "must be of integers that may stand for reals, with finite positive scales; got i8 and 1 scales from -1",
        ),
        (
            "i8{nan}[2]",
            "must be of integers that may stand for reals, with finite positive scales; got i8 and 1 scales from nan",
        ),
        ("i8{0.1,1e-60}[2]", "must have scales that f32 has, from 1.4e-45 to 3.4e38; got 1e-60 for i8"),
        ("u8{1e300}[2]", "must have scales that f32 has, from 1.4e-45 to 3.4e38; got 1e+300 for u8"),
        (
            "i8{0.1,0.2,0.3}[8]",
            "must have one scale, or one for each index of an axis, and as many zero points or one; got 3 scales",
        ),
        (
            "i8{0.1,0.2}[]",
            "must have one scale, or one for each index of an axis, and as many zero points or one; got 2 scales",
        ),
        (
            "i8{0.1,0.2:1,2,3}[2]",
            "must have one scale, or one for each index of an axis, and as many zero points or one; got 2 scales and 3",
        ),
        ("i8{0.1:500}[2]", "must have a zero point in [-128, 127]; got 500"),
    ],
)
def test_inputs_whose_integers_stand_for_nothing_are_refused(type_: str, message: str) -> None:
    shape = type_[type_.index("[") :]
    text = f"{HEAD}(%a: {type_}) -> (%y) {{\n  %y = dequantize(%a) : f32{shape}\n}}\n"
    for target in ("reference", "cpu"):
        with pytest.raises(hetnn.InvalidModel, match=re.escape(f"the input 'a' {message}")):
            hetnn.compile(text, target)


def test_normalized_integers_are_cut_towards_zero_and_no_number_gives_the_least() -> None:
    text = (
        HEAD
        + """(%a: i64[2,2], %m: i64[2], %v: i64[2]) -> (%y) {
  %y = batch_norm(%a, _, _, %m, %v) {eps = 0.0} : i64[2,2]
}
"""
    )
    run = hetnn.compile(text)
    values = np.array([[9, 1], [-9, 2]], np.int64)
    got = run(values, np.array([0, 1], np.int64), np.array([16, 0], np.int64))
    least = np.iinfo(np.int64).min  # 0 / 0 and 1 / 0
    np.testing.assert_array_equal(got, [[2, least], [-2, least]])


SHEET: dict[str, Any] = resolve_target("relu-only")["devices"][1]["spec"]
WEIGHTS = ",".join(["0.5"] * 108)
CONV = (
    HEAD + "(%a: f32[1,3,8,8]) -> (%y) {\n %c = constant() {value = f32[4,3,3,3] {" + WEIGHTS + "}} : f32[4,3,3,3]\n"
    " %b = conv2d(%a, %c) : f32[1,4,6,6]\n %y = relu(%b) : f32[1,4,6,6]\n}"
)


def changed(path: list[Any], value: Any) -> dict[str, Any]:
    sheet = copy.deepcopy(SHEET)
    at: Any = sheet
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return sheet


COPY = HEAD + "(%a: f32[4,16]) -> (%y) {\n  %y = reshape(%a) {shape = [16,4]} : f32[16,4]\n}\n"


@pytest.mark.parametrize("size", [1, 3, 16, 63, 64, 65, 128])
def test_a_scratchpad_of_a_few_bytes_is_no_trap(size: int) -> None:
    began = time.monotonic()
    hetnn.compile(CONV, changed(["sram", 0, "bytes"], size), rewrite="always", strategy="take-all")
    hetnn.compile(COPY, changed(["sram", 0, "bytes"], size), rewrite="always", strategy="take-all")
    assert time.monotonic() - began < 10


def test_a_clock_of_1_hertz_is_a_slow_clock() -> None:
    plan = hetnn.plan(CONV, changed(["clock_hz"], 1), strategy="take-all")
    assert plan.report("dict")["predicted_us"] > 1e6


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["ops", "conv3dd"], {"dtypes": ["f32"]}, "ops.conv3dd is no operator of hetnn; the nearest names are conv2d"),
        (
            ["ops", "conv2d", "limits", "kernel_x_max"],
            3,
            "kernel_x_max bounds 'kernel_x'; conv2d has the metric",
        ),
        (["ops", "add", "limits"], {"kernel_h_max": 3}, "add has no metrics"),
        (["clock_hz"], 0, "clock_hz must be a number in [1, 1e+12]; found 0"),
        (["sram", 0, "bytes"], 2**62, "sram[0].bytes must be an integer in"),
        (["mac", "macs_per_cycle"], 2**62, "macs_per_cycle must be an integer in"),
    ],
)
def test_data_sheets_that_make_no_sense_are_refused(path: list[Any], value: Any, message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=re.escape(message)):
        hetnn.compile(CONV, changed(path, value))


NODE = {"id": "a", "inputs": [], "time_us": {"cpu": 1}}


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        ({"devices": [{"name": f"d{k}"} for k in range(20_000)], "nodes": []}, "20000 devices; at most 256"),
        ({"devices": [{"name": "cpu"}], "nodes": [NODE, NODE]}, "this id is used twice"),
        ({"devices": [{"name": "cpu"}, {"name": "cpu"}], "nodes": [NODE]}, "named twice"),
        ({"devices": [{"name": "cpu"}], "nodes": [{**NODE, "macs": 2**70}]}, r"macs must be at most 1e\+15"),
        ({"devices": [{"name": "cpu"}], "nodes": [{**NODE, "output_bytes": 2**62}]}, "output_bytes must be at most"),
    ],
    ids=["devices", "nodes", "names", "macs", "bytes"],
)
def test_planning_problems_that_make_no_sense_are_refused(problem: dict[str, Any], message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=message):
        hetnn.plan_problem(problem)


CONVOLUTIONS = "Layer name,IFMAP Height,IFMAP Width,Filter Height,Filter Width,Channels,Num Filter,Strides,\n"


def call(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = main(argv)
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize(
    ("row", "more", "message"),
    [
        ("c,1048576,1048576,3,3,1048576,1048576,1,", [], "reads more than 2^53 values"),
        ("c,1048576,1048576,1,1,4096,16777216,1,", [], "takes more than 2^53 cycles"),
        ("c,16777216,16777216,16777216,16777216,16777216,1,1,", [], "reads more than 2^53 values"),
        ("c,8,8,3,3,4,4,1,", ["--bandwidth", "1e-300"], "takes more than 2^53 cycles"),
        ("c,8,8,3,3,4,4,0,", [], "expected a size from 1 to"),
    ],
)
def test_topologies_that_overflow_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, row: str, more: list[str], message: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(CONVOLUTIONS + row + "\n")
    status, _, err = call(capsys, "simulate", "--topology", str(path), *more)
    assert status == 2
    assert message in err


BUFFERS = "id,lower,upper,size\na,0,2,5\nb,1,3,5\n"


def test_a_byte_order_mark_is_no_part_of_a_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    buffers, layers = tmp_path / "b.csv", tmp_path / "t.csv"
    buffers.write_bytes(b"\xef\xbb\xbf" + BUFFERS.encode())
    layers.write_bytes(b"\xef\xbb\xbf" + CONVOLUTIONS.encode() + b"c,8,8,3,3,4,4,1,\n")
    assert call(capsys, "allocate", str(buffers), "--capacity", "100")[0] == 0
    assert call(capsys, "simulate", "--topology", str(layers))[0] == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (BUFFERS.encode("utf-16"), "is a text in UTF-16; expected UTF-8"),
        (BUFFERS.encode("utf-32"), "is a text in UTF-32; expected UTF-8"),
        ("id,lower,upper,size\né,0,1,1\n".encode("latin-1"), "is no UTF-8 text: byte 0xe9 at 20"),
        (b"id,lower,upper,size\n" + b"a" * 131_073 + b",0,1,1\n", "no CSV: field larger than field limit"),
        (b"id,lower,upper,size\na,0,2,5\na,1,3,5\n", "line 3: the id 'a' is used twice"),
        (b"id,lower,upper,size\na,0,2,99999999999999999999\n", "expected numbers of at most 2^62"),
        (b"id,lower,upper,size\na,0,2,-5\n", "size must be at least 0; got -5"),
        (b"id,lower,upper,size\na,0,2,4611686018427387904\nb,0,2,5\n", "add up to more than 2^62 bytes"),
        (b"", "got nothing"),
    ],
    ids=["UTF-16", "UTF-32", "latin-1", "128 KB", "twice", "large", "negative", "sum", "empty"],
)
def test_tables_that_are_none_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "b.csv"
    path.write_bytes(content)
    status, out, _ = call(capsys, "allocate", str(path), "--capacity", "100", "--json")
    error = json.loads(out)["error"]
    assert (status, error["kind"]) == (2, "InvalidModel")
    assert message in error["message"]


@pytest.mark.parametrize("command", ["plan --problem", "compile -o x", "simulate --topology", "targets"])
def test_texts_in_other_encodings_are_refused_everywhere(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    name, *more = command.split(" ")
    path = tmp_path / ("t.json" if name == "targets" else "t.ir")
    path.write_bytes("graph @é".encode("latin-1"))
    status, _, err = call(capsys, name, *more, str(path))
    assert status == 2
    assert "is no UTF-8 text" in err


@pytest.mark.parametrize("capacity", ["-5", "99999999999999999999"])
def test_a_capacity_that_is_none_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, capacity: str) -> None:
    path = tmp_path / "b.csv"
    path.write_text(BUFFERS)
    assert call(capsys, "allocate", str(path), f"--capacity={capacity}")[0] == 2


def crowd(count: int) -> list[tuple[str, int, int, int]]:
    """Buffers that fit together badly."""
    return [(str(k), k * 7 % 97, k * 7 % 97 + 3 + k % 11, 1 + k * 31 % 1009) for k in range(count)]


@pytest.mark.parametrize(("count", "heuristic"), [(200, False), (2_000, False), (2_000, True), (8_000, False)])
def test_the_time_limit_of_allocate_holds(count: int, heuristic: bool) -> None:
    rows = crowd(count)
    bound = _core.allocate(rows, 2**40, 0.1, True)["lower_bound"]
    began = time.monotonic()
    answer = _core.allocate(rows, bound, 0.5, heuristic)
    assert time.monotonic() - began < 4
    assert answer["lower_bound"] == bound


def test_buffers_that_all_meet_are_not_kept_in_pairs() -> None:
    with pytest.raises(hetnn.DoesNotFit, match="pairs of the 20000 buffers live at the same time"):
        _core.allocate([(str(k), 0, 1, 1) for k in range(20_000)], 10, 1.0, False)


ESCAPE = "\x1b]0;pwned\x07\x1b[31m\u202e"


def in_a_topology(path: Path) -> list[str]:
    path.write_text(f"{CONVOLUTIONS}c{ESCAPE},8,8,3,3,4,4,1,\n")
    return ["simulate", "--topology", str(path)]


def in_an_error(path: Path) -> list[str]:
    path.write_text(f"graph @g{ESCAPE} {{stage")
    return ["compile", str(path), "-o", str(path) + ".hetnn"]


def in_a_data_sheet(path: Path) -> list[str]:
    path.write_text(json.dumps({**SHEET, "name": f"npu{ESCAPE}"}))
    model = path.with_suffix(".model")
    model.write_text(CONV)
    return ["plan", str(model), "--target", str(path)]


@pytest.mark.parametrize(("write", "suffix"), [(in_a_topology, "csv"), (in_an_error, "ir"), (in_a_data_sheet, "json")])
def test_names_do_not_steer_the_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, write: Callable[[Path], list[str]], suffix: str
) -> None:
    _, out, err = call(capsys, *write(tmp_path / f"t.{suffix}"))
    assert not set(out + err) & set("\x1b\x07\u202e")
    assert "\\x1b" in out + err


def test_errors_in_python_do_not_steer_the_terminal() -> None:
    with pytest.raises(hetnn.InvalidModel) as raised:
        hetnn.plan(RELU, f"npu{ESCAPE}")
    assert "\x1b" not in str(raised.value)


def test_what_targets_prints_is_a_target_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "a+b"
    folder.mkdir()
    for name in ("relu-only", "cpu", "cpu+relu-only+relu-mul", "systolic-8x8"):
        status, out, _ = call(capsys, "targets", name, "--json")
        assert status == 0
        path = folder / "t+1.json"
        path.write_text(out)
        for spelled in (str(path), path, f"cpu+{path}"):
            assert resolve_target(spelled) == resolve_target(name)
    assert hetnn.plan(CONV, path).report("dict")["target"] == "cpu+systolic-8x8"


def test_devices_of_no_name_are_called_as_their_kind(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["targets", "relu-only", "--json"]) == 0
    target = json.loads(capsys.readouterr().out)
    for part in (target, *target["devices"]):
        del part["name"]
    (tmp_path / "t.json").write_text(json.dumps(target))
    hetnn.compile(RELU, tmp_path / "t.json").save(tmp_path / "m.hetnn")
    x = np.array([-1, 0, 2, -3], np.float32)
    assert hetnn.load(tmp_path / "m.hetnn")(x).tolist() == [0, 0, 2, 0]


def test_a_subgraph_of_an_npu_may_be_of_many_instructions() -> None:
    """Their text is longer than a mebibyte."""
    count = 13_000
    lines = "".join(f"  %x{k + 1} = {'relu' if k % 2 else 'neg'}(%x{k}) : f32[1,8]\n" for k in range(count))
    exe = hetnn.compile(HEAD + f"(%x0: f32[1,8]) -> (%x{count}) {{\n{lines}}}\n", "relu-only")
    assert exe(np.full((1, 8), -2, np.float32)).tolist() == [[0] * 8]


def test_a_path_may_hold_any_character(tmp_path: Path) -> None:
    path = tmp_path / "c++ +é" / "my+npu.json"
    path.parent.mkdir()
    path.write_text(json.dumps({**SHEET, "name": "mine"}))
    for spelled in (str(path), path, f"cpu+{path}", f"cpu+{path}+relu-mul"):
        assert resolve_target(spelled)["devices"][1]["name"] == "mine"


@pytest.mark.parametrize("content", ["3", "null", "[]", '"relu-only"'])
def test_target_json_that_is_no_object_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str
) -> None:
    path = tmp_path / "t.json"
    path.write_text(content)
    status, _, err = call(capsys, "targets", str(path))
    assert status == 2
    assert "data sheet must be an object" in err


@pytest.mark.parametrize("use", [hetnn.load, hetnn.compile, lambda path: hetnn.load(path, copy=True)])
def test_a_pipe_is_no_file_and_nobody_waits_for_it(use: Callable[[Path], Any], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(hetnn.InvalidModel, match="is no file"):
        use(pipe)


@pytest.mark.parametrize(
    ("name", "begins", "bytes_", "use"),
    [
        ("graph.txt", b"graph @g", MOST_TEXT_BYTES, hetnn.compile),
        ("target.json", b"{", MOST_TEXT_BYTES, lambda path: hetnn.compile(RELU, str(path))),
        ("model.onnx", b"\x08\x08", 1 << 31, hetnn.compile),
    ],
)
def test_a_file_beyond_every_limit_is_not_read(
    name: str, begins: bytes, bytes_: int, use: Callable[[Path], Any], tmp_path: Path
) -> None:
    with (tmp_path / name).open("wb") as file:
        file.write(begins)
        file.truncate(bytes_ + 1)
    with pytest.raises(hetnn.InvalidModel, match="is larger than"):
        use(tmp_path / name)


def test_a_text_may_come_out_of_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "target.json"
    os.mkfifo(pipe)
    text = json.dumps(resolve_target("cpu"))
    writer = threading.Thread(target=pipe.write_text, args=[text])
    writer.start()
    assert read_text(pipe) == text
    writer.join()


def test_a_pipe_that_never_ends_is_refused() -> None:
    with pytest.raises(hetnn.InvalidModel, match="'/dev/zero' is larger than 5000000 bytes"):
        read_bytes("/dev/zero", 5_000_000)
