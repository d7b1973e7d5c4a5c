"""Plans that answer questions: of a network, and of an abstract problem given as a dict (docs/partitioning.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from hetnn import _core
from hetnn.errors import InvalidModel
from hetnn.json_text import dump_json
from hetnn.report.rows import Answer, Rows
from hetnn.report.shown import Shown
from hetnn.report.text import count, diff_text, explained, table, why_text

_GAINS = ("support", "device", "gain_us", "nodes")
_NO_GAINS = "no accelerator lacks anything that was asked for"


class ProblemPlan(Shown, dict[str, Any]):
    """The answer to a planning problem: the keys of docs/plan-schema.json, and questions about them."""

    def __init__(self, plan: _core.PartitionPlan) -> None:
        super().__init__(json.loads(plan.to_json()))
        self._plan = plan

    def to_json(self) -> str:
        """The plan as one JSON document."""
        return self._plan.to_json()

    def __str__(self) -> str:
        rows = [
            [str(k), part["device"], str(len(part["nodes"])), f"{part['start_us']:,.1f}", f"{part['finish_us']:,.1f}"]
            for k, part in enumerate(self["subgraphs"])
        ]
        head = f"{self['strategy']}: {self['cost_us']:,.1f} us, {self['makespan_us']:,.1f} where devices overlap"
        return "\n".join([head, table(["subgraph", "device", "nodes", "from us", "to us"], rows)])

    __repr__ = __str__

    def _card(self) -> str:
        from hetnn.report.card import framed
        from hetnn.report.picture import problem_svg

        return framed(problem_svg(_object(self._plan.problem()), self, graph=False), f"<pre>{escape(str(self))}</pre>")

    def why(self, node: str) -> Answer:
        """Where a node is, what it and the plan would cost on each device, every reason, the change that moves it: a
        dict that prints as text.
        """
        found = _object(self._plan.why(node))
        return Answer(found, why_text(found))

    def explain(self) -> Answer:
        """The value of the cut, the candidates with their costs, the margin, the lower bound and the gap to it."""
        found = _object(self._plan.explain())
        return Answer(found, explained(found))

    def what_if(self, support: str | Sequence[str] = ()) -> Rows:
        """The gain of supporting each kind of node (its `op`, else its id) an accelerator lacks, greatest first."""
        return Rows(json.loads(self._plan.what_if(_words(support))), _GAINS, _NO_GAINS)

    def diff(self, other: ProblemPlan) -> Answer:
        """Nodes that moved, and cost and number of subgraphs, from this plan to another."""
        found = _object(self._plan.diff(other._plan))
        return Answer(found, diff_text(found))

    def svg(self) -> str:
        """The graph coloured by device and the schedule, as an SVG document."""
        from hetnn.report.picture import problem_svg

        return problem_svg(_object(self._plan.problem()), self)


class Plan(Shown):
    """Where every node of a network goes and why, without compiling it. Made by `hetnn.plan`."""

    def __init__(self, plan: _core.NetworkPlan) -> None:
        self._plan = plan

    def report(self, format: str = "text") -> Any:
        """The report as "text", "dict", "json", "html" or "svg"; keys as those of an executable's report."""
        from hetnn.report.formats import render

        if format == "json":
            return self._plan.to_json()
        return render({**json.loads(self._plan.to_json()), "passes": self._plan.passes}, format)

    def page(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan as one HTML file that needs no network, with what each accelerator would gain by operators
        that it lacks. Unsupported without netron (hetnn[report]).
        """
        from hetnn.report.page import as_html

        report = {**self.report("dict"), "what_if": list(self.what_if())}
        text = as_html(report, os.path.splitext(os.path.basename(os.fspath(path)))[0])
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def to_json(self) -> str:
        """The plan as one JSON document (docs/report-schema.json): the same model and options give the same text."""
        return self._plan.to_json()

    def why(self, node: str) -> Answer:
        """Where a node is, what it and the plan would cost on each device, every reason, the change that moves it: a
        dict that prints as text.
        """
        found = _object(self._plan.why(node))
        return Answer(found, why_text(found))

    def explain(self, format: str = "dict") -> Any:
        """The value of the cut, the candidates with their costs, the margin, the lower bound and the gap to it.

        "text" adds placement, schedule and reasons, as `hetnn plan MODEL` prints them.
        """
        if format == "dict":
            found = _object(self._plan.explain())
            return Answer(found, explained(found))
        if format == "text":
            from hetnn.report.text import explanation

            return explanation(_object(self._plan.to_json()))
        raise InvalidModel(f"an explanation's format is dict or text; got {format!r}.")

    def what_if(self, support: str | Sequence[str] = ()) -> Rows:
        """What each accelerator would gain by each operator it lacks, greatest first, with the model's source lines.

        `support` limits the answer to operators by their names here, in torch or in ONNX. Nodes count as they are in
        the model, before rewriting. Times of operators a device lacks are assumed as docs/partitioning.md says.
        """
        return Rows(json.loads(self._plan.what_if(_words(support))), _GAINS, _NO_GAINS)

    def diff(self, other: Plan) -> Answer:
        """Nodes that moved, and cost and number of subgraphs, from this plan to another of the same model."""
        if not isinstance(other, Plan):
            raise InvalidModel(f"diff compares with another plan of hetnn.plan; got {type(other).__name__}.")
        found = _object(self._plan.diff(other._plan))
        return Answer(found, diff_text(found))

    def svg(self) -> str:
        """The graph coloured by device and the schedule of overlapping devices, as an SVG document."""
        return str(self.report("svg"))

    def problem(self) -> dict[str, Any]:
        """The planning problem that the network made, as `plan_problem` takes it."""
        return _object(self._plan.problem())

    def graph_text(self) -> str:
        """The placed graph as text, without the values of large constants."""
        return self._plan.graph_text()

    def graph(self, subgraph: str | None = None) -> _core.Graph:
        """The placed graph, with all that was rewritten for the target; or what one device is given, by its name.

        InvalidModel for a name that the plan does not have.
        """
        return part_of(self._plan.graph(), subgraph)

    @property
    def plan_us(self) -> float:
        """Wall time of placing the nodes, the check of the plan included."""
        return self._plan.plan_us

    def __repr__(self) -> str:
        report = self.report("dict")
        placed = ", ".join(f"{count(nodes, 'node')} on {device}" for device, nodes in report["nodes_on"].items())
        return f"<hetnn.planning.Plan {placed}; {report['predicted_us']:.1f} us>"

    def _card(self) -> str:
        from hetnn.report.card import card

        return card(_object(self._plan.to_json()), repr(self), self._plan.passes)

    def _text_of_card(self) -> str:
        return f"{self!r}\n{self.report()}"


def part_of(planned: _core.Graph, subgraph: str | None) -> _core.Graph:
    """A planned graph, or what one device is given of it, by its name. InvalidModel for an unknown name."""
    if subgraph is None:
        return planned
    parts = {part["name"]: part["graph"] for part in _core.subgraphs_of(planned)}
    if subgraph not in parts:
        raise InvalidModel(f"the plan has no subgraph '{subgraph}'; it has {', '.join(parts)}.")
    graph: _core.Graph = parts[subgraph]
    return graph


# Asked for each accelerator subgraph with the device and its nodes: None, or the reason of a refusal and the nodes at
# fault (none where the subgraph as a whole is too much).
Backend = Callable[[str, list[str]], "tuple[str, list[str]] | None"]


def plan_problem(
    problem: Mapping[str, Any] | _core.PlanProblem,
    strategy: str = "cost",
    *,
    backend: Backend | None = None,
    **options: Any,
) -> ProblemPlan:
    """Plans an abstract problem by one strategy.

    `problem` is a dict in the form of docs/partitioning.md. Strategies and their options: `topological` (order),
    `depth`, `merge` (settle, policy, measure, threshold), `cost` (local_search), `take-all`, `cpu-only`; `strict` with
    each. With a `backend` the plan is repaired until it takes every accelerator subgraph. Raises InvalidModel for a
    problem or an option that makes no sense, Unsupported for a pin, a node or a strict device that cannot be served,
    DoesNotFit for a budget that cannot be met.
    """
    if not isinstance(problem, _core.PlanProblem):
        problem = read_problem(problem)
    if not isinstance(strategy, str):
        raise InvalidModel(f"strategy: must be a string, got {strategy!r}.")
    texts = dump_json(options, "options")
    if backend is not None:
        return ProblemPlan(problem.plan_with_repair(strategy, texts, backend))
    return ProblemPlan(problem.plan(strategy, texts))


def read_problem(problem: Mapping[str, Any]) -> _core.PlanProblem:
    """The problem in a form that can be planned many times without being read again."""
    if not isinstance(problem, Mapping):
        raise InvalidModel(f"problem: must be a dict with devices, links and nodes, got {type(problem).__name__}.")
    # Devices come first, so that nodes can be read one by one.
    ordered = {key: problem[key] for key in ("devices", "links") if key in problem}
    ordered.update(problem)
    return _core.PlanProblem(dump_json(ordered, "problem"))


def generate_problem(
    kind: str,
    nodes: int,
    seed: int,
    *,
    devices: int = 2,
    unsupported: float = 0.3,
    non_exportable: float = 0.0,
    launch: bool = True,
    shuffle: bool = True,
) -> dict[str, Any]:
    """A random problem; the same arguments give the same problem on every machine.

    Kinds: `layered`, `series-parallel`, `random`, `chain`, `fan`, `transformer`. `unsupported` is the share of nodes
    that each accelerator does not support, `non_exportable` the share that no accelerator may export. `launch` gives
    accelerators a launch cost; `shuffle` lists the nodes out of order.
    """
    problem = _core.PlanProblem.generate(kind, nodes, seed, devices, unsupported, non_exportable, launch, shuffle)
    answer: dict[str, Any] = json.loads(problem.to_json())
    return answer


def _words(support: str | Sequence[str]) -> list[str]:
    words = [support] if isinstance(support, str) else list(support)
    odd = [word for word in words if not isinstance(word, str)]
    if odd:
        raise InvalidModel(f"what_if takes names of operators; got {odd[0]!r}.")
    return words


def _object(text: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(text)
    return answer
