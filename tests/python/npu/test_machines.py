"""Every figure of a data sheet is read: what it says is in the cycles and in what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import hetnn
from hetnn import _core
from hetnn.cli import main
from hetnn.targets import load_spec
from npu.programs import Program, build

SPEC = load_spec("relu-only")


def with_figures(**parts: Any) -> dict[str, Any]:
    """relu-only with other figures: of a part that is an object, and of the scratchpad, those given are replaced."""
    spec: dict[str, Any] = json.loads(json.dumps(SPEC))
    for part, figures in parts.items():
        old = spec["sram"][0] if part == "sram" else spec.get(part)
        if isinstance(old, dict) and isinstance(figures, dict):
            old.update(figures)
        else:
            spec[part] = figures
    return spec


def scratchpads(**sizes: int) -> list[dict[str, Any]]:
    """Of relu-only's rate, by name and bytes."""
    return [{**SPEC["sram"][0], "name": name, "bytes": size} for name, size in sizes.items()]


def layer(shape: tuple[int, int, int], filters: int, kernel: int = 1, count: int = 1) -> str:
    """Convolutions of i8 one behind the other, as IR text; weights count up."""
    channels, height, width = shape
    lines, name = [], "x"
    for k in range(count):
        size = f"i8[{filters},{channels},{kernel},{kernel}]"
        total = filters * channels * kernel * kernel
        values = ", ".join(str(value % 255 - 127) for value in range(k, total + k))
        typed = f"i8{{0.01}}[{filters},{channels},{kernel},{kernel}]"
        lines.append(f"%w{k} = constant() {{value = {size} {{{values}}}, q_scale = [0.01]}} : {typed}")
        pad = kernel // 2
        out = f"i8{{0.5}}[1,{filters},{height},{width}]"
        lines.append(f"%y{k} = conv2d(%{name}, %w{k}) {{padding = [{pad},{pad}], q_scale = [0.5]}} : {out}")
        name, channels = f"y{k}", filters
    port = f"%x: i8{{0.05}}[1,{shape[0]},{height},{width}]"
    return f"graph @g {{stage = imported}} ({port}) -> (%{name}) {{\n  " + "\n  ".join(lines) + "\n}"


COMPUTES = layer((64, 16, 16), 64, kernel=3)
MOVES = layer((64, 2, 2), 256)


def built(graph: str, spec: dict[str, Any], tmp_path: Any) -> Program:
    """Compiled for the sheet alone; values are those of relu-only."""
    program = build(graph, spec, tmp_path)
    shape = [int(size) for size in graph.split("[", 1)[1].split("]")[0].split(",")]
    x = np.random.default_rng(4).integers(-128, 128, shape, dtype=np.int8)
    want = hetnn.compile(graph, "relu-only", strategy="take-all")(x)
    np.testing.assert_array_equal(program.executable(x), want)
    return program


def test_work_is_dealt_to_cores(tmp_path: Any) -> None:
    quick = {"bytes_per_cycle": 1000, "read_latency_cycles": 0}
    one, four = (built(COMPUTES, with_figures(cores=cores, dram=quick), tmp_path).cycles for cores in (1, 4))
    assert 3 < one / four < 4.01
    pooled = """graph @p {stage = imported} (%x: i8{0.05}[1,64,32,32]) -> (%y) {
  %y = max_pool2d(%x) {kernel = [3,3], stride = [1,1], q_scale = [0.05]} : i8{0.05}[1,64,30,30]
}"""
    one, four = (built(pooled, with_figures(cores=cores), tmp_path).cycles for cores in (1, 4))
    assert 2 < one / four < 4.01


def test_an_engine_is_no_faster_than_its_scratchpad(tmp_path: Any) -> None:
    """Every byte that a convolution reads and writes passes the ports of the banks."""
    fast = built(COMPUTES, SPEC, tmp_path)
    narrow = built(COMPUTES, with_figures(sram={"banks": 1, "bytes_per_cycle": 1}), tmp_path)
    least = 64 * 16 * 16 * 2 + 64 * 64 * 9
    assert fast.cycles < least <= narrow.cycles
    wider = built(COMPUTES, with_figures(sram={"banks": 1, "ports": 2, "bytes_per_cycle": 1}), tmp_path)
    assert least / 2 <= wider.cycles < narrow.cycles
    late = built(COMPUTES, with_figures(sram={"read_latency_cycles": 1000, "write_latency_cycles": 500}), tmp_path)
    assert late.cycles >= fast.cycles + 1500


