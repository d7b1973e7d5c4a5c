"""hetnn.Executable in Python: what it takes and gives, sharing, processes, threads, files."""

from __future__ import annotations

import copy
import json
import multiprocessing
import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import hetnn

GRAPH = """graph @net {stage = imported} (%x: f32[2,4], %z: f32[2,4]) -> (%y, %s) {
  %s = add(%x, %z) : f32[2,4]
  %y = relu(%s) : f32[2,4]
}
"""


class Foreign:
    """An array of another library, seen through one protocol alone."""

    def __init__(self, array: np.ndarray[Any, Any], protocol: str, device: int = 1) -> None:
        self._array = array
        self._device = device
        if protocol == "dlpack":
            self.__class__ = ForeignDLPack
        elif protocol == "interface":
            self.__array_interface__ = array.__array_interface__


class ForeignDLPack(Foreign):
    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self._device, 0)


@pytest.fixture(scope="module")
def executable() -> hetnn.Executable:
    return hetnn.compile(GRAPH)


X = np.arange(8, dtype=np.float32).reshape(2, 4) - 4
Z = np.full((2, 4), 0.5, np.float32)
SUM = X + Z


def check(outputs: Any, kind: type = np.ndarray) -> None:
    y, s = outputs
    assert isinstance(y, kind)
    assert isinstance(s, kind)
    np.testing.assert_array_equal(np.asarray(y), np.maximum(SUM, 0))
    np.testing.assert_array_equal(np.asarray(s), SUM)


def test_torch_gives_torch_and_anything_else_numpy(executable: hetnn.Executable) -> None:
    check(executable(X, Z))
    check(executable(torch.from_numpy(X), torch.from_numpy(Z)), torch.Tensor)
    check(executable(torch.from_numpy(X).requires_grad_(), Z), torch.Tensor)


@pytest.mark.parametrize("protocol", ["dlpack", "interface"])
def test_arrays_of_other_libraries(executable: hetnn.Executable, protocol: str) -> None:
    check(executable(Foreign(X.copy(), protocol), Z))


def test_the_buffer_protocol(executable: hetnn.Executable) -> None:
    check(executable(memoryview(X), Z))


def test_arrays_that_are_read_only_strided_or_of_another_order(executable: hetnn.Executable) -> None:
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = np.zeros((4, 8), np.float32)
    wide[::2, ::2] = Z
    check(executable(frozen, wide[::2, ::2]))
    check(executable(np.asfortranarray(X), Z))
    check(executable(torch.from_numpy(X.T.copy()).T, Z), torch.Tensor)


def test_inputs_by_name(executable: hetnn.Executable) -> None:
    check(executable(z=Z, x=X))
    check(executable(X, z=Z))
    with pytest.raises(hetnn.InvalidModel, match=r"after 0 by position those by name must be x, z; got x, q\."):
        executable(x=X, q=Z)


def test_outputs_are_written_where_they_are_wanted(executable: hetnn.Executable) -> None:
    y, s = np.empty((2, 4), np.float32), np.empty((2, 4), np.float32)
    got = executable.run([X, Z], out=[y, s])
    assert got[0] is y
    assert got[1] is s
    check((y, s))
    tensors = [torch.empty(2, 4), torch.empty(2, 4)]
    check(executable.run([X, Z], out=tensors), torch.Tensor)


def test_outputs_that_cannot_be_written(executable: hetnn.Executable) -> None:
    y, s = np.empty((2, 4), np.float32), np.empty((2, 4), np.float32)
    frozen = y.copy()
    frozen.flags.writeable = False
    x = X.copy()
    for out, found in [
        ([y], r"out must hold 2 arrays; got 1\."),
        ([y, frozen], r"out\[1\] must be a writeable, contiguous array of f32\[2,4\]"),
        ([y.astype(np.float64), s], r"out\[0\] must be a writeable, contiguous array of f32\[2,4\]"),
        ([y, np.empty((4, 2), np.float32).T], r"out\[1\] must be a writeable"),
        ([x, s], r"out\[0\] shares memory with input 0"),
        ([y, y], r"out\[1\] shares memory with out\[0\]"),
    ]:
        with pytest.raises(hetnn.InvalidModel, match=found):
            executable.run([x, Z], out=out)


