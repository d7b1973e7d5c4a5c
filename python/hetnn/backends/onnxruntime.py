"""ONNX Runtime's execution providers as devices: `cpu+onnxruntime-cpu`, `-cuda`, `-qnn`, `-coreml` and all others that
the installed package has. Needs `hetnn[onnxruntime]`, and `hetnn[onnx]` to compile."""

from __future__ import annotations

import ctypes
import json
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hetnn.backends import measuring
from hetnn.backends.backend import Backend, Port, Reason, Run
from hetnn.element_types import NUMPY, TYPES, numpy_type
from hetnn.errors import Unavailable
from hetnn.machine import default_threads

if TYPE_CHECKING:
    from hetnn import _core

_CPU = "CPUExecutionProvider"  # to which every session falls back
_CONTEXT = "EPContext"  # the operator that holds what a provider has compiled
_TAKEN = "_kernel_time"  # behind a node's name in a profile
# Providers that compute in narrower types than the model's, unless they are told not to.
_EXACT = {"CUDAExecutionProvider": {"use_tf32": "0"}, "ROCMExecutionProvider": {"use_tf32": "0"}}

# Whole bytes that numpy has from others alone, as ONNX Runtime calls them: our name. And the numbers of ONNX's types.
_BEYOND_NUMPY = {
    f"tensor({row.onnx.lower()})": row.name for row in TYPES if row.onnx and row.name not in NUMPY and row.bits >= 8
}
_NUMBERS = {"bf16": 16, "f8e4m3fn": 17, "f8e4m3fnuz": 18, "f8e5m2": 19, "f8e5m2fnuz": 20, "f8e8m0": 24}
_PACKED = {f"tensor({row.onnx.lower()})" for row in TYPES if row.onnx and row.bits < 8 and row.name not in NUMPY}

# What ONNX Runtime has said of graphs without their constants' values, which are of no account to it.
_reasons: measuring.Known[list[Reason]] = measuring.Known()
_times: measuring.Known[Mapping[str, float] | None] = measuring.Known()


class OnnxRuntime(Backend):
    """An execution provider. The spec: `variant`, its name there in small letters and without ExecutionProvider (cpu
    where it is absent), and `options`, the provider's own, as {"device_id": 1}."""

    measures = True

    def __init__(self, name: str, spec: Mapping[str, Any]) -> None:
        super().__init__(name, spec)
        try:
            import onnxruntime
        except ModuleNotFoundError as error:
            raise Unavailable(f"device '{name}' needs ONNX Runtime. Run pip install 'hetnn[onnxruntime]'.") from error
        self._onnxruntime = onnxruntime
        wanted = str(self.spec.get("variant", "cpu")).lower()
        there = {_short(provider): provider for provider in onnxruntime.get_available_providers()}
        if wanted not in there:
            raise Unavailable(
                f"device '{name}': this ONNX Runtime has no provider '{wanted}'; it has {', '.join(there)}. "
                "Install the package of ONNX Runtime that brings it."
            )
        self._provider = there[wanted]
        if wanted == "cuda" and hasattr(onnxruntime, "preload_dlls"):
            onnxruntime.preload_dlls()  # NVIDIA's libraries, where they are Python packages

    @property
    def version(self) -> str:
        """ONNX Runtime's own."""
        return str(self._onnxruntime.__version__)

    def reads(self, version: str) -> bool:
        """ONNX models are read by every version; what a provider has compiled it checks itself."""
        return True

    @cached_property
    def launch_us(self) -> float:
        """What the spec says, else what a subgraph takes that computes next to nothing."""
        return float(self.spec["launch_us"]) if "launch_us" in self.spec else measuring.visit_us(self)

    def supports(self, node: _core.Graph) -> Iterable[Reason | str]:
        """What ONNX has no form for, and what the provider leaves to another."""
        return _reasons.once(self._key(node), lambda: self._refusals(node))

    def times_us(self, graph: _core.Graph) -> Mapping[str, float] | None:
        """What a run on zeros takes, shared out by ONNX Runtime's profile; None where sizes are open.

        A provider's own queue is in a profile by its launches alone, so that only shares are taken from it. What ONNX
        Runtime makes of several nodes stands under the name of one of them.
        """
        return _times.once(self._key(graph), lambda: self._measured_us(graph))

    def _key(self, graph: _core.Graph) -> tuple[str, str, str]:
        return self._provider, json.dumps(self._options, sort_keys=True), graph.print(constants=False, locations=False)

    def _measured_us(self, graph: _core.Graph) -> Mapping[str, float] | None:
        from hetnn.exporters.onnx import export

        if any(not isinstance(size, int) for _, _, shape in graph.inputs for size in shape):
            return None
        zeros = [np.zeros(shape, numpy_type(dtype)) for _, dtype, shape in graph.inputs]
        model = export(graph).SerializeToString()
        taken_us = measuring.median_us(partial(_run, self._session(model), zeros))
        with tempfile.TemporaryDirectory() as folder:
            session = self._session(model, profile=str(Path(folder) / "profile"))
            for _ in range(measuring.RUNS):
                _run(session, zeros)
            rows = json.loads(Path(session.end_profiling()).read_text())
        shares = _shares(rows, [node["name"] for node in graph.nodes()])
        work_us = max(taken_us - self.launch_us, 0.0)
        return {name: share * work_us for name, share in shares.items()}

    def _refusals(self, node: _core.Graph) -> list[Reason]:
        from hetnn.exporters.onnx import export, refusal

        op = node.nodes()[-1]["op"]
        why = refusal(node)
        if why is not None:
            return [Reason("no_onnx_form", op, "an operator of ONNX", why)]
        try:
            session = self._session(export(node).SerializeToString(), alone=True)
            packed = {port.type for port in (*session.get_inputs(), *session.get_outputs())} & _PACKED
            if packed:
                found = ", ".join(sorted(packed))
                return [Reason("no_array", found, "whole bytes", f"no array holds {found} as ONNX Runtime does")]
        except Exception as error:  # ONNX Runtime's errors have no common class
            return [Reason("onnxruntime_refuses", op, f"what {self._provider} takes", _first_line(error))]
        return []

    def compile(self, graph: _core.Graph) -> bytes:
        """The ONNX model, or, where the provider writes one, the model that holds what it has compiled."""
        from hetnn.exporters.onnx import export

        model = export(graph).SerializeToString()
        with tempfile.TemporaryDirectory() as folder:
            written = Path(folder) / "context.onnx"
            entries = {"ep.context_enable": "1", "ep.context_file_path": str(written), "ep.context_embed_mode": "1"}
            self._session(model, entries=entries)
            return written.read_bytes() if written.is_file() and _CONTEXT.encode() in written.read_bytes() else model

    def open(self, code: bytes, inputs: Sequence[Port], outputs: Sequence[Port]) -> Run:
        """A session of the model."""
        try:
            session = self._session(code)
        except Exception as error:  # likewise
            raise Unavailable(f"device '{self.name}': {_first_line(error)}") from error
        return partial(_run, session)

    @cached_property
    def _options(self) -> dict[str, str]:
        given = {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in self.spec.get("options", {}).items()
        }
        return {**_EXACT.get(self._provider, {}), **given}

    def _session(
        self, model: bytes, alone: bool = False, entries: Mapping[str, str] | None = None, profile: str = ""
    ) -> Any:
        options = self._onnxruntime.SessionOptions()
        options.intra_op_num_threads = default_threads()
        options.log_severity_level = 4  # refusals are told by errors
        for key, value in (entries or {}).items():
            options.add_session_config_entry(key, value)
        if profile:
            options.enable_profiling, options.profile_file_prefix = True, profile
        if alone and self._provider != _CPU:
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        session = self._onnxruntime.InferenceSession(model, options, providers=[(self._provider, self._options)])
        if self._provider not in session.get_providers():  # it would compute on the CPU, and say so in a log alone
            raise Unavailable(
                f"ONNX Runtime could not start {self._provider} and offers {', '.join(session.get_providers())}; its "
                "libraries or its device are missing. Install what the provider needs."
            )
        return session


