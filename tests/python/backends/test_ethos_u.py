"""Arm's Ethos-U as devices: values are those of TOSA's reference model, cycles are Vela's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn
from backends.between import between
from backends.integer_networks import NETWORKS, RELU, SAME, Net
from hetnn import _core
from hetnn.backends.ethos_u import EthosU, codes, reports, vela
from hetnn.errors import InvalidModel
from hetnn.exporters.tosa import FORMS, export
from importers.test_onnx_quantized import Network
from importers.tflite_files import reference

ROOT = Path(__file__).resolve().parents[3]
TARGET = "cpu+ethos-u55-256"
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module", autouse=True)
def packages() -> Iterator[None]:
    """TOSA's reference model lies in an environment of its own (tests/python/requirements-apart.txt)."""
    (apart,) = (ROOT / "build" / "apart").glob("lib/python*/site-packages")
    sys.path.append(str(apart))
    import tosa_reference_model  # noqa: F401

    yield
    sys.path.remove(str(apart))


def by_reference(data: bytes, feeds: list[Array], like: list[Array]) -> list[Array]:
    import tosa_reference_model

    found, status = tosa_reference_model.run(data, feeds)
    assert status == tosa_reference_model.GraphStatus.TOSA_VALID, status
    return [np.asarray(got).astype(each.dtype).reshape(each.shape) for got, each in zip(found, like, strict=True)]


def parts(model: Any, target: str = TARGET) -> list[_core.Graph]:
    """The graphs that the Ethos-U is given."""
    plan = hetnn.plan(model, target, strategy="take-all")
    return [part["graph"] for part in plan._plan.subgraphs() if part["device"] != "cpu"]


def small(seed: int = 3) -> bytes:
    n = Net(seed)
    x = n.conv(n.start([1, 24, 20, 3]), 8, 3, 2, RELU)
    y = n.depthwise(x, 3, 1, RELU)
    y = n.conv(n.joint(n.pair("ADD", n.conv(y, 8), x), y), 16, 1, 2)
    y = n.pool(n.function("LEAKY_RELU", y), "MAX", 3, 2, SAME)
    return n.finish(n.dense(n.mean(y), 10))


def feed_of(exe: hetnn.Executable, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.integers(-128, 128, port.shape).astype(np.int8) for port in exe.inputs]


def test_a_network_goes_there_whole_and_is_saved_with_what_vela_made(tmp_path: Path) -> None:
    data = small()
    exe = hetnn.compile(data, TARGET, strategy="take-all")
    report = exe.report("dict")
    assert [part["device"] for part in report["subgraphs"]] == ["ethos-u55-256"]
    feed = feed_of(exe)
    (wanted,) = reference(data, [feed])[0]
    np.testing.assert_array_equal(exe.run(feed)[0], wanted)
    exe.save(tmp_path / "small.hetnn")
    again = hetnn.load(tmp_path / "small.hetnn")
    np.testing.assert_array_equal(again.run(feed)[0], wanted)
    (told,) = reports(again).values()
    assert told["cycles"] > 0
    assert told["cpu_operators"] == 0
    assert sum(row["cycles"] for row in told["operators"]) == pytest.approx(told["cycles"], rel=0.2)
    # Planning reckons with them: cycles at 500 MHz.
    cycles = sum(row["cycles"] for row in told["operators"])
    assert report["subgraphs"][0]["predicted_us"] == pytest.approx(cycles / 500)
    (code,) = codes(again).values()
    assert code["cmd_data"][:4].tobytes() == b"COP1"
    assert code["scratch_size"] > 0


def test_a_run_has_velas_cycles_as_the_devices_own_time(tmp_path: Path) -> None:
    """What computes here instead is no time of the device's; it is beside it in the trace."""
    hetnn.compile(small(), TARGET, strategy="take-all").save(tmp_path / "small.hetnn")
    exe = hetnn.load(tmp_path / "small.hetnn")
    (told,) = reports(exe).values()
    feed = feed_of(exe)
    exe.run(feed)
    (row,) = exe.last_times
    assert row["cycles"] == told["cycles"]
    rows = exe.profile(*feed)
    assert {each["device"] for each in rows} == {"ethos-u55-256"}
    assert sum(each["cycles"] for each in rows) == sum(each["cycles"] for each in told["operators"])
    assert all(each["simulated"] and each["us"] == pytest.approx(each["cycles"] / 500) for each in rows)
    assert {each["node"] for each in rows} <= {each["node"] for each in exe.report("dict")["graph"]}
    exe.trace(tmp_path / "trace.json", *feed)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (visit,) = [event for event in events if event.get("cat") == "subprogram"]
    assert visit["dur"] == pytest.approx(told["cycles"] / 500)
    assert visit["args"]["cycles"] == told["cycles"]
    assert visit["args"]["simulating_took_us"] > 0