def test_constants_come_from_flash_at_its_rate(tmp_path: Any) -> None:
    flash = {"bytes_per_cycle": 0.5, "read_latency_cycles": 64, "burst_bytes": 16}
    constants = 64 * 256 + 256 * 8  # and a factor for each filter
    plain, slow = built(MOVES, SPEC, tmp_path), built(MOVES, with_figures(flash=flash), tmp_path)
    assert plain.cycles < constants / 0.5 <= slow.cycles < constants / 0.5 + 2000
    # What is computed passes by the other memory.
    quick = with_figures(flash={**flash, "bytes_per_cycle": 1024}, dram={"bytes_per_cycle": 0.5})
    assert built(MOVES, quick, tmp_path).cycles >= (64 + 256) * 4 / 0.5
    bound = hetnn.compile(
        MOVES, {"name": "t", "devices": [{"name": "npu", "kind": "npu", "spec": with_figures(flash=flash)}]}
    )
    bound.save(tmp_path / "bound.hetnn")
    assert _core.simulate_model(str(tmp_path / "bound.hetnn"))["lower_bound_cycles"] >= 64 * 256 / 0.5


def test_what_flash_cannot_hold_is_refused() -> None:
    target = {
        "name": "t",
        "devices": [{"name": "npu", "kind": "npu", "spec": with_figures(flash={"bytes": 4096, "bytes_per_cycle": 1})}],
    }
    with pytest.raises(hetnn.Error, match=r"the flash of npu has 4096"):
        hetnn.compile(MOVES, target)


def test_sums_fit_the_accumulators(tmp_path: Any) -> None:
    program = built(COMPUTES, with_figures(mac={"accumulator_bytes": 4096}), tmp_path)
    for _, name, fields in program.code:
        assert name == "conv2d"
        assert fields["out_h"] * fields["out_w"] * fields["out_c"] * 4 <= 4096
    target = {
        "name": "t",
        "devices": [{"name": "npu", "kind": "npu", "spec": with_figures(mac={"accumulator_bytes": 2})}],
    }
    with pytest.raises(hetnn.Error, match=r"exceed the accumulators of relu-only, 2 bytes"):
        hetnn.compile(COMPUTES, target)