@pytest.mark.parametrize(
    ("inputs", "found"),
    [
        ((X,), r"the model takes 2 inputs \(x, z\); got 1\."),
        ((X, Z, Z), r"the model takes 2 inputs \(x, z\); got 3\."),
        ((X.astype(np.float64), Z), r"input 'x' must be f32\[2,4\]; got f64\[2,4\]. Convert it"),
        ((X, Z[0]), r"input 'z' must be f32\[2,4\]; got f32\[4\], of another rank"),
        ((X, Z[:1]), r"input 'z' must be f32\[2,4\]; got f32\[1,4\]: dimension 0 must be 2"),
        ((X, 3.0), r"input 'z' must be a tensor or an array; got float"),
        ((X, [[0.0] * 4] * 2), r"input 'z' must be a tensor or an array; got list"),
        ((X, Z.astype(np.complex64)), r"arrays of complex64 are not supported"),
        ((X, torch.empty(2, 4, device="meta")), r"input 'z' lies on the device 'meta'; it must lie on the cpu"),
        ((X, Foreign(Z, "dlpack", device=2)), r"input 'z' lies on the DLPack device 2; it must lie on the cpu"),
    ],
    ids=["few", "many", "dtype", "rank", "shape", "scalar", "list", "complex", "meta", "foreign"],
)
def test_inputs_that_do_not_fit(executable: hetnn.Executable, inputs: tuple[Any, ...], found: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=found):
        executable(*inputs)


def test_bf16_goes_in_and_out_as_torchs_or_as_an_array_of_ml_dtypes() -> None:
    doubled = hetnn.compile("graph @g {stage = imported} (%x: bf16[2,3]) -> (%y) {%y = add(%x, %x) : bf16[2,3]}")
    x = torch.tensor([[1.5, -2.0, 3.25], [0.0, 7.0, 1e30]], dtype=torch.bfloat16)
    y = doubled(x)
    assert y.dtype == torch.bfloat16
    assert torch.equal(y, x + x)
    array = x.float().numpy().astype(ml_dtypes.bfloat16)
    assert doubled(array).dtype == ml_dtypes.bfloat16
    assert (doubled(array) == array + array).all()


def test_many_threads_call_at_once(executable: hetnn.Executable) -> None:
    def call(k: int) -> bool:
        y, _ = executable(X + k, Z)
        return bool((y == np.maximum(SUM + k, 0)).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(400)))


def test_last_times_are_those_of_the_calling_thread(executable: hetnn.Executable) -> None:
    executable(X, Z)
    mine = executable.last_times
    assert [row["name"] for row in mine] == ["cpu.0"]
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: executable.last_times).result() == []
        pool.submit(executable, X, Z).result()
    assert executable.last_times == mine


def test_memory_between_runs_is_bounded(executable: hetnn.Executable) -> None:
    executable(X, Z)
    before = executable.kept_bytes
    executable.keep_at_most(0)
    check(executable(X, Z))
    assert executable.kept_bytes <= before


def call_in_worker(executable: hetnn.Executable) -> Any:
    return executable(X, Z)


