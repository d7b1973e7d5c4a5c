"""Backends of other people: found, planned with, saved, loaded, run, and refused where something is off."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hetnn
from backends.text_backend import TextBackend
from hetnn import _core, trials
from hetnn.backends import Port, Run, registry
from hetnn.errors import DoesNotFit, InvalidModel, Unavailable, Unsupported
from hetnn.remote.server import DeviceServer
from hetnn.target import resolve_target
from serve.server import serving


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.a(x))
        return torch.relu(self.b(torch.sin(y)) + y)


@pytest.fixture(scope="module")
def model() -> tuple[Any, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    net, x = Small().eval(), torch.randn(1, 3, 12, 12)
    return torch.export.export(net, (x,)), x, net(x).detach()


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Kinds that a test registers mean nothing to the next."""
    before = dict(registry._given)
    yield
    registry._given.clear()
    registry._given.update(before)


def compiled(model: Any, backend: type[TextBackend], kind: str = "text", **options: Any) -> hetnn.Executable:
    hetnn.register_backend(kind, backend)
    return hetnn.compile(model, f"cpu+{kind}", strategy="take-all", **options)


def on(executable: hetnn.Executable, device: str) -> set[str]:
    return {row["op"] for row in executable.report("dict")["graph"] if row["device"] == device}


def test_a_subgraph_goes_to_it_and_comes_back(model: Any, tmp_path: Path) -> None:
    exported, x, expected = model
    exe = compiled(exported, TextBackend)
    assert on(exe, "text") == {"conv2d", "relu", "add"}
    assert on(exe, "cpu") == {"sin"}
    assert torch.allclose(exe(x), expected, atol=1e-5)
    assert "the text device has no sin" in exe.report()
    exe.save(tmp_path / "small.hetnn")
    assert torch.equal(hetnn.load(tmp_path / "small.hetnn")(x), exe(x))
    assert {row["device"] for row in exe.last_times} == {"cpu", "text"}


