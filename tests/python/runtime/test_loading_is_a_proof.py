"""Executables altered inside, with fitting hashes: one test for each way that once crashed, hung or lied."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn
from hetnn import _runtime
from hetnn.cli import main

NET = """graph @net {stage = imported, symbols = [n: 1..64 = 4]} (%x: f32[n,3,8,8]) -> (%y) {
  %w = constant() {value = f32[2,3,1,1] {1, 2, 3, 4, 5, 6}} : f32[2,3,1,1]
  %c = conv2d(%x, %w, _) {stride = [2,2], padding = [1,1]} : f32[n,2,5,5]
  %r = relu(%c) : f32[n,2,5,5]
  %y = permute(%r) {perm = [0,2,3,1]} : f32[n,5,5,2]
}
"""
LOOP = """graph @net {stage = imported, symbols = [rounds: 0..9 = 2]} (%x: f32[4], %n: i64[]) -> (%y) {
  %two = constant() {value = f32[4] {2, 3, 4, 5}} : f32[4]
  %y = loop(%n, _, %x, %two) {body = "mul 2 3 {} | give 1 4", carried = 1, count = rounds, sizes = []} : f32[4]
}
"""
STATIC = NET.replace(", symbols = [n: 1..64 = 4]", "").replace("[n,", "[1,")

Program = dict[str, Any]


@pytest.fixture(scope="module")
def dynamic() -> bytes:
    return hetnn.compile(NET)._engine.image()


@pytest.fixture(scope="module")
def npu() -> bytes:
    return hetnn.compile(STATIC, target="cpu+relu-mul")._engine.image()


def altered(image: bytes, alter: Callable[[Program], object]) -> bytes:
    """The executable with another program."""
    pieces = _runtime.take_apart(image)
    program = json.loads(pieces["program"])
    alter(program)
    pieces["program"] = json.dumps(program)
    return _runtime.put_together(**pieces)


def use(image: bytes) -> list[Any]:
    executable = hetnn.Executable.from_image(image)
    return executable.run([np.zeros(shape, np.float32) for shape in executable._engine.example_shapes().values()])


def commands(program: Program) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = next(s for s in program["subprograms"] if s["kind"] == "cpu")["code"]["commands"]
    return found


def buffer(program: Program, place: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = next(
        b for b in program["buffers"] if b["place"] == place and all(b[key] == more[key] for key in more)
    )
    return found


def code_of(program: Program) -> dict[str, Any]:
    code: dict[str, Any] = next(s for s in program["subprograms"] if s["kind"] == "npu")["code"]
    return code


def test_what_is_put_together_again_is_the_same(dynamic: bytes, npu: bytes) -> None:
    for image in (dynamic, npu):
        assert _runtime.put_together(**_runtime.take_apart(image)) == image
        assert use(altered(image, lambda program: None))[0].shape == use(image)[0].shape


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("where", ["header", "program", "report", "target", "code"])
def test_json_100000_deep_anywhere(dynamic: bytes, where: str) -> None:
    pieces = _runtime.take_apart(dynamic)
    if where == "header":
        text = ('{"__metadata__":' + DEEP + "}").encode()
        image = struct.pack("<Q", len(text)) + text
    elif where == "code":
        program = json.loads(pieces["program"])
        program["subprograms"][0]["code_hex"] = DEEP.encode().hex()
        del program["subprograms"][0]["code"]
        image = _runtime.put_together(**{**pieces, "program": json.dumps(program)})
    else:
        image = _runtime.put_together(**{**pieces, where: DEEP})
    with pytest.raises(hetnn.InvalidModel, match="is nested too deep; at most"):
        use(image)


def test_packed_on_an_arena_buffer(dynamic: bytes) -> None:
    image = altered(dynamic, lambda p: buffer(p, "arena").update(packed=True))
    with pytest.raises(hetnn.InvalidModel, match="it is packed and no constant; only constants are packed"):
        use(image)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size_bytes": 0}, "reads a packed weight of 0 bytes where 192 are wanted"),
        ({"offset_bytes": 1 << 40}, "lie outside the"),
        ({"shape": [4, 3, 1, 1]}, r"writes f32\[n,4,5,5\] into a buffer of f32\[n,2,5,5\]"),
        ({"packed": False}, "bytes do not hold"),
    ],
)
def test_a_packed_constants_size_offset_or_shape(dynamic: bytes, change: Program, message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=message):
        use(altered(dynamic, lambda p: buffer(p, "constant", packed=True).update(change)))


QUANTIZED = """graph @net {stage = imported} (%x: i8{0.1:2}[4,3]) -> (%y) {
  %y = dequantize(%x) : f32[4,3]
}
"""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dtype": "bool"}, "it must be of integers that may stand for reals, with finite positive scales; got bool"),
        ({"quant": {"scales": [0.1] * 3, "zero_point": 0}}, "got 3 scales and 1 zero points along axis 0"),
        ({"quant": {"scales": [0.1] * 4, "zero_point": [1, 2]}}, "got 4 scales and 2 zero points"),
    ],
)
def test_integers_that_stand_for_nothing(change: Program, message: str) -> None:
    image = hetnn.compile(QUANTIZED)._engine.image()
    with pytest.raises(hetnn.InvalidModel, match=message):
        use(altered(image, lambda p: buffer(p, "input").update(change)))


@pytest.mark.parametrize("place", ["input", "output"])
def test_a_buffer_placed_as_input_or_output_that_no_port_names(dynamic: bytes, place: str) -> None:
    image = altered(dynamic, lambda p: buffer(p, "arena").update(place=place, layout="plain"))
    with pytest.raises(hetnn.InvalidModel, match="that no port and no state names"):
        use(image)


@pytest.fixture(scope="module")
def loop() -> bytes:
    return hetnn.compile(LOOP)._engine.image()


def repeat(image: bytes) -> Any:
    return hetnn.Executable.from_image(image).run([np.ones(4, np.float32), np.array(2)])[0]


def test_a_body_is_the_loops_own(loop: bytes) -> None:
    def attrs(program: Program) -> dict[str, Any]:
        found: dict[str, Any] = next(c for c in commands(program) if c["op"] == "loop")["attrs"]
        return found

    def without_data(program: Program, position: int) -> None:
        inputs = next(c for c in commands(program) if c["op"] == "loop")["inputs"]
        kept = next(k for k in inputs if k >= 0 and program["buffers"][k].get("packed"))
        read = program["buffers"][inputs[position]]
        program["buffers"].append({**program["buffers"][kept], "dtype": read["dtype"], "shape": read["shape"]})
        inputs[position] = len(program["buffers"]) - 1

    assert repeat(altered(loop, lambda program: None)).tolist() == [4, 9, 16, 25]
    cases: list[tuple[Callable[[Program], object], str]] = [
        (lambda p: attrs(p).update(program=7), "it is number 7 of the 1 there are"),
        (lambda p: p.pop("bodies"), "it is number 0 of the 0 there are"),
        (lambda p: p["bodies"][0]["inputs"].pop(), "that no port and no state names"),
        (lambda p: p["bodies"][0]["outputs"].reverse(), r"it gives a f32\[4\] where bool\[\] is wanted"),
        (lambda p: attrs(p).update(body="mul 2 3 {} | give 4 4"), "must give one bool"),
        (lambda p: p["bodies"][0]["buffers"][0].update(shape=[5]), r"its inputs are not those of the loop"),
        (lambda p: buffer(p["bodies"][0], "constant").update(offset_bytes=1 << 40), r"bodies\[0\].* lie outside the"),
        (lambda p: without_data(p, 0), "input 0 of the loop has no data"),
        (lambda p: without_data(p, 2), "input 2 of the loop has no data"),
        (lambda p: next(c for c in commands(p) if c["op"] == "loop")["inputs"].__setitem__(2, -1), "value 0 is absent"),
    ]
    for alter, message in cases:
        with pytest.raises(hetnn.InvalidModel, match=message):
            repeat(altered(loop, alter))
    # Without its program the loop lacks what the program had of it.
    with pytest.raises(hetnn.InvalidModel, match="is computed by its meaning on memory that is not plain"):
        repeat(altered(loop, lambda p: attrs(p).update(program=-1)))


def test_no_inputs(dynamic: bytes) -> None:
    with pytest.raises(hetnn.InvalidModel, match="that no port and no state names"):
        use(altered(dynamic, lambda p: p["inputs"].clear()))


def test_what_is_read_was_written_before(dynamic: bytes) -> None:
    with pytest.raises(hetnn.InvalidModel, match="is read before anything writes it"):
        use(altered(dynamic, lambda p: commands(p).reverse()))
    with pytest.raises(hetnn.InvalidModel, match="is written a second time"):
        use(altered(dynamic, lambda p: commands(p).append(commands(p)[-1])))
    with pytest.raises(hetnn.InvalidModel, match="is never written by it"):
        use(altered(dynamic, lambda p: commands(p).pop()))
    with pytest.raises(hetnn.InvalidModel, match="is read and is none of its inputs"):
        use(altered(dynamic, lambda p: p["subprograms"][0]["inputs"].clear()))


@pytest.mark.parametrize("attribute", ["stride", "padding", "dilation"])
@pytest.mark.parametrize("value", [1 << 60, 1 << 62, (1 << 63) - 1, -(1 << 63)])
def test_strides_and_pads_near_2_to_60(dynamic: bytes, attribute: str, value: int) -> None:
    image = altered(dynamic, lambda p: commands(p)[0]["attrs"].update({attribute: [value, value]}))
    with pytest.raises(hetnn.InvalidModel, match=f"attribute '{attribute}' must hold integers of 32 bits"):
        use(image)


def test_output_shapes_of_2_to_48_elements_and_more() -> None:
    image = hetnn.compile("graph @g {stage = imported} (%x: f32[1,4]) -> (%y) {%y = relu(%x) : f32[1,4]}")

    def enlarged(size: int) -> hetnn.Executable:
        def enlarge(program: Program) -> None:
            for each in program["buffers"]:
                each["shape"] = [size, size]

        return hetnn.Executable.from_image(altered(image._engine.image(), enlarge))

    with pytest.raises(hetnn.DoesNotFit, match="would take 16777216 x 16777216 x 4; at most"):
        enlarged(1 << 24).run([np.broadcast_to(np.float32(0), (1 << 24, 1 << 24))])
    with pytest.raises(hetnn.InvalidModel, match=r"at most 2\^48 elements; found more in \[33554432,33554432\]"):
        enlarged(1 << 25)


@pytest.mark.parametrize("divide", ["floordiv", "mod"])
def test_division_of_the_least_integer_by_minus_one(dynamic: bytes, divide: str) -> None:
    least = "(-9223372036854775807 - 1)"
    image = altered(dynamic, lambda p: buffer(p, "arena", layout="nhwc").update(pitch=f"{divide}({least}, -1)"))
    with pytest.raises(hetnn.InvalidModel, match=r"exceeds 64-bit integers|is below"):
        use(image)


def test_a_product_of_22_sums_and_a_sum_of_20000_terms(dynamic: bytes) -> None:
    product = "*".join(f"(n + floordiv(n, {k}))" for k in range(3, 25))
    total = " + ".join(f"floordiv(n, {k})" for k in range(2, 20_002))
    for pitch, message in ((product, "has more than 256 parts"), (total, "holds a text of")):
        with pytest.raises(hetnn.InvalidModel, match=message):
            use(altered(dynamic, lambda p, pitch=pitch: buffer(p, "arena").update(pitch=pitch)))  # type: ignore[misc]


@pytest.mark.parametrize("perm", [[0, 2, 3, 7], [0, 2, 3, -1], [0, 2, 3], [0, 2, 3, 3], [0, 2, 3, "n"]])
def test_perm_out_of_range_in_a_kernel(dynamic: bytes, perm: list[Any]) -> None:
    with pytest.raises(hetnn.InvalidModel, match="perm must name every axis of the input once"):
        use(altered(dynamic, lambda p: commands(p)[-1]["attrs"].update(perm=perm)))


def test_perm_out_of_range_in_ir() -> None:
    with pytest.raises(hetnn.InvalidModel, match="perm must name every axis of the input once"):
        hetnn.compile(NET.replace("perm = [0,2,3,1]", "perm = [0,2,3,9]"))


@pytest.mark.parametrize("keepdim", ["true", "false"])
def test_a_sum_over_an_axis_of_a_rank_0_constant(keepdim: str) -> None:
    source = f"""graph @g {{stage = imported}} (%x: f32[2]) -> (%y) {{
      %c = constant() {{value = f32[] {{5}}}} : f32[]
      %s = sum(%c) {{axes = [0], keepdim = {keepdim}}} : f32[]
      %y = add(%x, %s) : f32[2]
    }}"""
    for target in ("cpu", "reference"):
        assert hetnn.compile(source, target=target)(np.ones(2, np.float32)).tolist() == [6, 6]
    with pytest.raises(hetnn.InvalidModel, match=r"axis must be in \[-1,1\) for rank 0; got 1"):
        hetnn.compile(source.replace("axes = [0]", "axes = [1]"))


def test_every_bit_of_the_npus_words(npu: bytes) -> None:
    """A stream with one bit flipped is refused, or takes as long and stays inside its memories."""
    pieces = _runtime.take_apart(npu)
    variant = code_of(json.loads(pieces["program"]))["variants"][0]
    begin, count = variant["words_offset_bytes"], variant["word_count"] * 64
    refused = 0
    for bit in range(0, count, 7):
        weights = bytearray(pieces["weights"])
        weights[begin + bit // 8] ^= 1 << bit % 8
        try:
            use(_runtime.put_together(**{**pieces, "weights": bytes(weights)}))
        except hetnn.InvalidModel:
            refused += 1
    assert refused > count / 7 / 4


def test_a_sheet_with_2_to_32_bytes_of_scratchpad(npu: bytes) -> None:
    def enlarge(program: Program) -> None:
        code = code_of(program)
        spec = json.loads(code["spec"])
        spec["sram"][0]["bytes"] = 1 << 32
        code["spec"] = json.dumps(spec)

    executable = hetnn.Executable.from_image(altered(npu, enlarge))
    executable.run([np.zeros((1, 3, 8, 8), np.float32)])
    assert executable.kept_bytes < 1 << 20


def test_40000_unused_buffers(dynamic: bytes) -> None:
    image = altered(dynamic, lambda p: p["buffers"].extend([dict(buffer(p, "arena"))] * 40_000))
    with pytest.raises(hetnn.InvalidModel, match="is written by nothing"):
        use(image)


def test_dram_bytes_2_to_37(npu: bytes) -> None:
    image = altered(npu, lambda p: code_of(p)["variants"][0].update(dram_bytes=1 << 37))
    with pytest.raises(hetnn.DoesNotFit, match="dram_bytes is 137438953472; a simulated NPU has at most"):
        use(image)


@pytest.mark.parametrize("which", ["report", "target"])
@pytest.mark.parametrize("text", ["null", "[]", '{"target": 3}', '{"devices": 3}', '{"devices": [{"name": "cpu"}]}'])
def test_report_and_target_null_or_of_other_kinds(dynamic: bytes, which: str, text: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=f"the executable: (the {which}|devices)"):
        use(_runtime.put_together(**{**_runtime.take_apart(dynamic), which: text}))


def test_an_executable_without_a_report_says_so(dynamic: bytes) -> None:
    pieces = {**_runtime.take_apart(dynamic), "report": "{}", "target": "{}"}
    executable = hetnn.Executable.from_image(_runtime.put_together(**pieces))
    with pytest.raises(hetnn.InvalidModel, match="the executable carries no report"):
        executable.report()


def test_unpack_pack_and_verify(dynamic: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, folder, again = tmp_path / "net.hetnn", tmp_path / "parts", tmp_path / "again.hetnn"
    file.write_bytes(dynamic)
    assert main(["unpack", str(file), str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "program.json",
        "report.json",
        "target.json",
        "weights.bin",
    ]
    assert main(["pack", str(folder), "-o", str(again)]) == 0
    assert again.read_bytes() == dynamic
    assert main(["verify", str(again)]) == 0
    program = json.loads((folder / "program.json").read_text())
    buffer(program, "constant", packed=True)["size_bytes"] = 64
    (folder / "program.json").write_text(json.dumps(program))
    assert main(["pack", str(folder), "-o", str(again)]) == 0
    capsys.readouterr()
    assert main(["verify", str(again)]) == 2
    assert "reads a packed weight of 64 bytes where 192 are wanted" in capsys.readouterr().err
    damaged = bytearray(dynamic)
    damaged[-1] ^= 1
    again.write_bytes(damaged)
    assert main(["verify", str(again)]) == 2
    assert "code_hash does not fit its bytes" in capsys.readouterr().err


def test_a_copy_outlives_changes_of_the_file(dynamic: bytes, tmp_path: Path) -> None:
    file = tmp_path / "net.hetnn"
    file.write_bytes(dynamic)
    executable = hetnn.load(file, copy=True)
    x = np.arange(192, dtype=np.float32).reshape(1, 3, 8, 8)
    before = executable(x)
    with file.open("r+b") as opened:
        opened.write(bytes(len(dynamic)))
    np.testing.assert_array_equal(executable(x), before)


def test_an_output_that_no_subprogram_declares_is_refused(npu: bytes) -> None:
    def alter(program: Program) -> None:
        program["subprograms"][-1]["outputs"] = []

    with pytest.raises(hetnn.InvalidModel, match=r"no subprogram writes buffer \d+, an output of the model"):
        use(altered(npu, alter))


MASK = """graph @net {stage = imported} (%x: bool[4]) -> (%y) {
  %m = constant() {value = bool[4] {1, 0, 1, 0}} : bool[4]
  %y = logical_and(%x, %m) : bool[4]
}
"""


def test_bools_that_are_neither_0_nor_1() -> None:
    executable = hetnn.compile(MASK)
    x = np.array([1, 1, 0, 0], np.uint8)
    assert executable(x.view(bool)).tolist() == [True, False, False, False]
    x[1] = 2
    with pytest.raises(hetnn.InvalidModel, match="input 'x': element 1 of a bool is the byte 2; expected 0 or 1"):
        executable(x.view(bool))
    pieces = _runtime.take_apart(executable._engine.image())
    at = buffer(json.loads(pieces["program"]), "constant")["offset_bytes"]
    weights = bytearray(pieces["weights"])
    weights[at + 2] = 7
    with pytest.raises(hetnn.InvalidModel, match="element 2 of a bool is neither 0 nor 1"):
        use(_runtime.put_together(**{**pieces, "weights": bytes(weights)}))
