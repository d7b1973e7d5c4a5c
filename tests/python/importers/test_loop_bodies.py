"""What loops repeat is a program of its own: planned, placed, saved and shared as the model is."""

from __future__ import annotations

import concurrent.futures
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
import torch

import hetnn
from hetnn import _core, _runtime
from hetnn.cli import main
from importers.onnx_models import model_of, same_as_reference

WIDTH = 256
KINDS = {"cpu": ["cpu"], "cpu+relu-only": ["cpu", "npu"]}

NESTED = """agraph (int64 n, int64 m, float[4] x) => (float[4] y) {
  y = Loop(n, , x) <body = b (int64 i, bool g, float[4] t) => (bool h, float[4] u) {
    h = Identity(g)
    v = Loop(m, , t) <body = c (int64 j, bool p, float[4] r) => (bool q, float[4] w) {
      q = Identity(p)
      w = Add(r, x)
    }>
    u = Neg(v)
  }>
}"""


class Rounds(torch.nn.Module):
    """A loop around a layer of each kind of device."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.linear = torch.nn.Linear(WIDTH, WIDTH)
        self.conv = torch.nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x: torch.Tensor, image: torch.Tensor, n: torch.Tensor) -> Any:
        def body(k: torch.Tensor, x: torch.Tensor, image: torch.Tensor) -> Any:
            return k + 1, torch.softmax(self.linear(x), -1), torch.relu(self.conv(image))

        return torch._higher_order_ops.while_loop(lambda k, x, image: k < n, body, (torch.tensor(0), x, image))  # type: ignore[attr-defined]


def compiled(target: str, rounds: int = 4) -> tuple[hetnn.Executable, tuple[torch.Tensor, ...], list[torch.Tensor]]:
    model, args = Rounds().eval(), (torch.randn(4, WIDTH), torch.randn(1, 8, 12, 12), torch.tensor(rounds))
    with torch.no_grad():
        return hetnn.compile(model, args=args, target=target), args, list(model(*args))


def agree(found: Any, wanted: Any) -> None:
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_accelerators_compute_their_part_of_a_body() -> None:
    exe, args, wanted = compiled("cpu+relu-only")
    (body,) = exe.report(format="dict")["bodies"]
    assert body["report"]["nodes_on"]["relu-only"] >= 2  # the convolution and what follows it
    assert body["report"]["nodes_on"]["cpu"] >= 1  # the softmax
    reasons = {row["op"]: row["reasons"][0]["label"] for row in body["report"]["not_on_preferred"]}
    assert "softmax" in reasons
    text = exe.report()
    assert f"repeated:\n  '{body['node']}':" in text
    assert "on relu-only" in text.split("repeated:")[1]
    agree(exe(*args), wanted)
    planned = hetnn.plan(Rounds().eval(), "cpu+relu-only", args=args).report(format="dict")["bodies"]
    assert [row["report"]["nodes_on"] for row in planned] == [body["report"]["nodes_on"]]


def nodes_on(**options: Any) -> dict[str, int]:
    args = (torch.randn(4, WIDTH), torch.randn(1, 8, 12, 12), torch.tensor(2))
    planned = hetnn.plan(Rounds().eval(), "cpu+relu-only", args=args, **options)
    (body,) = planned.report(format="dict")["bodies"]
    found: dict[str, int] = body["report"]["nodes_on"]
    return found


def test_wishes_and_bounds_hold_for_bodies() -> None:
    assert nodes_on()["relu-only"] >= 2
    assert nodes_on(pin=[{"op": op, "device": "cpu"} for op in ("conv2d", "relu", "linear")]).get("relu-only", 0) == 0
    assert nodes_on(memory_budget={"relu-only": 1e9}) == nodes_on()
    assert nodes_on(memory_budget={"relu-only": 100})["cpu"] > nodes_on()["cpu"]
    with pytest.raises(hetnn.InvalidModel, match="pin 'gru' matches no node"):
        nodes_on(pin=[{"op": "gru", "device": "cpu"}])


def test_what_an_accelerator_lacks_in_a_body_is_told() -> None:
    rows = hetnn.check(
        Rounds().eval(), "cpu+relu-only", args=(torch.randn(4, WIDTH), torch.randn(1, 8, 12, 12), torch.tensor(2))
    )
    assert "softmax" in {row["op"] for row in rows}


@pytest.mark.parametrize("target", KINDS)
def test_bodies_are_saved(target: str, tmp_path: Path) -> None:
    exe, args, wanted = compiled(target)
    path = tmp_path / "rounds.hetnn"
    exe.save(path)
    weights = 4 * WIDTH * WIDTH
    assert weights < path.stat().st_size < 1.5 * weights  # which stand there once
    streams = _core.command_streams(str(path))
    names = [each["name"].rpartition(".")[0] for each in streams]
    assert names == (["body 0: relu-only"] if "npu" in KINDS[target] else [])
    loaded = hetnn.load(path)
    agree(loaded(*args), wanted)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for each in pool.map(lambda _: loaded(*args), range(8)):
            agree(each, wanted)


def test_code_of_a_body_is_made_for_further_sizes(tmp_path: Path) -> None:
    class Wide(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(8, 8, 3, padding=1)

        def forward(self, image: torch.Tensor, n: torch.Tensor) -> Any:
            def body(k: torch.Tensor, image: torch.Tensor) -> Any:
                return k + 1, torch.relu(self.conv(image))

            return torch._higher_order_ops.while_loop(lambda k, image: k < n, body, (torch.tensor(0), image))[1]  # type: ignore[attr-defined]

    torch.manual_seed(5)
    model, n = Wide().eval(), torch.tensor(2)
    sizes = ({0: torch.export.Dim("batch", min=1, max=8)}, None)
    exe = hetnn.compile(model, "cpu+relu-only", args=(torch.randn(3, 8, 6, 6), n), dynamic_shapes=sizes)

    def check(exe: hetnn.Executable, batch: int) -> None:
        x = torch.randn(batch, 8, 6, 6)
        with torch.no_grad():
            torch.testing.assert_close(exe(x, n), model(x, n), rtol=1e-4, atol=1e-5)

    path = tmp_path / "wide.hetnn"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(exe, 3)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda batch: check(exe, batch), [5, 1, 5, 6, 1, 5, 3, 6]))
        exe.save(path)
        loaded = hetnn.load(path)
        for batch in (6, 1, 3, 5):
            check(loaded, batch)
    with pytest.warns(RuntimeWarning, match=r"no accelerator code for \{.* = 7\}") as told:
        check(loaded, 7)
    check(loaded, 7)
    assert len(told) == 1


def test_code_is_made_for_sizes_that_change_from_round_to_round() -> None:
    w = np.random.default_rng(3).standard_normal((4, 4, 3)).astype(np.float32) / 4
    text = """agraph (int64 n, bool going, float[1, 4, 6] x) => (float[1, 4, m] y) {
      y = Loop(n, going, x) <body = b (int64 i, bool g, float[1, 4, k] t) => (bool h, float[1, 4, l] u) {
        h = Identity(g)
        c = Conv<pads = [1, 1]>(t, w)
        r = Relu(c)
        u = Concat<axis = 2>(r, x)
      }>
    }"""
    model = model_of(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    exe = hetnn.compile(model, "cpu+relu-only")
    (body,) = exe.report(format="dict")["bodies"]
    assert {row["device"] for row in body["report"]["graph"]} == {"cpu", "relu-only"}
    x = np.random.default_rng(4).standard_normal((1, 4, 6)).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rounds in (3, 1, 5):
            same_as_reference(exe, model, np.array(rounds), np.array(True), x)


def test_bodies_take_sizes_from_around_them() -> None:
    text = """agraph (int64 n, float[k, 3] x, float[m] s) => (float[m] y) {
      z = Shape(x)
      y = Loop(n, , s) <body = b (int64 i, bool g, float[m] t) => (bool h, float[m] u) {
        h = Identity(g)
        zero = Constant<value_ints = [0]>()
        one = Constant<value_ints = [1]>()
        rows = Slice(z, zero, one)
        many = ConstantOfShape(rows)
        add = Exp(many)
        sum = ReduceSum<keepdims = 0>(add)
        u = Add(t, sum)
      }>
    }"""
    exe = hetnn.compile(model_of(text, 18))
    assert len(exe.report(format="dict")["bodies"]) == 1
    for k, m in ((2, 4), (5, 1), (0, 3)):
        found = exe(np.array(3), np.zeros((k, 3), np.float32), np.arange(m, dtype=np.float32))
        np.testing.assert_array_equal(found, np.arange(m, dtype=np.float32) + 3 * k)


def test_loops_in_loops_stand_before_those_around_them() -> None:
    exe = hetnn.compile(model_of(NESTED, 18), "cpu+relu-only")
    nodes = [[row["op"] for row in body["report"]["graph"]] for body in exe.report(format="dict")["bodies"]]
    assert len(nodes) == 2
    assert "loop" not in nodes[0]
    assert "loop" in nodes[1]
    x = np.array([1, -2, 0.5, 3], np.float32)
    np.testing.assert_array_equal(exe(np.array(3), np.array(2), x), -(-(-(x + 2 * x) + 2 * x) + 2 * x))


def test_a_loop_in_a_branch_over_sizes_that_it_finds_is_a_program() -> None:
    # How many rows are above 0 is found in the branch, and the products in its loop are of as many.
    text = """agraph (bool c, float[n,4] x, float[4,4] w, int64 m) => (float[k,4] y) {
      y = If(c) <then_branch = then () => (float[a,4] p) {
        axes = Constant<value = int64[1] {1}>()
        sums = ReduceSum<keepdims = 0>(x, axes)
        zero = Constant<value = float {0.0}>()
        above = Greater(sums, zero)
        rows = Compress<axis = 0>(x, above)
        on = Identity(c)
        p = Loop(m, on, rows) <body = b (int64 i, bool g, float[d,4] t) => (bool h, float[d,4] u) {
          h = Identity(g)
          v = MatMul(t, w)
          u = Tanh(v)
        }>
      }, else_branch = other () => (float[b,4] q) { q = Neg(x) }>
    }"""
    model = model_of(text)
    executable = hetnn.compile(model)
    report = executable.report(format="dict")
    graphs = [report["graph"], *(body["report"]["graph"] for body in report["bodies"])]
    assert sum(row["op"] == "loop" for rows in graphs for row in rows) == len(report["bodies"]) >= 2
    rng = np.random.default_rng(1)
    for rows, above in ((5, True), (3, True), (2, False), (0, True)):
        given = rng.standard_normal((rows, 4)), rng.standard_normal((4, 4))
        x, w = (each.astype(np.float32) for each in given)
        same_as_reference(executable, model, np.array(above), x, w, np.array(2))


def test_what_separates_calls_may_stand_in_their_strings() -> None:
    pattern = "(a|b);[{}c]%3b"
    model = model_of(
        f"""agraph (int64 n, string[3] x) => (bool[k,3] y) {{
      y = Loop(n, , ) <body = b (int64 i, bool g) => (bool h, bool[3] u) {{
        h = Identity(g)
        u = RegexFullMatch<pattern = "{pattern}">(x)
      }}>
    }}""",
        20,
    )
    texts = np.array(["a;{%3b", "b;}%3b", "a;c"], object)
    np.testing.assert_array_equal(hetnn.compile(model)(np.array(2), texts), [[True, True, False]] * 2)


def test_times_tell_of_the_parts_of_a_body(tmp_path: Path) -> None:
    exe, args, _ = compiled("cpu+relu-only")
    (body,) = exe.report(format="dict")["bodies"]

    def rows(rounds: int) -> dict[str, Any]:
        exe(*args[:2], torch.tensor(rounds))
        return {row["name"]: row for row in exe.last_times}

    once, often = rows(1), rows(6)
    names = [f"{body['node']}/body {part['device']}.{k}" for k, part in enumerate(body["report"]["subgraphs"])]
    assert [*often][-len(names) :] == names
    assert [*rows(0)] == [*often][: -len(names)]
    keys = {"name", "device", "at", "start_us", "finish_us", "queue_us", "cycles", "fallback"}
    assert all(set(row) == keys for row in often.values())
    (npu,) = (name for name in names if often[name]["device"] == "relu-only")
    assert often[npu]["cycles"] == 6 * once[npu]["cycles"] > 0
    loops = [row for row in often.values() if row["name"] not in names and row["device"] == "cpu"]
    for name in names:
        part = often[name]
        assert any(row["start_us"] <= part["start_us"] <= part["finish_us"] <= row["finish_us"] for row in loops)

    exe.trace(tmp_path / "trace.json", *args)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    lanes = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    spans = [event for event in events if event["ph"] == "X"]
    (loop,) = (span for span in spans if span["cat"] == "body" and span["name"] == body["node"])
    below = [*lanes.values()]
    below = below[below.index("cpu") + 1 :]
    assert below[: len(names)] == names
    for name in names:
        (span,) = (span for span in spans if span["name"] == name)
        assert lanes[span["tid"]] == name
        assert span["args"]["device"] == often[name]["device"]
        assert loop["ts"] - 1 <= span["ts"] <= span["ts"] + span["dur"] <= loop["ts"] + loop["dur"] + 1
    arrows = sum(len(earlier) for earlier in exe._engine.depends_on)
    assert [sum(event["ph"] == phase for event in events) for phase in "sf"] == [arrows, arrows]
    devices = {event["tid"] for event in events if event["ph"] in "sf"}
    assert all("/body" not in lanes[lane] for lane in devices)


def test_loops_in_loops_are_named_by_all_of_them() -> None:
    exe = hetnn.compile(model_of(NESTED, 18), "cpu")
    inner, outer = (body["node"] for body in exe.report(format="dict")["bodies"])
    exe(np.array(3), np.array(2), np.ones(4, np.float32))
    names = [row["name"] for row in exe.last_times]
    assert [name for name in names if "/body" in name] == [
        f"{outer}/body cpu.0",
        f"{outer}/body {inner}/body cpu.0",
    ]


def test_devices_are_busy_once_at_a_time() -> None:
    """What a server adds to hetnn_device_busy_seconds_total."""
    exe, args, _ = compiled("cpu+relu-only", rounds=30)
    request = json.dumps(
        {
            "inputs": [
                {
                    "name": port.name,
                    "shape": list(value.shape),
                    "datatype": _runtime.DATATYPES[port.dtype],
                    "data": value.flatten().tolist(),
                }
                for port, value in zip(exe.inputs, args, strict=True)
            ]
        }
    )
    descriptor = os.eventfd(0)
    ends = _runtime.Ends(descriptor)
    queue = _runtime.RunQueue(exe._engine, ends, threads=1, cores=0, most_rows=1, delay_us=0, own_states=False)
    bound = _runtime.Signature("rounds", exe._engine).bind(_runtime.Inference.from_http(request.encode(), "rounds"))
    queue.submit(0, bound, 0, 0, 1)
    queue.wake()
    os.eventfd_read(descriptor)
    ((_, _, _, run_ns, _, busy_us),) = ends.take()
    os.close(descriptor)
    totals: dict[str, float] = {}
    for device, us in busy_us:
        totals[device] = totals.get(device, 0) + us
    assert set(totals) == {"cpu", "relu-only"}
    assert all(us > 0 for us in totals.values())
    assert all(us <= run_ns / 1000 for us in totals.values())


def test_a_store_shows_what_loops_repeat(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exe, _, _ = compiled("cpu+relu-only")
    store = hetnn.Store(tmp_path / "store")
    store.add("rounds", exe)
    store.deploy("rounds", ["relu-only", "cpu"])
    shown = store.association("rounds")
    (body,) = shown["bodies"]
    (reported,) = exe.report(format="dict")["bodies"]
    assert list(body) == ["of", "nodes", "subgraphs"]
    assert body["of"] == reported["node"]
    assert body["of"] in [node["node"] for node in shown["nodes"]]
    told = ["node", "op", "depth", "supports", "depends_on"]
    assert [list(node) for node in body["nodes"]] == [told] * len(body["nodes"])
    assert [node["node"] for node in body["nodes"]] == [row["node"] for row in reported["report"]["graph"]]
    keys = ["index", "device", "supports", "nodes", "depends_on", "deployed_on"]
    assert [list(row) for row in body["subgraphs"]] == [keys] * len(body["subgraphs"])
    assert [row["device"] for row in body["subgraphs"]] == [row["device"] for row in reported["report"]["subgraphs"]]
    assert [row["deployed_on"] for row in body["subgraphs"] if row["device"] == "relu-only"] == [["relu-only"]]
    store.undeploy("rounds")
    store.deploy("rounds")
    assert {name for row in store.association("rounds")["bodies"][0]["subgraphs"] for name in row["deployed_on"]} == {
        "cpu",
        "relu-only",
    }
    assert main(["store", "--path", str(tmp_path / "store"), "show", "rounds"]) == 0
    assert f"{body['of']}/body 0" in capsys.readouterr().out