# A kernel that takes all threads, so that the parent's team of them exists when it forks.
WIDE = """graph @wide {stage = imported} (%x: f32[512,512], %z: f32[512,512]) -> (%y) {
  %y = matmul(%x, %z) : f32[512,512]
}
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_executables_travel_to_worker_processes(executable: hetnn.Executable, method: str) -> None:
    check(pickle.loads(pickle.dumps(executable))(X, Z))
    check(executable(X, Z))
    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        check(pool.submit(call_in_worker, executable).result(timeout=100))


PROGRAM = """
import os, sys, numpy, hetnn
wide = hetnn.load(sys.argv[1], threads=2)
x = numpy.ones((512, 512), numpy.float32)
assert (wide(x, x) == 512).all()
child = os.fork()
if child == 0:
    os._exit(0 if (wide(x, x) == 512).all() else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("variable", ["OMP_DYNAMIC=false", "OMP_THREAD_LIMIT=1", "OMP_DYNAMIC=true"])
def test_a_forked_child_or_too_few_threads_do_not_hang(tmp_path: Path, variable: str) -> None:
    hetnn.compile(WIDE).save(tmp_path / "wide.hetnn")
    command = ["env", variable, sys.executable, "-c", PROGRAM, str(tmp_path / "wide.hetnn")]
    subprocess.run(command, check=True, timeout=100)


def test_arguments_are_described(executable: hetnn.Executable) -> None:
    assert [(p.name, p.dtype, p.shape) for p in executable.inputs] == [("x", "f32", (2, 4)), ("z", "f32", (2, 4))]
    assert [p.shape for p in executable.outputs] == [(2, 4), (2, 4)]
    assert repr(executable).startswith("<hetnn.Executable (x: f32[2,4], z: f32[2,4]) -> (")
    assert executable.threads >= 1
    assert "<" in executable._repr_html_()


def test_reports_in_every_form(executable: hetnn.Executable) -> None:
    assert executable.report("dict") == json.loads(executable.report("json"))
    assert executable.report("dict")["target"] == "cpu"
    assert "cpu" in executable.report("text")
    with pytest.raises(hetnn.InvalidModel, match=r"text, dict, json, html or svg; got 'pdf'"):
        executable.report("pdf")


def test_profiles_and_traces(executable: hetnn.Executable, tmp_path: Path) -> None:
    rows = executable.profile(X, Z)
    assert rows
    assert all(row["kernel"] and row["wall_us"] >= 0 for row in rows)
    assert all(row["bytes"] > 0 for row in rows)
    assert all(max(row["thread_us"]) <= row["wall_us"] * 1.01 + 1 for row in rows)
    executable.trace(tmp_path / "trace.json", X, Z)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert {span["cat"] for span in spans} >= {"subprogram", rows[0]["kernel"]}
    assert all(span["dur"] >= 0 for span in spans)
    assert {event["tid"] for event in events} == {event["tid"] for event in events if event["ph"] == "M"}


def test_a_profile_says_what_a_kernel_reaches() -> None:
    layer = torch.nn.Linear(300, 200, bias=False)
    executable = hetnn.compile(torch.export.export(layer, (torch.zeros(50, 300),)), "cpu", threads=2)
    (row,) = executable.profile(np.zeros((50, 300), np.float32))
    assert row["macs"] == 50 * 300 * 200
    assert row["bytes"] >= 4 * (50 * 300 + 300 * 200 + 50 * 200)
    assert row["gflops"] == pytest.approx(2 * row["macs"] / row["wall_us"] / 1e3)
    assert len(row["thread_us"]) == hetnn.machine.usable_threads(2)


def test_a_profile_says_why_a_kernel_does_not_serve() -> None:
    graph = """graph @g {stage = imported} (%x: i64[4], %a: f32[2,3], %w: f32[1,3,5], %n: i64[1]) -> (%y, %z, %r) {
      %y = relu(%x) : i64[4]
      %z = grouped_matmul(%a, %w, %n) : f32[2,5]
      %r = relu(%a) : f32[2,3]
    }
    """
    executable = hetnn.compile(graph, "cpu")
    weight, ends = np.zeros((1, 3, 5), np.float32), np.array([2])
    rows = executable.profile(np.zeros(4, np.int64), np.zeros((2, 3), np.float32), weight, ends)
    refusals = {row["kernel"]: row["refusals"] for row in rows}
    assert refusals["meaning of relu"] == ["unary takes f32; input 0 is i64.", "doubles takes f64; input 0 is i64."]
    assert refusals["meaning of grouped_matmul"] == ["grouped_matmul takes constants as weights."]
    assert refusals["unary"] == []


def test_a_profile_says_why_no_other_kernel_ran() -> None:
    layer = torch.nn.Conv2d(16, 16, 3, padding=1)
    (row,) = [
        row
        for row in hetnn.compile(layer, args=(torch.zeros(1, 16, 24, 24),)).profile(
            np.zeros((1, 16, 24, 24), np.float32)
        )
        if row["kernel"].startswith("conv2d")
    ]
    assert row["kernel"] == "conv2d_winograd"
    assert row["predicted_us"] > 0
    served = [rival for rival in row["rivals"] if "predicted_us" in rival]
    assert {rival["kernel"] for rival in served} == {"conv2d_winograd_2x2", "conv2d_direct"}
    assert row["predicted_us"] < served[0]["predicted_us"] <= served[1]["predicted_us"]
    refusals = {rival["kernel"]: rival["refusal"] for rival in row["rivals"] if "refusal" in rival}
    assert (
        refusals["conv2d_depthwise"] == "conv2d_depthwise takes a group a channel; got groups 1 of 16 and 16 channels."
    )
    assert refusals["conv2d_bf16"]


def test_a_report_has_the_ranked_kernels_of_a_profile() -> None:
    layer, x = torch.nn.Conv2d(16, 16, 3, padding=1), torch.zeros(1, 16, 24, 24)
    executable = hetnn.compile(layer, args=(x,))
    (row,) = [row for row in executable.profile(x) if row["kernel"].startswith("conv2d")]
    (told,) = [told for told in executable.report("dict")["graph"] if told["node"] == row["node"]]
    assert told["kernel"] == row["kernel"]
    assert told["kernel_us"] == row["predicted_us"]
    assert told["rivals"] == row["rivals"]


def test_a_profile_and_a_report_print_the_next_best_kernel() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wide, self.each = torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.Conv2d(16, 16, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.each(self.wide(x)).amax((2, 3))
            return result

    x = torch.zeros(1, 16, 24, 24)
    executable = hetnn.compile(Net().eval(), args=(x,))
    rows = executable.profile(x)
    wide, each = (row for row in rows if row["kernel"].startswith("conv2d"))
    rival = wide["rivals"][0]
    assert wide["next_best"] == f"{rival['kernel']} {rival['predicted_us']:,.1f} us"
    refusal = each["rivals"][0]["refusal"]
    assert each["next_best"] == refusal.rstrip(".")
    printed = str(rows).splitlines()
    assert printed[0].split()[-1] == "next_best"
    assert any(line.endswith(wide["next_best"]) for line in printed)
    told = executable.report("text").splitlines()
    begin = told.index("kernels on the CPU, and the next best:")
    assert f"  {wide['node']}: {wide['kernel']} {wide['predicted_us']:,.1f} us; {wide['next_best']}" in told[begin:]
    assert f"  {each['node']}: {each['kernel']} {each['predicted_us']:,.1f} us; {each['next_best']}" in told[begin:]


def test_the_next_best_of_one_refusal_are_one_line() -> None:
    report = hetnn.compile(torch.nn.Conv2d(16, 16, 1), args=(torch.zeros(1, 16, 24, 24),)).report("dict")
    (row,) = [row for row in report["graph"] if row.get("rivals")]
    report["graph"] += [{**row, "node": "again"}]
    lines = [line for line in str(report).splitlines() if line.startswith(f"  {row['node']}, again: {row['kernel']} ")]
    assert len(lines) == 1
    assert f" {2 * row['kernel_us']:,.1f} us; " in lines[0]


def test_kernels_that_operators_share_are_no_rivals_of_themselves() -> None:
    graph = """graph @g {stage = imported} (%x: f32[64,64]) -> (%y) {
      %y = reduce_max(%x) {axes = [1]} : f32[64]
    }
    """
    (row,) = hetnn.compile(graph, "cpu").profile(np.zeros((64, 64), np.float32))
    assert row["kernel"] == "reduce"
    assert row["predicted_us"] > 0
    assert row["rivals"] == []


def test_rivals_of_a_deterministic_kernel_say_how_they_round() -> None:
    layer, x = torch.nn.Conv2d(16, 16, 3, padding=1), torch.zeros(1, 16, 24, 24)
    executable = hetnn.compile(layer, args=(x,), deterministic=True)
    (row,) = [row for row in executable.profile(x) if row["kernel"].startswith("conv2d")]
    assert row["kernel"] == "conv2d_direct"
    (winograd,) = [rival for rival in row["rivals"] if rival["kernel"] == "conv2d_winograd"]
    assert winograd["refusal"] == "conv2d_winograd rounds otherwise than sums of products do."


def test_a_loaded_file_may_be_removed_while_in_use(executable: hetnn.Executable, tmp_path: Path) -> None:
    path = tmp_path / "net.hetnn"
    executable.save(path)
    loaded = hetnn.load(path)
    path.unlink()
    check(loaded(X, Z))
    loaded.save(path)
    check(hetnn.load(path)(X, Z))


def dynamic(target: str) -> hetnn.Executable:
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()).eval()
    batch = torch.export.Dim("batch", min=1, max=64)
    exported = torch.export.export(module, (torch.zeros(2, 3, 8, 8),), dynamic_shapes=({0: batch},), strict=False)
    return hetnn.compile(exported, target)


def test_many_threads_meet_new_sizes_at_once() -> None:
    """The compiler is called from many threads while others hold Python's lock and ask the executable."""
    executable = dynamic("cpu+relu-only")

    def call(k: int) -> bool:
        x = np.full((1 + k % 9, 3, 8, 8), k, np.float32)
        return bool((executable(x)[0] == executable(x[:1])[0]).all()) and len(executable.inputs) == 1

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(60), timeout=200))