def test_runs_overlap_and_are_many(model: Any) -> None:
    exported, x, expected = model
    exe = compiled(exported, TextBackend)
    threads = [threading.Thread(target=lambda: [exe(x) for _ in range(20)]) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert torch.allclose(exe(x), expected, atol=1e-5)


def test_a_variant_and_a_spec_reach_it(model: Any) -> None:
    seen: list[Mapping[str, Any]] = []

    class Noting(TextBackend):
        def __init__(self, name: str, spec: Mapping[str, Any]) -> None:
            seen.append({"name": name, **spec})
            super().__init__(name, spec)

    hetnn.register_backend("text", Noting)
    hetnn.compile(model[0], "cpu+text-fast2")
    assert seen[0] == {"name": "text-fast2", "variant": "fast2"}
    devices = [{"name": "cpu", "kind": "cpu"}, {"name": "t", "kind": "text", "spec": {"ops": ["relu"]}}]
    exe = hetnn.compile(model[0], {"name": "mine", "devices": devices}, strategy="take-all")
    assert on(exe, "t") == {"relu"}
    assert seen[-1] == {"name": "t", "ops": ["relu"]}  # with which it runs, too


def test_what_its_compiler_refuses_is_a_reason_and_the_plan_is_repaired(model: Any) -> None:
    exported, x, expected = model
    refusals: dict[str, Exception] = {
        "no adder is free": DoesNotFit("no adder is free"),
        "not today": Unsupported("not today"),
        "its compiler failed: ZeroDivisionError: oops": ZeroDivisionError("oops"),
    }
    for sentence, error in refusals.items():

        class Refusing(TextBackend):
            raised = error

            def compile(self, graph: _core.Graph) -> bytes:
                for node in graph.nodes():
                    if node["op"] == "add":
                        if isinstance(self.raised, DoesNotFit):
                            self.raised.node = node["name"]  # type: ignore[attr-defined]
                        raise self.raised
                return super().compile(graph)

        exe = compiled(exported, Refusing)
        assert "add" in on(exe, "cpu"), sentence
        assert on(exe, "text") >= {"conv2d"}, sentence
        assert sentence in exe.report("json")
        assert torch.allclose(exe(x), expected, atol=1e-5)


def broken(result: Any) -> type[TextBackend]:
    class Broken(TextBackend):
        def open(self, code: bytes, inputs: Sequence[Port], outputs: Sequence[Port]) -> Run:
            right = super().open(code, inputs, outputs)
            return lambda arrays: result(right(arrays))

    return Broken


def dies(_: Any) -> Any:
    raise OSError("the cable is out")


@pytest.mark.parametrize(
    ("result", "error", "sentence"),
    [
        (
            lambda outputs: [*outputs, outputs[0]],
            InvalidModel,
            r"returned 2 arrays for subgraph .*, which has 1 output",
        ),
        (
            lambda outputs: [outputs[0][:, :3]],
            InvalidModel,
            r"returned float32\(1, 3, 12, 12\) as '.*', which is f32",
        ),
        (lambda outputs: [outputs[0].astype(np.float64)], InvalidModel, r"returned float64\(1, 8, 12, 12\)"),
        (lambda outputs: 7, Unavailable, "device 'text'"),
        (lambda outputs: [None], InvalidModel, "object"),
        (dies, Unavailable, r"device 'text': OSError: the cable is out"),
    ],
)
def test_what_lies_or_fails_ends_the_run(model: Any, result: Any, error: type[Exception], sentence: str) -> None:
    exe = compiled(model[0], broken(result))
    with pytest.raises(error, match=sentence):
        exe(model[1])
    with pytest.raises(error, match=sentence):  # and the executable is as it was
        exe(model[1])


def test_a_deadline_ends_a_run_whose_device_hangs(model: Any) -> None:
    go_on = threading.Event()

    def hangs(outputs: Any) -> Any:
        go_on.wait(30)
        return outputs

    exe = compiled(model[0], broken(hangs))
    run = exe.run_async([model[1]], timeout_s=0.2)
    threading.Timer(0.5, go_on.set).start()
    with pytest.raises(Unavailable, match="deadline"):
        run.result(20)
    assert torch.allclose(torch.from_numpy(exe.run([model[1].numpy()])[0]), model[2], atol=1e-5)


def test_ctrl_c_while_a_device_computes_is_ctrl_c(model: Any) -> None:
    def interrupted(_: Any) -> Any:
        raise KeyboardInterrupt

    exe = compiled(model[0], broken(interrupted))
    with pytest.raises(KeyboardInterrupt):
        exe(model[1])


def test_a_device_that_is_measured_computes_what_it_is_faster_at(model: Any) -> None:
    """Its figures promise much; what it takes is measured, and the whole runs where that takes least."""
    waits_s = 0.02

    class Measured(TextBackend):
        measures = True

        def open(self, code: bytes, inputs: Sequence[Port], outputs: Sequence[Port]) -> Run:
            right = super().open(code, inputs, outputs)
            return lambda arrays: (time.sleep(waits_s), right(arrays))[1]

    hetnn.register_backend("text", Measured)
    exe = hetnn.compile(model[0], "cpu+text")
    assert on(exe, "text") == set()
    times_ms = {row["strategy"]: row["ms"] for row in exe.trials}
    assert max(times_ms.values()) > waits_s * 1e3 > min(times_ms.values())
    assert torch.allclose(exe(model[1]), model[2], atol=1e-5)


class Planned:
    """What trials look at of an executable."""

    def __init__(self, *devices: str) -> None:
        self._devices, self.trials = devices, []

    def report(self, _: str) -> dict[str, Any]:
        return {"subgraphs": [{"device": device, "nodes": [str(k)]} for k, device in enumerate(self._devices)]}


@pytest.mark.parametrize(("pieces_ms", "chosen"), [(0.97, "cpu-only"), (0.9, "cost")])
def test_a_plan_of_pieces_is_taken_where_it_gains_more_than_noise(
    pieces_ms: float, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = {"cost": Planned("cpu", "text"), "cpu-only": Planned("cpu", "cpu"), "take-all": Planned("text", "text")}
    times_ms = {"cpu-only": 1.0, "take-all": 1.1, "cost": pieces_ms}
    monkeypatch.setattr(trials, "_in_turns", lambda made: {strategy: times_ms[strategy] for strategy in made})
    found: Any = trials.fastest(lambda strategy: plans[strategy])  # type: ignore[arg-type, return-value]
    assert found is plans[chosen]
    assert found.trials == [{"strategy": strategy, "ms": ms} for strategy, ms in times_ms.items()]
    # One of the plans by itself may be that by cost.
    plans["cost"] = Planned("cpu", "cpu")
    assert trials.fastest(lambda strategy: plans[strategy]) is plans["cpu-only"]  # type: ignore[arg-type, return-value]


SIZED = """graph @g {stage = imported, symbols = [n: 1..9 = 4]} (%x: f32[n,3], %b: f32[3]) -> (%y) {
  %s = sin(%x) : f32[n,3]
  %e = expand(%b) {shape = [n,3]} : f32[n,3]
  %r = relu(%e) : f32[n,3]
  %y = add(%s, %r) : f32[n,3]
}"""


@pytest.mark.parametrize("elsewhere", [False, True])
def test_sizes_that_no_input_tells_come_with_the_call(elsewhere: bool, tmp_path: Path) -> None:
    """The device is given the bias alone, and makes as many rows of it as the run has."""

    class Expanding(TextBackend):
        def __init__(self, name: str, spec: Mapping[str, Any]) -> None:
            super().__init__(name, {**spec, "ops": ["expand", "relu"]})

    hetnn.register_backend("text", Expanding)
    exe = hetnn.compile(SIZED, "cpu+text", strategy="take-all")
    assert on(exe, "text") == {"expand", "relu"}
    server = None
    if elsewhere:
        exe.save(tmp_path / "sized.hetnn")
        (tmp_path / "token").write_text("known to both")
        server = DeviceServer(resolve_target("cpu+text")["devices"][1:], "known to both", "127.0.0.1:0")
        threading.Thread(target=server.serve, daemon=True).start()
        place = {"at": f"127.0.0.1:{server.port}", "token_file": tmp_path / "token"}
        exe = hetnn.load(tmp_path / "sized.hetnn", devices={"text": place})
    bias = np.float32([-1, 2, 3])
    for rows in (4, 1, 9, 4):
        x = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)
        np.testing.assert_allclose(exe(x, bias), np.sin(x) + np.maximum(bias, 0), atol=1e-6)
    if server is not None:
        server.end()


def test_another_version_does_not_open_the_file(model: Any, tmp_path: Path) -> None:
    compiled(model[0], TextBackend).save(tmp_path / "v1.hetnn")

    class Newer(TextBackend):
        version = "2.0"

    hetnn.register_backend("text", Newer)
    with pytest.raises(InvalidModel, match=r"compiled by text 1\.0; here is 2\.0"):
        hetnn.load(tmp_path / "v1.hetnn")


def test_a_file_for_a_kind_that_is_not_installed_says_so(model: Any, tmp_path: Path) -> None:
    compiled(model[0], TextBackend).save(tmp_path / "small.hetnn")
    load = f"import hetnn\nhetnn.load({str(tmp_path / 'small.hetnn')!r})"
    done = subprocess.run([sys.executable, "-c", load], capture_output=True, text=True)
    assert "InvalidModel" in done.stderr
    assert "of kind 'text'; the kinds that run here are" in done.stderr


@pytest.mark.parametrize(
    ("kind", "factory", "sentence"),
    [
        ("npu", TextBackend, "a kind of device of hetnn's own"),
        ("Text", TextBackend, "small letters"),
        ("", TextBackend, "small letters"),
        ("text", 7, "must be a class or a function; got int"),
    ],
)
def test_what_is_no_kind_is_refused(kind: Any, factory: Any, sentence: str) -> None:
    with pytest.raises(InvalidModel, match=sentence):
        hetnn.register_backend(kind, factory)


def test_a_factory_that_makes_no_backend_is_refused(model: Any) -> None:
    hetnn.register_backend("text", lambda name, spec: "a backend")  # type: ignore[arg-type,return-value]
    with pytest.raises(InvalidModel, match="its factory gave str"):
        hetnn.compile(model[0], "cpu+text")


def test_an_unknown_name_lists_the_kinds(model: Any) -> None:
    hetnn.register_backend("text", TextBackend)
    with pytest.raises(InvalidModel, match=r"there is no target 'texd'.*Did you mean 'text'"):
        hetnn.compile(model[0], "cpu+texd")


def test_the_one_of_the_guide(model: Any) -> None:
    page = (Path(__file__).parents[3] / "docs" / "devices.md").read_text()
    code = page.split("```python\n", 1)[1].split("```", 1)[0]
    exec(compile(code, "devices.md", "exec"), {"__name__": "guide"})
    exe = hetnn.compile(model[0], "cpu+toy", strategy="take-all")
    assert on(exe, "toy") == {"relu", "add"}
    assert torch.allclose(exe(model[1]), model[2], atol=1e-5)


PACKAGE = {
    "pyproject.toml": """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "vendor"
version = "3"
[tool.setuptools]
py-modules = ["vendor"]
[project.entry-points."hetnn.backends"]
vendor = "vendor:Vendor"
""",
    "vendor.py": Path(__file__).with_name("text_backend.py").read_text().replace("TextBackend", "Vendor"),
}
USES = """
import sys, numpy as np, hetnn
x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 12)
text = "graph @g {stage = imported} (%x: f32[2,12]) -> (%y) {\\n"
text += " %a = relu(%x) : f32[2,12]\\n %y = sin(%a) : f32[2,12]\\n}"
exe = hetnn.compile(text, "cpu+vendor", strategy="take-all")
exe.save(sys.argv[1])
again = hetnn.load(sys.argv[1])
assert np.allclose(again(x), np.sin(np.maximum(x, 0)), atol=1e-6)
print({row["device"] for row in again.last_times})
"""


def test_a_package_brings_one_by_an_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in PACKAGE.items():
        (tmp_path / "package" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "package" / name).write_text(content)
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", str(site)]
    subprocess.run([*pip, str(tmp_path / "package")], check=True)
    at = f"import sys; sys.path.insert(0, {str(site)!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", at + USES, str(tmp_path / "x.hetnn")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "vendor" in done.stdout
    file = str(tmp_path / "x.hetnn")

    def command(*argv: str) -> str:
        call = f"from hetnn.cli import console; sys.argv = {['hetnn', *argv]!r}; console()"
        ran = subprocess.run([sys.executable, "-c", at + call], capture_output=True, text=True)
        return ran.stdout + ran.stderr

    assert "vendor" in command("targets").split()
    assert "is sound" in command("verify", file)
    # Served where it is installed, and refused where it is not.
    load = [sys.executable, "-c", f"import hetnn; hetnn.load({str(tmp_path / 'x.hetnn')!r})"]
    refused = subprocess.run(load, capture_output=True, text=True)
    assert "InvalidModel" in refused.stderr
    assert "of kind 'vendor'; the kinds that run here are cpu" in refused.stderr
    assert "Install the package that brings it" in refused.stderr
    monkeypatch.setenv("PYTHONPATH", str(site))
    x = np.linspace(-1, 1, 24, dtype=np.float32)
    with serving("--model", f"x={tmp_path / 'x.hetnn'}") as server:
        tensor = {"name": "x", "datatype": "FP32", "shape": [2, 12], "data": x.tolist()}
        status, _, body = server.ask("POST", "/v2/models/x/infer", {"inputs": [tensor]})
    assert status == 200, body
    np.testing.assert_allclose(json.loads(body)["outputs"][0]["data"], np.sin(np.maximum(x, 0)), atol=1e-6)


def test_installed_packages_are_asked_of_names_that_hetnn_lacks() -> None:
    asks = "from hetnn.backends import registry\nfrom hetnn.target import resolve_target\n"
    asks += "resolve_target('cpu+relu-only')\nprint(registry._installed.cache_info().currsize)"
    done = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"