@pytest.mark.parametrize("name", ["ds_cnn", "sound_rows", "mobilenet_v3"])
def test_values_are_those_of_tosas_reference_model(name: str) -> None:
    data = NETWORKS[name]()
    exe = hetnn.compile(data, TARGET, strategy="take-all")
    assert len(reports(exe)) == 1
    feed = feed_of(exe)
    np.testing.assert_array_equal(exe.run(feed)[0], hetnn.compile(data, "cpu").run(feed)[0])
    for graph in parts(data):
        given = [np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8) for _, _, shape in graph.inputs]
        wanted = _core.interpret(graph, given)
        for got, want in zip(by_reference(export(graph), given, wanted), wanted, strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("name", "most"), [("ROUND", 1.11), ("DIV_BY_A_NUMBER", 1.02), ("SPACE_TO_DEPTH", 0.94)])
def test_what_vela_leaves_to_a_cpu_stays_on_the_accelerator(name: str, most: float) -> None:
    """In so much of Vela's own cycles, of which none are the CPU's."""
    data = between(name)
    own = vela.compile_network(data, vela.Accelerator.of("vela", {"variant": "u55-256"}), tflite=True)
    assert own.report["cpu_operators"] == 2
    exe = hetnn.compile(data, TARGET, strategy="take-all")
    assert sum(each["cycles"] for each in reports(exe).values()) <= most * own.report["cycles"]
    assert [part["device"] for part in exe.report("dict")["subgraphs"]] == ["ethos-u55-256"]
    feed = feed_of(exe)
    np.testing.assert_array_equal(exe.run(feed)[0], hetnn.compile(data, "cpu").run(feed)[0])


@pytest.mark.parametrize(("name", "most"), [("NEG", 0.81), ("REFLECT", 1.02), ("SYMMETRIC", 1.02)])
def test_what_vela_takes_goes_there_whole(name: str, most: float) -> None:
    data = between(name)
    own = vela.compile_network(data, vela.Accelerator.of("vela", {"variant": "u55-256"}), tflite=True)
    exe = hetnn.compile(data, TARGET, strategy="take-all")
    assert sum(each["cycles"] for each in reports(exe).values()) <= most * own.report["cycles"]
    assert [part["device"] for part in exe.report("dict")["subgraphs"]] == ["ethos-u55-256"]
    feed = feed_of(exe)
    np.testing.assert_array_equal(exe.run(feed)[0], hetnn.compile(data, "cpu").run(feed)[0])
    (graph,) = parts(data)
    for data in {export(graph, form=form) for form in FORMS}:
        (found,) = by_reference(data, feed, exe.run(feed))
        np.testing.assert_array_equal(found, exe.run(feed)[0])


@pytest.mark.parametrize(("variant", "visits"), [("u55-256", 2), ("u85-256", 0)])
def test_quotients_of_two_tensors_stay_on_the_accelerator(variant: str, visits: int) -> None:
    """Where Vela leaves them to a CPU, and in a fourth of its cycles where it does not."""
    data = between("DIV")
    own = vela.compile_network(data, vela.Accelerator.of("vela", {"variant": variant}), tflite=True)
    assert own.report["cpu_operators"] == visits
    exe = hetnn.compile(data, f"cpu+ethos-{variant}", strategy="take-all")
    assert [part["device"] for part in exe.report("dict")["subgraphs"]] == [f"ethos-{variant}"]
    cycles = sum(each["cycles"] for each in reports(exe).values())
    # 13 cycles for each of 65,536 quotients that a CPU does not compute.
    assert cycles - own.report["cycles"] <= 13 * 65536 if visits else cycles <= 0.25 * own.report["cycles"]
    feed = feed_of(exe)
    np.testing.assert_array_equal(exe.run(feed)[0], hetnn.compile(data, "cpu").run(feed)[0])
    (graph,) = parts(data, f"cpu+ethos-{variant}")
    (found,) = by_reference(export(graph, variant.startswith("u85")), feed, exe.run(feed))
    np.testing.assert_array_equal(found, exe.run(feed)[0])


