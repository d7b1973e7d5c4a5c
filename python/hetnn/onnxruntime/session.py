"""A session over an executable."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import hetnn
from hetnn.onnxruntime.binding import IOBinding
from hetnn.onnxruntime.errors import Fail, InvalidArgument, InvalidProtobuf, NoSuchFile, translated
from hetnn.onnxruntime.options import ModelMetadata, NodeArg, RunOptions, SessionOptions
from hetnn.onnxruntime.values import TYPES, OrtValue, arg_of, fed

CPU = "CPUExecutionProvider"


class InferenceSession:
    """A model, compiled for the first of the providers that is a target (default: "cpu").

    path_or_bytes: an ONNX model, or the path of a .hetnn file. Keywords that are not ONNX Runtime's are those of
    hetnn.compile. Errors: NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented, Fail.
    """

    def __init__(
        self,
        path_or_bytes: Any,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        self._options = sess_options or SessionOptions()
        self._target = _target_of(providers)
        for known in ("enable_fallback", "disabled_optimizers", "read_config_from_model"):
            kwargs.pop(known, None)
        threads = self._options.intra_op_num_threads or None
        path = os.fspath(path_or_bytes) if isinstance(path_or_bytes, (str, os.PathLike)) else None
        if path is not None and not os.path.exists(path):
            raise NoSuchFile(
                f"[ONNXRuntimeError] : 3 : NO_SUCHFILE : Load model from {path} failed. File doesn't exist"
            )
        self._meta = ModelMetadata()
        if path is not None and path.endswith(".hetnn"):
            self._executable = translated(lambda: hetnn.load(path, threads), loads=True)
            self._target = str(self._executable.target["name"])
            self._compile = None
            self._ins = [NodeArg(p.name, list(p.shape), TYPES[p.dtype]) for p in self._executable.inputs]
            self._outs = [NodeArg(p.name, list(p.shape), TYPES[p.dtype]) for p in self._executable.outputs]
            return
        self._describe(path_or_bytes)
        fix = {**self._options.sizes, **kwargs.pop("fix", {})} or None
        model = path if path is not None else path_or_bytes
        self._compile = lambda: hetnn.compile(model, self._target, threads=threads, fix=fix, **kwargs)
        self._executable = translated(self._compile, loads=True)

    def _describe(self, model: Any) -> None:
        import onnx

        try:
            if isinstance(model, (str, os.PathLike)):
                proto = onnx.load(os.fspath(model), load_external_data=False)
            else:
                proto = onnx.ModelProto.FromString(bytes(model))
        except Exception as error:  # protobuf has several kinds for what is no message
            raise InvalidProtobuf(f"[ONNXRuntimeError] : 7 : INVALID_PROTOBUF : the model failed: {error}") from error
        graph = proto.graph
        values = {one.name for one in [*graph.initializer, *(s.values for s in graph.sparse_initializer)]}
        args = [arg_of(value) for value in graph.input]
        self._ins = [arg for arg in args if arg.name not in values]
        self._overridable = [arg for arg in args if arg.name in values]
        self._outs = [arg_of(value) for value in graph.output]
        self._meta = ModelMetadata(
            proto.producer_name,
            graph.name,
            proto.domain,
            proto.doc_string,
            graph.doc_string,
            proto.model_version,
            {row.key: row.value for row in proto.metadata_props},
        )

    _overridable: Sequence[NodeArg] = ()
    _last: Mapping[str, Any] | None = None  # inputs of the last run, where it is profiled
    _compile: Callable[[], hetnn.Executable] | None

    def get_inputs(self) -> list[NodeArg]:
        """Those that a run needs, in the model's order."""
        return list(self._ins)

    def get_outputs(self) -> list[NodeArg]:
        """In the model's order."""
        return list(self._outs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Inputs for which the model has values."""
        return list(self._overridable)

    def get_modelmeta(self) -> ModelMetadata:
        """What the file says of itself."""
        return self._meta

    def get_providers(self) -> list[str]:
        """The target, and for what it does not take the CPU."""
        return [CPU] if self._target == "cpu" else [self._target, CPU]

    def set_providers(
        self, providers: Sequence[Any], provider_options: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        """Compiles for the first that is a target, unless it is that already. Fail for a file that is compiled."""
        target = _target_of(providers)
        if target == self._target:
            return
        if self._compile is None:
            raise Fail(f"[ONNXRuntimeError] : 1 : FAIL : the file is compiled for '{self._target}', not for '{target}'")
        self._target = target
        self._executable = translated(self._compile, loads=True)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """None are taken."""
        return {name: {} for name in self.get_providers()}

    def get_session_options(self) -> SessionOptions:
        """Those that it was made with."""
        return self._options

    def disable_fallback(self) -> None:
        """There is none."""

    def enable_fallback(self) -> None:
        """There is none."""

    @property
    def executable(self) -> hetnn.Executable:
        """What is behind it: report, profile, trace, compare."""
        return self._executable

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """The outputs of these names, or all; inputs are arrays, or lists of numbers, by name.

        ValueError where one is missing, InvalidArgument for a name, type or shape that does not fit.
        """
        needed = [arg.name for arg in self._ins]
        missing = [name for name in needed if name not in input_feed]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(input_feed)}).")
        types_of = {arg.name: arg for arg in [*self._ins, *self._overridable]}
        feed = {}
        for name, value in input_feed.items():
            if name not in types_of:
                raise InvalidArgument(f"[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Invalid input name: {name}")
            feed[name] = fed(value, types_of[name])
        there = [arg.name for arg in self._outs]
        for name in output_names or ():
            if name not in there:
                raise InvalidArgument(f"[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Invalid output name: {name}")
        if self._options.enable_profiling:
            self._last = feed
        found = translated(lambda: self._executable(**feed))
        results = dict(zip(there, [found] if len(there) == 1 else found, strict=True))
        return [results[name] for name in (output_names or there)]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[Any, Any, str], None],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Runs in a thread of its own, which then calls `callback(outputs, user_data, error)`; error is "" for none."""

        def work() -> None:
            try:
                results, error = self.run(output_names, input_feed), ""
            except Exception as raised:
                results, error = [], str(raised)
            callback(results, user_data, error)

        threading.Thread(target=work, daemon=True).start()

    def end_profiling(self) -> str:
        """The path of a trace of the last inputs, which run once more for it; "" where `enable_profiling` is not set,
        or nothing ran.
        """
        if self._last is None:
            return ""
        prefix = self._options.profile_file_prefix or "onnxruntime_profile_"
        path = f"{prefix}{time.strftime('%Y-%m-%d_%H-%M-%S')}.json"
        feed, self._last = self._last, None
        self._executable.trace(path, *(feed[arg.name] for arg in self._ins))
        return path

    def run_with_ort_values(
        self, output_names: Sequence[str] | None, input_dict: Mapping[str, OrtValue], run_options: Any = None
    ) -> list[OrtValue]:
        """As run, with values around the arrays."""
        feed = {name: value.numpy() for name, value in input_dict.items()}
        return [OrtValue(array) for array in self.run(output_names, feed)]

    def io_binding(self) -> IOBinding:
        """Inputs and outputs to be bound by name."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs on what is bound."""
        iobinding.run()


def _target_of(providers: Sequence[Any] | None) -> str:
    """The first provider that is a target. Others of ONNX Runtime's are skipped with a warning."""
    for provider in providers or ():
        name = provider[0] if isinstance(provider, (tuple, list)) else provider
        if name == CPU:
            return "cpu"
        if not str(name).endswith("ExecutionProvider"):
            return str(name)
        warnings.warn(
            f"Specified provider '{name}' is not in available provider names. Available providers: '{CPU}', and "
            "hetnn's targets",
            stacklevel=3,
        )
    return "cpu"
