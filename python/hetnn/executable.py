"""A compiled model in Python's hands: call it, save it, ask it. Imports neither the compiler nor torch."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hetnn import _runtime
from hetnn.arguments import Arguments
from hetnn.arrays import are_arrays, as_arrays, is_torch
from hetnn.backends.registry import find_to_run
from hetnn.batches import OnBatches
from hetnn.default_inputs import DefaultInputs
from hetnn.element_types import tensor_of
from hetnn.errors import InvalidModel
from hetnn.executable_file import ExecutableFile
from hetnn.images import decode_image
from hetnn.machine import thread_count
from hetnn.progress import silent, teller
from hetnn.remote.places import places_of, sent_to
from hetnn.report.shown import Shown
from hetnn.session import Session
from hetnn.sizes_apart import SizesApart
from hetnn.states import read_states, write_states

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from hetnn.arrays import Array
    from hetnn.backends.backend import Clock
    from hetnn.background import Run
    from hetnn.inside.bisect import Bisection
    from hetnn.inside.compare import Comparison
    from hetnn.inside.source import Source
    from hetnn.inside.timeline import Timeline
    from hetnn.quantization.report import QuantizeReport
    from hetnn.report.rows import Answer, Rows

_runtime.set_image_decoder(decode_image)
_runtime.set_device_finder(find_to_run)


@dataclass(frozen=True)
class Port:
    """An input or output: its name, element type, and shape (texts are expressions of the model's symbols)."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


def load(
    path: str | os.PathLike[str],
    threads: int | None = None,
    max_concurrent_runs: int | None = None,
    refuse_when_full: bool = False,
    *,
    copy: bool = False,
    devices: Mapping[str, Mapping[str, Any]] | str | os.PathLike[str] | None = None,
) -> Executable:
    """The executable in a .hetnn file, mapped: its weights are not copied and must not change while used.

    With `copy` the file may be written afterwards. `devices` says which devices stand behind a device server elsewhere:
    {"relu-only": {"at": "HOST:PORT", "token_file": F, "timeout_s": 30, "tls": False, "tls_ca": None}}, or the path of a
    target file that says so. What is lost on the way, late or garbled ends a run with Unavailable; the device is taken
    up again when it is there.
    `max_concurrent_runs` bounds the runs at one time: more wait for their turn, or are refused with Unavailable.
    InvalidModel when the file is none, is cut short or was altered.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidModel(f"load reads the path of a .hetnn file; got {type(path).__name__}.")
    file = None if copy else ExecutableFile.of(os.path.abspath(os.fspath(path)))
    places = places_of(devices)
    mapped = {} if copy else sent_to(places)
    loaded = Executable(_runtime.Executable.load(os.fspath(path), thread_count(threads), copy, mapped))
    if copy and places:
        loaded._move(places)
    else:
        loaded._set_places(places)
    loaded.limit_runs(max_concurrent_runs, refuse_when_full)
    loaded._file = file if file is not None and file.is_there() else None
    return loaded


def verify(path: str) -> None:
    """Reads all of a file, also what loading has no time for, and plans runs for the sizes there is code for.

    InvalidModel says what is wrong with it.
    """
    _runtime.verify(path)  # with the devices that are written in Python, which are made known here


def _moved(image: bytes, threads: int, places: dict[str, dict[str, Any]]) -> Executable:
    """What was compiled in another process for devices that stand elsewhere."""
    executable = Executable.from_image(image, threads)
    executable._move(places)
    return executable


# Kept for those to come, since the tasks of an engine for batch work begin one after another: the last ones.
_MOST_OPENED = 16
_opened: dict[tuple[str, int], _runtime.Executable] = {}
_opening = threading.Lock()


def _open_again(
    path: str,
    header_hash: str,
    threads: int,
    limits: tuple[int | None, bool],
    places: Mapping[str, Mapping[str, Any]] | None = None,
    states: Mapping[str, Any] | None = None,
) -> Executable:
    """The executable of a pickle. What keeps no states, is not bounded and runs here is opened once in a process."""
    with _opening:
        engine = None if places else _opened.get((header_hash, threads))
        if engine is None or limits[0] is not None:
            opened = load(path, threads, *limits, devices=places)
            if opened._file is None or opened._file.header_hash != header_hash:
                raise InvalidModel(f"'{path}' is not the file any more that the executable was pickled as.")
            if not opened.states and limits[0] is None and not places:
                if len(_opened) >= _MOST_OPENED:
                    del _opened[next(iter(_opened))]
                _opened[header_hash, threads] = opened._engine
            opened.load_state_dict(states or {})
            return opened
    out = Executable(engine)
    file = ExecutableFile.of(path)
    out._file = file if file is not None and file.header_hash == header_hash else None
    return out


class _OfThread(threading.local):
    """What each thread's runs fill."""

    def __init__(self) -> None:
        self.times = _runtime.RunTimes()


class Executable(Shown):
    """One program for all of a target's devices. Thread-safe, re-entrant and picklable."""

    def __init__(self, engine: _runtime.Executable, classes: Mapping[str, type] | None = None) -> None:
        self._engine = engine
        self._arguments = Arguments(engine, classes)
        # When it was compiled in this process: how long that took, and each pass: name, stage, ms.
        self.compile_s: float | None = None
        self.passes: list[dict[str, Any]] = []
        self.trials: list[dict[str, Any]] = []  # {"strategy", "ms"} of plans that were run, where devices measure
        self.quantization: QuantizeReport | None = None  # what hetnn.quantize did, in the process that did it
        self._of_thread = _OfThread()
        self._source: Source | None = None  # what it was compiled from, in the process that did it
        self._file: ExecutableFile | None = None  # that holds all of it
        self._apart: SizesApart | None = None  # for inputs that do not share their sizes
        self._defaults: DefaultInputs | None = None  # for callers who give inputs that the model has values for
        self._limits: tuple[int | None, bool] = (None, False)
        self._places: dict[str, dict[str, Any]] = {}  # of the devices that stand elsewhere
        self._here: _runtime.Executable | None = None  # with their own code, where no file has it

    @classmethod
    def from_image(
        cls, image: Buffer, threads: int | None = None, classes: Mapping[str, type] | None = None
    ) -> Executable:
        """From the bytes of an image, which are not copied and must not change.

        `classes` are those of the records that the model takes or returns.
        """
        return cls(_runtime.Executable(image, thread_count(threads)), classes)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Runs the model. torch in gives torch out, anything else numpy.

        A torch model takes and returns what the module itself does, nested as there; of other models one output is the
        array itself, several are a tuple. An ONNX model's inputs that have values of its own may be left out.
        """
        other = None if self._defaults is None else self._defaults.for_call(inputs, named)
        if other is not None:
            executable, given = other
            return executable(*given)
        passed = self._arguments.passed(inputs, named)
        return self._arguments.returned(passed, self.run(passed))

    def run_async(
        self,
        inputs: Sequence[Any],
        out: Sequence[Any] | None = None,
        *,
        session: Session | None = None,
        overlap: bool = True,
        timeout_s: float | None = None,
    ) -> Run:
        """As run, in the background: a future of the outputs, which can be awaited.

        Its `cancel` also stops a run that is under way. After `timeout_s`, waiting included, it ends with Unavailable.
        The inputs must stay as they are until it ends.
        """
        from hetnn.background import start

        stop = _runtime.Stop(timeout_s)
        return start(lambda: self.run(inputs, out, session=session, overlap=overlap, _stop=stop), stop)

    def limit_runs(self, most: int | None, refuse: bool = False) -> None:
        """Bounds the runs at one time; more wait for their turn, or are refused. Not while runs are under way."""
        if most is not None and most < 1:
            raise InvalidModel(f"max_concurrent_runs must be 1 or more, or None for no bound; got {most}.")
        self._engine.limit_runs(most or 0, refuse)
        self._limits = (most, refuse)

    def run(
        self,
        inputs: Sequence[Any],
        out: Sequence[Any] | None = None,
        *,
        also: Sequence[str] | None = None,
        session: Session | None = None,
        overlap: bool = True,
        _stop: _runtime.Stop | None = None,
    ) -> list[Any]:
        """Runs on `inputs` in the model's order; writes `out` (contiguous arrays or tensors) in place where given.

        `also` names nodes, values or modules of the model: behind the outputs comes a dict of their values by these
        names. Those that have a buffer of their own in the program are the executable's own; for others the model is
        compiled once more, with them as outputs, which takes as long as compiling did (docs/inside.md).

        Contiguous inputs are read where they lie. Subgraphs of different devices run at once where none waits for the
        other, unless `overlap` is off; results are the same. InvalidModel for another number, element type, shape or
        device.
        """
        if also is not None:
            if out is not None or session is not None:
                raise InvalidModel("also goes with neither out nor session: values inside are of a run of their own.")
            from hetnn.inside.values import run_also

            return run_also(self, inputs, also)
        # Of arrays nothing needs be made, and small networks take less time than a look at each would.
        arrays = inputs if are_arrays(inputs) else as_arrays(inputs, self._arguments.called)
        given = out if out is None or are_arrays(out) else as_arrays(out, "out[{}]".format)
        if session is not None and not isinstance(session, Session):
            raise InvalidModel(f"session must be what the executable's session() gave; got {type(session).__name__}.")
        if overlap is not True and overlap is not False:
            raise InvalidModel(f"overlap must be True or False; found {overlap!r}.")
        states = None if session is None else session._states
        try:
            outputs: list[Any] = self._engine.run(
                arrays, given, self._of_thread.times, False, states, overlap, _stop, teller()
            )
        except InvalidModel as error:
            other = None if self._apart is None or self.states else self._apart.for_inputs(self.inputs, arrays)
            if other is None:
                raise
            try:
                return other.run(inputs, out, overlap=overlap, _stop=_stop)
            except InvalidModel:
                raise error from None  # they meet
        if out is not None:
            return list(out)
        if arrays is not inputs and any(map(is_torch, inputs)):
            return list(map(tensor_of, outputs))
        return outputs

    @property
    def last_times(self) -> list[dict[str, Any]]:
        """Of the calling thread's last run: one row a subprogram, in µs from the run's start.

        `at` is where its device stands: "local", or the address of a device server.
        Behind them one row a subprogram that a loop repeated, as `LOOP/body NAME`, however many rounds there were: the
        first start, the last finish, and `queue_us` and `cycles` of all rounds. Cycles are those of a simulated device,
        or where a device is not here those that its compiler predicts.
        """
        times = self._of_thread.times
        rows = [*times.subprograms(), *times.bodies()]
        for row in rows:
            if row["name"] in self._clocks and not row["fallback"]:
                row["cycles"] = self._clocks[row["name"]].cycles
        for row in rows:
            if row["device"] in self._places:
                row["at"] = self._places[row["device"]]["at"]
        return rows

    @cached_property
    def _clocks(self) -> dict[str, Clock]:
        """Of devices that are not here, by the names of subprograms."""
        from hetnn.backends.clocks import clocks_of

        return clocks_of(self)

    def _move(self, places: dict[str, dict[str, Any]]) -> None:
        """Has devices stand elsewhere. What is saved has their own code as before."""
        self._set_places(places)
        here = self._engine
        self._engine = _runtime.Executable(here.image(), self.threads, sent_to(places))
        self._here = here

    def _set_places(self, places: dict[str, dict[str, Any]]) -> None:
        there = [device["name"] for device in self.target["devices"]] if places else []
        unknown = [name for name in places if name not in there]
        if unknown:
            raise InvalidModel(f"there is no device '{unknown[0]}' in this executable; it has {', '.join(there)}.")
        self._places = places

    def session(self) -> Session:
        """States for one more user of a model that keeps any: runs of different sessions share nothing."""
        return Session(self, self._engine.session())

    def keep_at_most(self, bytes: int) -> None:
        """Bounds the memory that idle runs keep for those to come; that of the last run is always kept."""
        if bytes < 0:
            raise InvalidModel(f"bytes must be at least 0; found {bytes}.")
        self._engine.keep_at_most(bytes)

    @property
    def kept_bytes(self) -> int:
        """Bytes of memory that idle runs keep for those to come."""
        return int(self._engine.kept_bytes())

    @property
    def states(self) -> list[str]:
        """Names of the values that the model keeps from call to call (buffers that it updates)."""
        return list(self._engine.states)

    def reset(self) -> None:
        """Gives every state of the runs without a session its initial value again: that when the model was exported."""
        self._engine.own_session.reset()

    def state_dict(self) -> dict[str, Array]:
        """What the states of the runs without a session hold: copies by name."""
        return read_states(self.states, self._engine.own_session)

    def state(self, name: str) -> Array:
        """A copy of what one of them holds. InvalidModel for a name that none has."""
        held: Array = self._engine.own_session.read(name)
        return held

    def load_state_dict(self, states: Mapping[str, Any]) -> None:
        """Has states of the runs without a session hold other values (arrays or tensors) from the next run on.

        Those that are not named stay. InvalidModel for an unknown name, or another type or shape: none is changed then.
        """
        write_states(self.states, self._engine.own_session, states)

    @property
    def inputs(self) -> list[Port]:
        """What a run takes, in order; of values that are no tensors of numbers, the several ports they travel as."""
        return [Port(name, dtype, tuple(shape)) for name, dtype, shape in self._engine.inputs]

    @property
    def outputs(self) -> list[Port]:
        """What a run gives, in order; of values that are no tensors of numbers, the several ports they travel as."""
        return [Port(name, dtype, tuple(shape)) for name, dtype, shape in self._engine.outputs]

    def example_shape(self, name: str) -> tuple[int, ...]:
        """The shape of an input at the sizes of the example that the model was exported with."""
        return tuple(self._engine.example_shapes()[name])

    @property
    def threads(self) -> int:
        """CPU threads of a run, at most."""
        return int(self._engine.threads)

    @property
    def arena_bytes(self) -> int:
        """Bytes of the activations' arena, at the sizes of the example that the model was exported with."""
        return int(self._engine.arena_bytes(self._engine.hints))

    def report(self, format: str = "text") -> Any:
        """Placement, reasons, bytes and predicted times as "text", "dict", "json", "html" or "svg"."""
        from hetnn.report.formats import of_executable

        return of_executable(self, format)

    def why(self, node: str) -> Answer:
        """Where a node is and every reason why it is not on an accelerator: a dict that prints as text. Where the model
        was compiled in this process, also what it and the plan would cost on each device, and the change that moves it.
        """
        from hetnn.inside.why import why

        return why(self, node)

    def page(self, path: str | os.PathLike[str], *inputs: Any, comparison: Comparison | None = None) -> None:
        """Writes one HTML file that needs no network: time line, reasons, graph by module with search, tables.

        With inputs it runs once, and times are those of the run; `comparison` (of `compare`) gives the graph's colours
        of noise. Where the model was compiled in this process, it says what an accelerator would gain by each operator
        that it lacks. Unsupported without netron (hetnn[report]), which brings the layout.
        """
        from hetnn.inside.page import page_report
        from hetnn.report.page import as_html

        title = os.path.splitext(os.path.basename(os.fspath(path)))[0]
        text = as_html(page_report(self, inputs, comparison), title)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    @property
    def target(self) -> dict[str, Any]:
        """The target it was compiled for."""
        found: dict[str, Any] = json.loads(self._engine.target_json)
        return found

    def profile(self, *inputs: Any) -> Rows:
        """Runs once and returns a row a kernel or layer of every device; they print as a table, and have `to_csv` and
        `to_dataframe`.

        Of each `node, device, kernel, start_us, us, simulated, macs, bytes, gflops, gbytes_s`; `us` is the device's own
        time: measured, or where `simulated` the layer's cycles over the clock. Measured rows of the CPU: `wall_us`;
        `thread_us`, the microseconds that each thread computed (the rest of wall_us it waited for others); flops, what
        the operator does without the steps behind it; refusals, of what runs by its operator's meaning a sentence for
        each kernel that does not serve it; predicted_us, what the kernel's work takes by the figures that it was chosen
        by; rivals, the operator's other kernels, the best first, each with its `predicted_us` or its `refusal`. Rows of
        an NPU: `cycles, stall_cycles, stall_us, tile, compute_cycles, memory_cycles, utilization, weight_bytes,
        energy_nj`.
        """
        from hetnn.inside.profile import profile_of

        return profile_of(self._timeline(inputs))

    def nodes(self, *inputs: Any) -> Rows:
        """Every node of the model: what it is, where it runs, what it takes. The rows of `report("dict")["graph"]`.

        With inputs it runs once, and `measured_us` stands beside `predicted_us`.
        """
        from hetnn.inside.nodes import measured

        return measured(self, self.profile(*inputs) if inputs else [])

    def trace(self, path: str | os.PathLike[str], *inputs: Any) -> None:
        """Runs once and writes a timeline that Perfetto and chrome://tracing open.

        A lane a device with a span a subgraph and in it one a kernel or layer, on the device's own time: the CPU as
        measured, an NPU by its clock, not by what simulating it took. Arrows lead from each subgraph to those that
        waited for it; what was predicted is a process of its own. Under the lane of the cpu, which runs loops, stands
        one a subgraph that a loop repeats: its rounds cross those of others.
        """
        from hetnn.inside.trace import trace_events

        events = trace_events(self._timeline(inputs), self.report(format="dict"))
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)

    def _timeline(self, inputs: Sequence[Any]) -> Timeline:
        from hetnn.inside.timeline import timeline_of

        arrays = as_arrays(inputs, self._arguments.called)
        self._engine.run(arrays, None, self._of_thread.times, True, None, True, None, teller())
        return timeline_of(self, self._of_thread.times, arrays)

    def compare(
        self,
        reference: Any,
        inputs: Sequence[Any],
        *,
        bound: float | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Comparison:
        """Compares values inside with those of a reference, node by node: it prints as a table, `first` is the first
        node that is beyond its bound (or has a NaN or an infinity that the reference has not), or None, `rows` are all.

        reference: an eager torch module or an ExportedProgram; an ONNX model, by ONNX Runtime where that is installed,
            else by what its operators mean; another executable; None: the model it was compiled from, by meaning.
        inputs: what a call takes, in order. bound: the greatest difference over the greatest magnitude of the
            reference's value; without it by the type that a node computes in (docs/inside.md).
        progress: as hetnn.compile takes it: told of each step, and of the seconds that it is going to take.
        InvalidModel where the two have no value in common.
        """
        from hetnn.inside.compare import compare

        return compare(self, reference, inputs, bound, progress or silent)

    def bisect(
        self,
        reference: Any,
        inputs: Sequence[Any],
        path: str | os.PathLike[str],
        *,
        bound: float | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Bisection | None:
        """Finds the smallest part of the model that, compiled alone, is still beyond its bound on the values that the
        reference gives it, and writes it to `path`, which `hetnn replay` replays. None where nothing is beyond.

        Arguments as those of `compare`. Unsupported without the model, as of a loaded file.
        """
        from hetnn.inside.bisect import bisect

        return bisect(self, reference, inputs, path, bound, progress or silent)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes one .hetnn file, whole or not at all, with the states of the runs without a session as they are."""
        self._with_own_code().save(os.fspath(path))

    def _with_own_code(self) -> _runtime.Executable:
        """The program with the code of its devices, also where they stand elsewhere since it was compiled."""
        if not self._places:
            return self._engine
        here = self._here
        if here is None:
            if self._file is None or not self._file.is_there():
                raise InvalidModel(
                    "the file that this was loaded from is not there any more, or was written, and with it the code of "
                    "devices that stand elsewhere. Load with copy=True to be free of it."
                )
            here = _runtime.Executable.load(self._file.path, self.threads)
        write_states(self.states, here.own_session, self.state_dict())
        return here

    def export(self, path: str | os.PathLike[str], *, subgraph: str | None = None) -> None:
        """Writes the planned graph, or what one device is given of it, as an ONNX (.onnx) or TOSA (.tosa) file.

        As hetnn.export, of what was compiled with `keep_graph=True` alone; InvalidModel for all else. `subgraph` is its
        name in the report: "npu.0". States have the values that the runs without a session left.
        """
        from hetnn.api import export

        export(self, path, subgraph=subgraph)

    def on_batches(self, columns: Mapping[str, str] | None = None, batch: int | None = None) -> OnBatches:
        """A function of `{column: array}`, or of an array, for any number of rows: `ds.map_batches(exe.on_batches())`.

        `columns` says which column each input is, where that is not its name; `batch` bounds the rows of a run where
        the model leaves their number open.
        """
        return OnBatches(self, columns, batch)

    def make_predict_fn(self) -> Callable[..., Any]:
        """For Spark: `predict_batch_udf(exe.make_predict_fn, …)`."""
        return self.on_batches().predict

    def __reduce__(self) -> tuple[Any, ...]:
        if self._file is not None and self._file.is_there():
            held = (self._limits, self._places or None, self.state_dict() or None)
            return (_open_again, (self._file.path, self._file.header_hash, self.threads, *held))
        if self._here is not None:
            return (_moved, (self._with_own_code().image(), self.threads, self._places))
        return (Executable.from_image, (self._engine.image(), self.threads))

    def __repr__(self) -> str:
        def ports(rows: list[Port]) -> str:
            return ", ".join(f"{p.name}: {p.dtype}[{','.join(map(str, p.shape))}]" for p in rows)

        return f"<hetnn.Executable ({ports(self.inputs)}) -> ({ports(self.outputs)})>"

    def _card(self) -> str:
        from hetnn.report.card import card

        return card(json.loads(self._engine.report_json), repr(self), self.passes)

    def _text_of_card(self) -> str:
        return f"{self!r}\n{self.report()}"

    @property
    def on_general_processor(self) -> bool:
        """Whether all of it runs on the general processor."""
        return set(self._engine.code_kinds) <= {"cpu"}

    @property
    def is_dynamic(self) -> bool:
        """Whether some sizes are open until a run."""
        return bool(self._engine.hints)