@pytest.mark.parametrize("variant", ["u55-256", "u65-256", "u85-256"])
def test_images_that_the_cpu_computes_between_are_not_transposed(variant: str) -> None:
    """They lie channels last for both: the accelerator's parts take the cycles of Vela's own."""
    data = between("L2_NORMALIZATION")
    own = vela.compile_network(data, vela.Accelerator.of("vela", {"variant": variant}), tflite=True)
    exe = hetnn.compile(data, f"cpu+ethos-{variant}", strategy="take-all")
    assert [part["device"] for part in exe.report("dict")["subgraphs"]].count("cpu") == 2
    told = reports(exe)
    assert sum(each["cycles"] for each in told.values()) <= 1.02 * own.report["cycles"]
    assert [len(each["images_last"]) for each in told.values()] == [1, 2, 1]  # a network's own ports are as they are
    feed = feed_of(exe)
    np.testing.assert_array_equal(exe.run(feed)[0], hetnn.compile(data, "cpu").run(feed)[0])


def test_a_file_with_images_channels_last_means_the_same() -> None:
    (graph, *_) = parts(between("L2_NORMALIZATION"))
    (given, *_), (out, *_) = ([row[0] for row in ports] for ports in (graph.inputs, graph.outputs))
    feed = [np.random.default_rng(2).integers(-128, 128, shape).astype(np.int8) for _, _, shape in graph.inputs]
    (wanted,) = _core.interpret(graph, feed)
    turned = [np.ascontiguousarray(each.transpose(0, 2, 3, 1)) for each in (*feed, wanted)]
    (found,) = by_reference(export(graph, images=[given, out]), turned[:1], turned[1:])
    np.testing.assert_array_equal(found, turned[1])


@pytest.mark.parametrize("name", sorted({*NETWORKS} - {"mobilenet_v2", "resnet_18"}))
def test_networks_go_there_as_one_subgraph_that_vela_takes(name: str) -> None:
    """All but the two that take Vela seconds, which are in benchmarks/devices/ethos.py."""
    plan = hetnn.plan(NETWORKS[name](), TARGET, strategy="take-all")
    (part,) = plan._plan.subgraphs()
    assert part["device"] == "ethos-u55-256"
    accelerator = vela.Accelerator.of("x", {"variant": "u55-256"})
    _, made = EthosU("x", {"variant": "u55-256"})._compiled(part["graph"])
    assert made.report["cpu_operators"] == 0
    own = vela.compile_network(NETWORKS[name](), accelerator, tflite=True).report
    assert own["cpu_operators"] == 0
    assert made.report["cycles"] <= own["cycles"] * 1.02


def test_what_states_no_rounding_is_rounded_as_the_device_does() -> None:
    """An ONNX network: its integers go there, reals stay on the CPU, and results are TOSA's, not to nearest even."""
    model = Network(signed=True, shared_bias=False).model
    exe = hetnn.compile(model, TARGET, strategy="take-all", fix={"n": 1})
    kinds = {row["op"]: row["device"] for row in exe.report("dict")["graph"]}
    assert kinds["conv2d"] == "ethos-u55-256"
    x = np.random.default_rng(0).standard_normal(exe.inputs[0].shape).astype(np.float32)
    (found,) = exe.run([x])
    (plain,) = hetnn.compile(model, "cpu", fix={"n": 1}).run([x])
    assert np.abs(found - plain).max() <= 0.051 * 2  # a step of the result or two
    assert {kinds["quantize"], kinds["dequantize"]} == {"cpu"}


def test_reals_are_not_claimed() -> None:
    text = "graph @g {stage = imported} (%x: f32[4]) -> (%y) {\n %y = relu(%x) : f32[4]\n}"
    exe = hetnn.compile(text, TARGET, strategy="take-all")
    assert {row["device"] for row in exe.report("dict")["graph"]} == {"cpu"}
    assert "integers of 8 and 16 bits" in exe.report("json")


@pytest.fixture(scope="module")
def exported() -> bytes:
    (graph,) = parts(small())
    return export(graph)


def test_an_unknown_accelerator_names_those_that_are() -> None:
    with pytest.raises(InvalidModel, match=r"there is no Ethos-U 'u55-99'; there are u55-32, .*u85-2048"):
        hetnn.compile(small(), "cpu+ethos-u55-99")


@pytest.mark.parametrize("variant", vela.accelerators())
def test_each_accelerator_compiles(variant: str, exported: bytes) -> None:
    accelerator = vela.Accelerator.of("x", {"variant": variant})
    assert vela.compile_network(exported, accelerator).report["cycles"] > 0


