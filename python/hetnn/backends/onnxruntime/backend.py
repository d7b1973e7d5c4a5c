"""ONNX Runtime's execution providers as devices: `cpu+onnxruntime-cpu`, `-cuda`, `-qnn`, `-coreml` and all others that
the installed package has. Needs `hetnn[onnxruntime]`, and `hetnn[onnx]` to compile."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hetnn.backends import measuring, onnx_form
from hetnn.backends.backend import Backend, Port, Reason, Run
from hetnn.backends.onnxruntime import profile, values
from hetnn.backends.onnxruntime.recorded import RECORDS, Recorded, can_record
from hetnn.element_types import numpy_type
from hetnn.errors import Unavailable
from hetnn.machine import default_threads

if TYPE_CHECKING:
    from hetnn import _core

_CPU = "CPUExecutionProvider"  # to which every session falls back
_CONTEXT = "EPContext"  # the operator that holds what a provider has compiled
# Providers that compute in narrower types than the model's, unless they are told not to.
_EXACT = {"CUDAExecutionProvider": {"use_tf32": "0"}, "ROCMExecutionProvider": {"use_tf32": "0"}}

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
        """What a run takes, shared out by ONNX Runtime's profile; None where sizes are open or no example runs.

        A provider's own queue is in a profile by its launches alone, so that only shares are taken from it. What ONNX
        Runtime makes of several nodes stands under the name of one of them.
        """
        return _times.once(self._key(graph), lambda: self._measured_us(graph))

    def _key(self, graph: _core.Graph) -> tuple[str, str, str]:
        return self._provider, json.dumps(self._options, sort_keys=True), graph.print(constants=False, locations=False)

    def _measured_us(self, graph: _core.Graph) -> Mapping[str, float] | None:
        from hetnn.exporters.onnx import export

        model = export(graph).SerializeToString()
        run = self.open(model, [], [])
        given = next((arrays for arrays in _examples(graph) if not _refusal(run, arrays)), None)
        if given is None:
            return None
        taken_us = measuring.median_us(lambda: run(given))
        with tempfile.TemporaryDirectory() as folder:
            session = self._session(model, written=str(Path(folder) / "profile"))
            run_profiled = values.runner(session)
            for _ in range(measuring.RUNS):
                run_profiled(given)
            rows = json.loads(Path(session.end_profiling()).read_text())
        work_us = max(taken_us - self.launch_us, 0.0)
        parts = profile.shares(rows, [node["name"] for node in graph.nodes()])
        return {name: part * work_us for name, part in parts.items()}

    def _refusals(self, node: _core.Graph) -> list[Reason]:
        from hetnn.exporters.onnx import export

        if missing := onnx_form.refusals(node):
            return missing
        op = node.nodes()[-1]["op"]
        wanted = f"what {self._provider} takes"
        try:
            session = self._session(export(node).SerializeToString(), alone=True)
        except Exception as error:  # ONNX Runtime's errors have no common class
            return [Reason("onnxruntime_refuses", op, wanted, _first_line(error))]
        packed = ", ".join(sorted(values.types_of(session) & values.PACKED))
        if packed:
            return [Reason("no_array", packed, "whole bytes", f"no array holds {packed} as ONNX Runtime does")]
        # Kernels of others than the CPU refuse some types and attributes only when they run.
        run, text = values.runner(session), ""
        for arrays in [] if self._provider == _CPU else _examples(node):
            text = _refusal(run, arrays)
            if not text:
                break
        return [Reason("onnxruntime_refuses", op, wanted, text)] if text else []

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
        return self._recorded(code, session) or values.runner(session)

    def _recorded(self, code: bytes, session: Any) -> Run | None:
        option, memory = RECORDS.get(self._provider, ("", ""))
        if not option or option in self._options or not can_record(session):
            return None
        try:
            again = self._session(code, more={option: "1"})
            return Recorded(again, memory, int(self._options.get("device_id", 0)))
        except Exception:  # not all of a model can be recorded
            return None

    @cached_property
    def _options(self) -> dict[str, str]:
        given = {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in self.spec.get("options", {}).items()
        }
        return {**_EXACT.get(self._provider, {}), **given}

    def _session(
        self,
        model: bytes,
        alone: bool = False,
        entries: Mapping[str, str] | None = None,
        written: str = "",
        more: Mapping[str, str] | None = None,
    ) -> Any:
        options = self._onnxruntime.SessionOptions()
        options.intra_op_num_threads = default_threads()
        options.log_severity_level = 4  # refusals are told by errors
        for key, value in (entries or {}).items():
            options.add_session_config_entry(key, value)
        if written:
            options.enable_profiling, options.profile_file_prefix = True, written
        if alone and self._provider != _CPU:
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        provider = self._provider, {**self._options, **(more or {})}
        # Without the fallback: where a provider fails, ONNX Runtime would go on with the CPU, and say nothing of it.
        session = self._onnxruntime.InferenceSession(model, options, providers=[provider], enable_fallback=0)
        if self._provider not in session.get_providers():  # it would compute on the CPU, and say so in a log alone
            raise Unavailable(
                f"ONNX Runtime could not start {self._provider} and offers {', '.join(session.get_providers())}; its "
                "libraries or its device are missing. Install what the provider needs."
            )
        return session


def _examples(graph: _core.Graph) -> list[list[Any]]:
    """Inputs to try a graph with, none where sizes are open: ones, which integers are divided by without harm, and
    zeros, which are indices into anything."""
    if any(not isinstance(size, int) for _, _, shape in graph.inputs for size in shape):
        return []
    return [[np.full(shape, value, numpy_type(dtype)) for _, dtype, shape in graph.inputs] for value in (1, 0)]


def _refusal(run: Run, arrays: list[Any]) -> str:
    try:
        run(arrays)
    except Exception as error:  # likewise
        return _first_line(error)
    return ""


def _short(provider: str) -> str:
    return provider.removesuffix("ExecutionProvider").lower()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