def test_energy_is_that_of_each_memory(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Of MOVES, whose weights pass the flash, its maps the dram, and all of it the scratchpad."""

    def spent(**figures: float) -> float:
        energy = {"mac": {}, "sram_byte": 0, "dram_byte": 0, "vector_op": 0, "source": "a test", **figures}
        spec = with_figures(flash={"bytes_per_cycle": 32}, energy_pj=energy)
        built(MOVES, spec, tmp_path)
        capsys.readouterr()
        assert main(["simulate", str(tmp_path / "model.hetnn"), "--json"]) == 0
        rows = [row for part in json.loads(capsys.readouterr().out)["subgraphs"] for row in part["layers"]]
        return sum(row["energy_nj"] for row in rows) * 1000

    maps, constants = (64 + 256) * 4, 64 * 256 + 256 * 8
    assert spent(dram_byte=1.0) == pytest.approx(maps)
    assert spent(flash_byte=1.0) == pytest.approx(constants)
    # Moved once, and read or written once by the engine at least.
    assert spent(sram_byte=1.0) >= 2 * (maps + constants)


def test_weights_may_come_from_a_scratchpad_of_their_own(tmp_path: Any) -> None:
    """What lies where is in the words, and each has the room of its own scratchpad."""
    apart = {"sram": scratchpads(maps=24 << 10, weights=8 << 10), "mac": {"memories": {"weights": ["weights"]}}}
    # Weights that are loaded in several pieces, for a network that fits nowhere as a whole.
    graph = layer((32, 24, 24), 48, kernel=3, count=3)
    spec = with_figures(**apart, vector={"memories": {"maps": ["maps"], "results": ["maps"]}})
    program = built(graph, spec, tmp_path)
    layers = [fields for _, name, fields in program.code if name == "conv2d"]
    assert min(fields["weight_addr"] for fields in layers) >= 24 << 10
    assert max(fields.get(key, 0) for fields in layers for key in ("in_addr", "out_addr")) < 24 << 10
    # Room that weights leave is room for maps, and more is not slower.
    together = built(graph, with_figures(sram={"bytes": 32 << 10}), tmp_path)
    assert together.cycles <= program.cycles * 1.02


def test_two_matrices_meet_where_weights_lie(tmp_path: Any) -> None:
    """The second matrix is read as weights are, so it does not stay among the maps."""
    graph = """graph @g {stage = imported} (%a: i8{0.05}[1,24,32], %b: i8{0.05}[1,32,40]) -> (%y) {
  %c = relu(%b) {q_scale = [0.05]} : i8{0.05}[1,32,40]
  %y = matmul(%a, %c) {q_scale = [0.5]} : i8{0.5}[1,24,40]
}"""
    spec = with_figures(sram=scratchpads(maps=24 << 10, weights=8 << 10), mac={"memories": {"weights": ["weights"]}})
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-128, 128, shape, dtype=np.int8) for shape in ((1, 24, 32), (1, 32, 40)))
    program = build(graph, spec, tmp_path)
    want = hetnn.compile(graph, "relu-only", strategy="take-all")(a, b)
    np.testing.assert_array_equal(program.executable(a, b), want)


def test_a_type_may_take_longer_in_the_vector_engine(tmp_path: Any) -> None:
    pooled = """graph @p {stage = imported} (%x: i8{0.05}[1,64,32,32]) -> (%y) {
  %y = max_pool2d(%x) {kernel = [3,3], stride = [1,1], q_scale = [0.05]} : i8{0.05}[1,64,30,30]
}"""

    def cycles(figure: Any) -> int:
        return built(pooled, with_figures(vector={"elem_cycles": figure}), tmp_path).cycles

    assert cycles({"f32": 4}) == cycles({}) == cycles(1) < cycles({"i8": 4}) == cycles(4)


def test_writing_may_be_slower_than_reading(tmp_path: Any) -> None:
    even = built(MOVES, with_figures(dram={"bytes_per_cycle": 16}), tmp_path).cycles
    uneven = built(MOVES, with_figures(dram={"bytes_per_cycle": 16, "write_bytes_per_cycle": 0.25}), tmp_path).cycles
    assert uneven - even > 256 * 4 * (4 - 1 / 16) * 0.9


MACHINES = {
    # Figures as published; what is not is a guess. Internal buffers before an SRAM, and weights in flash.
    "ethos_u55": with_figures(
        mac={"macs_per_cycle": 256, "block_height": 2, "block_width": 2, "block_channels": 8},
        sram={"bytes": 48 << 10},
        dram={"bytes_per_cycle": 8, "bytes": 2 << 20},
        flash={"bytes_per_cycle": 1, "read_latency_cycles": 64, "burst_bytes": 128},
        vector={"lanes": 16},
    ),
    # A convolution buffer of 512 KiB, half of it for weights, 2,048 multipliers; the other half takes results too.
    "nvdla": with_figures(
        mac={
            "macs_per_cycle": 2048,
            "block_height": 1,
            "block_width": 1,
            "block_channels": 32,
            "accumulator_bytes": 32 << 10,
            "memories": {"maps": ["maps"], "weights": ["weights"], "results": ["maps"]},
        },
        vector={"memories": {"maps": ["maps"], "results": ["maps"]}},
        sram=[
            {"name": "maps", "bytes": 256 << 10, "banks": 8, "bytes_per_cycle": 32},
            {"name": "weights", "bytes": 256 << 10, "banks": 8, "bytes_per_cycle": 32},
        ],
    ),
    # 24 MiB of unified buffer, a buffer of four tiles of weights, 4 MiB of accumulators, 34 GB/s at 700 MHz.
    "tpu": with_figures(
        clock_hz=700e6,
        mac={
            "kind": "systolic",
            "rows": 256,
            "cols": 256,
            "dataflow": "ws",
            "weight_preload": "hidden",
            "accumulator_bytes": 4 << 20,
            "memories": {"maps": ["unified"], "weights": ["weights"], "sums": ["sums"], "results": ["unified"]},
        },
        dma={"memories": {"loads": ["unified", "weights"], "stores": ["unified"]}},
        sram=[
            {"name": "unified", "bytes": 24 << 20, "bytes_per_cycle": 256},
            {"name": "weights", "bytes": 256 << 10, "bytes_per_cycle": 256},
            {"name": "sums", "bytes": 4 << 20, "bytes_per_cycle": 1024},
        ],
        dram={"bytes_per_cycle": 48},
    ),
    # 256 KiB of scratchpad, 64 KiB of accumulators, two cores.
    "gemmini": with_figures(
        cores=2,
        mac={
            "kind": "systolic",
            "rows": 16,
            "cols": 16,
            "dataflow": "ws",
            "accumulator_bytes": 64 << 10,
            "memories": {"sums": ["sums"]},
        },
        dma={"memories": {"loads": ["spad"], "stores": ["spad"]}},
        sram=[
            {"name": "spad", "bytes": 256 << 10, "banks": 4, "bytes_per_cycle": 16},
            {"name": "sums", "bytes": 64 << 10, "bytes_per_cycle": 64},
        ],
        dram={"bytes_per_cycle": 16},
    ),
}


@pytest.mark.parametrize("name", MACHINES)
def test_machines_of_other_makers_can_be_said(name: str, tmp_path: Any) -> None:
    """A chain of layers compiles for each, computes the same values, and takes what was planned."""
    spec = json.loads(json.dumps(MACHINES[name]))
    for key in ("macs_per_cycle", "block_height", "block_width", "block_channels"):
        if spec["mac"]["kind"] == "systolic":
            spec["mac"].pop(key, None)
    program = built(layer((16, 24, 24), 32, kernel=3, count=3), spec, tmp_path)
    assert program.cycles > 0


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"schema": 3}, r"schema"),
        ({"sram": [SPEC["sram"][0]] * 2}, r"sram\[0\] lacks 'name'"),
        ({"sram": scratchpads(a=1024, b=1024)}, r"sram\[1\] 'b' would hold nothing: maps in 'a', weights in 'a'"),
        ({"sram": scratchpads(a=1, b=1, c=1, d=1, e=1)}, r"sram holds 5 scratchpads; at most 4 are expected"),
        ({"sram": [*scratchpads(a=64), *scratchpads(a=64)]}, r"sram\[1\]\.name is 'a', as that of another"),
        ({"mac": {"memories": {"weights": ["b"]}}}, r"mac\.memories names 'b', which is no scratchpad"),
        ({"mac": {"memories": {"weight": ["b"]}}}, r"unknown operand 'weight'; did you mean 'weights'"),
        (
            {
                "sram": scratchpads(a=1024, b=1024),
                "mac": {"memories": {"weights": ["b"]}},
                "dma": {"memories": {"loads": ["a"]}},
            },
            r"no path from the memory 'dram' to the engine 'mac': 'dma' loads into 'a', 'mac' reads weights from 'b'",
        ),
        (
            {
                "sram": scratchpads(a=1024, b=1024),
                "mac": {"memories": {"results": ["b"]}},
                "vector": {"memories": {"maps": ["a"]}},
            },
            r"no path from the memory 'dram' to the engine 'mac': 'vector' reads maps from 'a', 'mac' writes",
        ),
        (
            {
                "sram": scratchpads(a=1024, b=1024),
                "dma": {"memories": {"loads": ["a"], "stores": ["b"]}},
            },
            r"no path to the memory 'dram' from the engine 'dma'",
        ),
        ({"dma": {"channels": 2}}, r"dma\.channels is 2; 1 is expected"),
        ({"dma": {"align_bytes": 48}}, r"dma\.align_bytes is 48; a divisor of 64 is expected"),
        ({"sram": {"burst_bytes": 16}}, r"burst_bytes"),
        ({"dram": {"banks": 4}}, r"banks"),
        ({"flash": {"bytes_per_cycle": 1, "write_latency_cycles": 2}}, r"write_latency_cycles"),
        ({"flash": {"bytes": 4}}, r"bytes_per_cycle"),
        ({"dram": {"bytes_per_cycle": 0}}, r"bytes_per_cycle"),
        ({"ops": {"softmax": {"dtypes": ["f32"]}}}, r"ops\.softmax lists f32, for which the NPU has no instruction"),
        ({"ops": {"conv2d": {"dtypes": ["f32", "i16"]}}}, r"ops\.conv2d lists i16.* it has some for f32, f16, i8"),
    ],
)
def test_what_nobody_reads_is_refused(parts: dict[str, Any], said: str) -> None:
    target = {"name": "t", "devices": [{"name": "npu", "kind": "npu", "spec": with_figures(**parts)}]}
    with pytest.raises(hetnn.InvalidModel, match=said):
        hetnn.plan(COMPUTES, target)


def test_a_sheet_of_schema_1_reads_as_one_of_schema_2(tmp_path: Any) -> None:
    assert built(COMPUTES, with_figures(schema=1), tmp_path).cycles == built(COMPUTES, SPEC, tmp_path).cycles


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets", "--schema", "--json"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["properties"]["schema"]["enum"] == [1, 2]
    assert {"mac", "sram", "dram", "flash", "dma", "vector", "ops"} <= schema["properties"].keys()
