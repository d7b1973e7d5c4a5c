"""An Ethos-U as a device: integers as TOSA to Vela, whose command stream and weights are the code."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from hetnn.backends.backend import Backend, Clock, Port, Reason, Run
from hetnn.backends.code import taken_apart
from hetnn.backends.ethos_u import vela
from hetnn.backends.ethos_u.code import MEANING, REPORT, arrays_of, with_meaning
from hetnn.errors import DoesNotFit, InvalidModel, Unsupported

if TYPE_CHECKING:
    from hetnn import _core
    from hetnn.executable import Executable
    from hetnn.exporters.tosa.model import Export

KIND = "ethos"


class EthosU(Backend):
    """One accelerator. The spec: `variant`, as u55-256; and what stands around it, as Vela's files of systems have it:
    `system_config`, `memory_mode`, `arena_bytes`, `config` (the path of such a file), `optimise` (Performance or Size).

    No such processor is in a PC: `open` runs the subgraph by its meaning, with the device's roundings, and the code's
    report has the cycles that Vela predicts.
    """

    images_last = True

    def __init__(self, name: str, spec: Mapping[str, Any]) -> None:
        super().__init__(name, spec)
        self.accelerator = vela.Accelerator.of(name, self.spec)

    @property
    def version(self) -> str:
        """Vela's own."""
        return vela.version()

    def reads(self, version: str) -> bool:
        """Any: what runs here is the meaning, and the command stream is for a device."""
        return True

    def supports(self, node: _core.Graph) -> Iterable[Reason | str]:
        """What TOSA has no form for, and what Vela does not map to the accelerator."""
        from hetnn.backends.ethos_u.constraints import broken
        from hetnn.exporters.tosa.model import Export

        vela.require(self.name)
        op = node.nodes()[-1]["op"]
        made = Export(node, self.accelerator.chains)
        if made.refusals:
            return [Reason("no_tosa_form", op, "integers that TOSA has", each.why) for each in made.refusals]
        return broken(made.block, self.accelerator.family)

    def times_us(self, graph: _core.Graph, images: Collection[str] = ()) -> Mapping[str, float] | None:
        """Vela's cycles at the system's clock; None where Vela refuses the whole."""
        vela.require(self.name)
        try:
            made, compiled = self._compiled(graph, images)
        except Unsupported:
            return None
        report = compiled.report
        times = {node["name"]: 0.0 for node in graph.nodes()}
        for row in report["operators"]:
            node = made.block.ops[row["place"]].node if row["place"] >= 0 else ""
            if node in times:
                times[node] += row["cycles"] / vela.cycles_per_us(self.accelerator)
        return times

    def compile(self, graph: _core.Graph, images: Collection[str] = ()) -> bytes:
        """Vela's raw output, with the meaning of the subgraph and Vela's report in the same archive."""
        import hetnn
        from hetnn.backends.ethos_u.constraints import MOST_OF_WEIGHTS, heavy_filter
        from hetnn.exporters.tosa.model import Export, as_written

        vela.require(self.name)
        heavy = heavy_filter(Export(graph, self.accelerator.chains).block)
        if heavy is not None:
            raise _at(heavy[0], f"a filter's weights add up to {heavy[1]}, of at most {MOST_OF_WEIGHTS}")
        written, made = self._compiled(graph, images)
        made.report["images_last"] = sorted(images)
        made.report["clock_hz"] = vela.cycles_per_us(self.accelerator) * 1e6
        for row in made.report["operators"]:
            row["node"] = written.block.ops[row["place"]].node if row["place"] >= 0 else ""
        meaning = hetnn.compile(as_written(graph), "cpu", tune=False)
        return with_meaning(made.data, meaning._engine.image(), made.report)

    def _compiled(self, graph: _core.Graph, images: Collection[str] = ()) -> tuple[Export, vela.Compiled]:
        """What is written and what Vela makes of it, in the form of fewest cycles. Unsupported where Vela refuses."""
        from hetnn.exporters.tosa.model import FORMS, Export

        chains = self.accelerator.chains
        ways = product(FORMS, (False, True) if chains and images else (False,))
        written = [Export(graph, chains, form, images, entering) for form, entering in ways]
        by_data = {made.data(): made for made in reversed(written)}  # once where they are one
        return min(
            ((made, vela.compile_network(data, self.accelerator)) for data, made in by_data.items()),
            key=lambda pair: pair[1].report["cycles"],
        )

    def open(self, code: bytes, inputs: Sequence[Port], outputs: Sequence[Port]) -> Run:
        """The meaning on the general processor, on one thread."""
        from hetnn.executable import Executable

        arrays = arrays_of(code)
        if MEANING not in arrays:
            raise InvalidModel(f"device '{self.name}': its code has no meaning beside it. Compile the model again.")
        executable = Executable.from_image(arrays[MEANING].tobytes(), 1)
        return lambda given: executable.run(given)

    def clock(self, code: bytes) -> Clock | None:
        """Vela's cycles, as the code's report has them."""
        report = json.loads(arrays_of(code)[REPORT].tobytes())
        if "clock_hz" not in report:
            return None  # compiled before reports had it
        layers: dict[str, dict[str, Any]] = {}
        for row in report["operators"]:
            name = row["node"] or row["name"]
            layer = layers.setdefault(name, {"node": name, "op": row["operator"], "cycles": 0, "macs": 0})
            layer["cycles"] += row["cycles"]
            layer["macs"] += row["macs"]
        return Clock(report["cycles"], report["clock_hz"], [*layers.values()])


def _at(node: str, why: str) -> DoesNotFit:
    """The refusal of one node."""
    error = DoesNotFit(why)
    error.node = node  # type: ignore[attr-defined]
    return error


def codes(executable: Executable) -> dict[str, dict[str, Any]]:
    """By the name of each subprogram for an Ethos-U, the arrays of its code: Vela's, and hetnn's own two."""
    from hetnn import _runtime

    program = json.loads(_runtime.take_apart(executable._with_own_code().image(), "the executable")["program"])
    return {
        row["name"]: arrays_of(taken_apart(row["device"], bytes.fromhex(row["code_hex"]))[2])
        for row in program["subprograms"]
        if row["kind"] == KIND
    }


def reports(executable: Executable) -> dict[str, dict[str, Any]]:
    """Vela's report by the name of each subprogram: `cycles`, `operators` with theirs, `peak_bytes` of memories."""
    return {name: json.loads(arrays[REPORT].tobytes()) for name, arrays in codes(executable).items()}