def test_a_target_file_says_what_system_is_around_it(tmp_path: Path) -> None:
    spec = {"variant": "u55-256", "system_config": "Ethos_U55_Deep_Embedded"}
    target = {"name": "t", "devices": [{"name": "cpu", "kind": "cpu"}, {"name": "e", "kind": "ethos", "spec": spec}]}
    slow = hetnn.compile(small(), target, strategy="take-all")
    fast = hetnn.compile(small(), TARGET, strategy="take-all")
    assert reports(slow)["e.0"]["cycles"] != reports(fast)["ethos-u55-256.0"]["cycles"]
    assert slow.report("dict")["predicted_us"] > 2 * fast.report("dict")["predicted_us"]


def test_without_vela_the_package_is_named_and_files_still_run(tmp_path: Path) -> None:
    exe = hetnn.compile(small(), TARGET, strategy="take-all")
    exe.save(tmp_path / "small.hetnn")
    (tmp_path / "small.tflite").write_bytes(small())
    code = f"""
import sys
sys.modules["ethosu"] = None
import hetnn, numpy as np
exe = hetnn.load({str(tmp_path / "small.hetnn")!r})
print(exe.run([np.zeros(exe.inputs[0].shape, np.int8)])[0].shape)
try:
    hetnn.compile({str(tmp_path / "small.tflite")!r}, {TARGET!r})
except hetnn.HetnnError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("(1, 10)"), done.stderr
    assert "Run pip install 'hetnn[ethos-u]'" in done.stdout + done.stderr


def test_nothing_of_vela_is_imported_before_it_is_named() -> None:
    names = {"ethosu", "flatbuffers", "hetnn.backends.ethos_u"}
    code = f"import sys, hetnn; hetnn.compile; print({names} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_what_vela_refuses_is_a_reason_and_the_plan_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    real = vela.compile_network

    def refusing(network: bytes, accelerator: vela.Accelerator, tflite: bool = False) -> vela.Compiled:
        if b"depthwise" in network:
            raise hetnn.Unsupported("Vela refuses it: no depthwise today")
        return real(network, accelerator, tflite)

    monkeypatch.setattr(vela, "compile_network", refusing)
    exe = hetnn.compile(small(), TARGET, strategy="take-all")
    assert "no depthwise today" in exe.report("json")
    assert json.loads(exe.report("json"))["nodes_on"]["ethos-u55-256"] > 0
    feed = feed_of(exe)
    np.testing.assert_array_equal(exe.run(feed)[0], reference(small(), [feed])[0][0])


def test_integers_of_16_bits_by_weights_of_8() -> None:
    """A convolution, a sum and a linear layer of i16, whose sums have 48 bits."""
    fine = 0.04 / 256
    rng = np.random.default_rng(4)
    builder = _core.GraphBuilder("wide")
    x = builder.add_input("x", "i16", [1, 4, 9, 8])
    (x,) = builder.create("bitcast", [x], {"to": "i16", "q_scale": [fine], "q_zero": 0})

    def layer(op: str, x: Any, shape: list[int], before: float, after: float, **attrs: Any) -> Any:
        values = rng.integers(-127, 128, shape).astype(np.int8)
        (weight,) = builder.create("constant", [], {"value": values, "q_scale": [0.01]})
        biases = {"value": rng.integers(-9999, 9999, shape[0]), "q_scale": [0.01 * before]}
        (bias,) = builder.create("constant", [], biases)
        told = {"q_scale": [after], "q_zero": 0, "q_rounding": "double", **attrs}
        return builder.create(op, [x, weight, bias], told)[0]

    y = layer("conv2d", x, [6, 4, 3, 3], fine, fine * 3, padding=[1, 1])
    z = layer("conv2d", x, [6, 4, 1, 1], fine, fine * 2)
    (y,) = builder.create("add", [y, z], {"q_scale": [fine * 4], "q_zero": 0, "q_rounding": "double"})
    (y,) = builder.create("reshape", [y], {"shape": [1, 6 * 9 * 8]})
    builder.output(layer("linear", y, [5, 6 * 9 * 8], fine * 4, fine * 30), "y")
    text = builder.finish().print()
    exe = hetnn.compile(text, TARGET, strategy="take-all")
    assert {row["device"] for row in exe.report("dict")["graph"]} == {"ethos-u55-256"}
    (told,) = reports(exe).values()
    assert told["cpu_operators"] == 0
    feed = [rng.integers(-32768, 32768, [1, 4, 9, 8]).astype(np.int16)]
    (wanted,) = _core.interpret(_core.Graph.parse(text), feed)
    np.testing.assert_array_equal(exe.run(feed)[0], wanted)
    (graph,) = parts(text)
    np.testing.assert_array_equal(by_reference(export(graph), feed, [wanted])[0], wanted)