def _run(session: Any, arrays: list[Any]) -> Sequence[Any]:
    inputs, outputs = session.get_inputs(), session.get_outputs()
    if not any(port.type in _BEYOND_NUMPY for port in (*inputs, *outputs)):
        return session.run(None, dict(zip((port.name for port in inputs), arrays, strict=True)))  # type: ignore[no-any-return]
    given = {port.name: _value(array, port.type) for port, array in zip(inputs, arrays, strict=True)}
    found = session.run_with_ort_values([port.name for port in outputs], given)
    return [_array(value, port.type) for value, port in zip(found, outputs, strict=True)]


def _value(array: Any, kind: str) -> Any:
    from onnxruntime import OrtValue

    if kind not in _BEYOND_NUMPY:
        return OrtValue.ortvalue_from_numpy(array)
    name = _BEYOND_NUMPY[kind]
    bits = array.view(f"uint{8 * array.itemsize}")
    return OrtValue.ortvalue_from_numpy_with_onnx_type(bits, _NUMBERS[name])


def _array(value: Any, kind: str) -> Any:
    if kind not in _BEYOND_NUMPY:
        return value.numpy()
    dtype, shape = numpy_type(_BEYOND_NUMPY[kind]), value.shape()
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.frombuffer(ctypes.string_at(value.data_ptr(), size) if size else b"", dtype).reshape(shape)


def _shares(rows: list[Any], names: list[str]) -> dict[str, float]:
    """Which part of all time goes to which node. A row is a node's whose name begins its own, as `conv_nchwc`."""
    taken: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["cat"] == "Node" and row["name"].endswith(_TAKEN):
            taken[row["name"].removesuffix(_TAKEN)].append(row["dur"])
    shares = dict.fromkeys(names, 0.0)
    for called, times in taken.items():
        owner = max((name for name in names if called.startswith(name)), key=len, default=None)
        if owner is not None:
            shares[owner] += statistics.median(times)
    total = sum(shares.values())
    return {name: share / total for name, share in shares.items()} if total else shares


def _short(provider: str) -> str:
    return provider.removesuffix("ExecutionProvider").lower()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