def test_a_loaded_file_lists_the_sizes_it_has(tmp_path: Path) -> None:
    executable = dynamic("cpu+relu-only")
    executable(np.zeros((5, 3, 8, 8), np.float32))
    executable.save(tmp_path / "net.hetnn")
    loaded = hetnn.load(tmp_path / "net.hetnn")
    assert loaded(np.zeros((5, 3, 8, 8), np.float32)).shape == (5, 4, 6, 6)
    notice = r"(?s)no accelerator code for \{.* = 7\}.*= 5\}.*run it once before"
    with pytest.warns(RuntimeWarning, match=notice):
        loaded(np.zeros((7, 3, 8, 8), np.float32))


@pytest.mark.parametrize("how", ["pickle", "deepcopy", "save", "a copy of a copy"])
@pytest.mark.parametrize("target", ["cpu+relu-only", "cpu+relu-table"])
def test_copies_compute_sizes_without_code_on_the_cpu_and_say_so(how: str, target: str, tmp_path: Path) -> None:
    executable = dynamic(target)
    if how == "save":
        executable.save(tmp_path / "net.hetnn")
        other = hetnn.load(tmp_path / "net.hetnn")
    else:
        other = copy.deepcopy(executable) if how == "deepcopy" else pickle.loads(pickle.dumps(executable))
    if how == "a copy of a copy":
        other = pickle.loads(pickle.dumps(other))
    x = np.random.default_rng(0).standard_normal((7, 3, 8, 8), np.float32)
    with pytest.warns(RuntimeWarning, match=r"no accelerator code for \{batch = 7\}, so the general processor") as told:
        got = other(x)
    assert len(told) == 1
    assert any(row["fallback"] for row in other.last_times)
    np.testing.assert_allclose(got, executable(x), rtol=1e-5, atol=1e-5)
    assert not any(row["fallback"] for row in executable.last_times)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other(x)  # said once
        other(x[:2])  # the example's size
    assert not any(row["fallback"] for row in other.last_times)


def test_a_static_executable_carries_no_fallback() -> None:
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()).eval()
    static = hetnn.compile(torch.export.export(module, (torch.zeros(2, 3, 8, 8),), strict=False), "cpu+relu-only")
    assert b'\\"fallback\\"' not in static._engine.image()
    assert b'\\"fallback\\"' in dynamic("cpu+relu-only")._engine.image()
