"""The report of a compiled model as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def table(header: list[str], rows: list[list[str]]) -> str:
    """A text table: the first column to the left, the others to the right."""
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    lines = []
    for row in [header, *rows]:
        cells = [cell.ljust(widths[k]) if k == 0 else cell.rjust(widths[k]) for k, cell in enumerate(row)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _some(names: list[str], most: int = 4) -> str:
    return ", ".join(names) if len(names) <= most else f"{names[0]} … {names[-1]}"


def count(number: int, what: str) -> str:
    """How many of what, in the singular or plural."""
    return f"1 {what}" if number == 1 else f"{number:,} {_plural(what)}"


def _plural(what: str) -> str:
    return f"{what[:-2]}es" if what.endswith("is") else f"{what}es" if what.endswith("ch") else f"{what}s"


def _fewer(number: float, what: str) -> str:
    """What a change saves, or costs."""
    whole = round(number)
    return f"{count(abs(whole), what)} {'more' if whole < 0 else 'fewer'}"


def _subgraph(number: int, part: Mapping[str, Any]) -> str:
    names = part["nodes"]
    return (
        f"  {number} on {part['device']}: {count(len(names), 'node')}, {part['predicted_us']:,.1f} us: {_some(names)}"
    )


def _note(row: Mapping[str, Any]) -> str:
    return f"{row['node']}: {row['text']}" if row["node"] else str(row["text"])


def _saved(row: Mapping[str, Any]) -> str:
    """What a rewrite saves between devices; nothing where that is nothing."""
    parts = [f"{_fewer(row['bytes_avoided'], 'byte')} between devices"] if round(row["bytes_avoided"]) else []
    if row["launches_avoided"]:
        parts.append(_fewer(row["launches_avoided"], "launch"))
    return " and ".join(parts)


def _rewrite(row: Mapping[str, Any]) -> str:
    saved = _saved({**row, "launches_avoided": 0})
    return f"  {row['node']}: {row['form'] or row['rule']}{', ' + saved if saved else ''}"


def place(row: Mapping[str, Any]) -> str:
    """Where a node stands in the model's source: its line, else the module that it belongs to; nothing where neither
    is known.
    """
    loc, module = row.get("loc") or "", row.get("module") or ""
    return f"in module '{module}'" if module and loc == module else f"at {loc}" if loc else ""


def _fusion(row: Mapping[str, Any]) -> str:
    line = f"  {' + '.join(row['nodes'])}: {row['bytes_before']:,.0f} → {row['bytes_after']:,.0f} bytes"
    before, after = row.get("predicted_us_before"), row.get("predicted_us_after")
    return line if before is None or after is None else line + f", {before:,.1f} → {after:,.1f} us"


def _fallbacks(report: Mapping[str, Any]) -> list[str]:
    """The nodes that are not on the accelerator, those of a subgraph with one operator and one reason together."""
    subgraph_of = {name: k for k, part in enumerate(report["subgraphs"]) for name in part["nodes"]}
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in report["not_on_preferred"]:
        labels = tuple(reason["label"] for reason in row["reasons"])
        groups.setdefault((row["op"], row["device"], subgraph_of.get(row["node"]), labels), []).append(row)
    lines = []
    for (op, device, subgraph, _), rows in groups.items():
        if len(rows) == 1:
            where = f"  {place(rows[0])}".rstrip()
            lines.append(f"  {op} '{rows[0]['node']}' on {device}{where}")
        else:
            places = list(dict.fromkeys(filter(None, map(place, rows))))
            where = f"  {_some(places, 2)}" if places else ""
            within = "" if subgraph is None else f" in subgraph {subgraph}"
            named = _some([f"'{row['node']}'" for row in rows])
            lines.append(f"  {count(len(rows), f'{op} node')} on {device}{within}: {named}{where}")
        lines += [f"    {reason['label']}: {reason['text']}" for reason in rows[0]["reasons"]]
    return lines


def next_best(rivals: list[Mapping[str, Any]]) -> str:
    """Why not the next best of a node's kernels: the time that it is predicted to take, or why it does not serve."""
    rival = rivals[0]
    if "predicted_us" in rival:
        return f"{rival['kernel']} {rival['predicted_us']:,.1f} us"
    refusal = rival["refusal"].rstrip(".")
    return refusal if refusal.startswith(rival["kernel"]) else f"{rival['kernel']}: {refusal}"


def _kernels(report: Mapping[str, Any]) -> list[str]:
    """The kernels that others stand beside, each with the next best: a line a node, those of one kernel and one refusal
    together.
    """
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in report.get("graph", ()):
        if row.get("rivals") and "kernel" in row:
            apart = row["node"] if "predicted_us" in row["rivals"][0] else None
            groups.setdefault((row["kernel"], next_best(row["rivals"]), apart), []).append(row)
    lines = []
    for (kernel, rival, _), rows in groups.items():
        names = _some([row["node"] for row in rows])
        us = sum(row["kernel_us"] for row in rows)
        lines.append(f"  {names}: {kernel} {us:,.1f} us; {rival}")
    return lines


def _body(row: Mapping[str, Any]) -> list[str]:
    """What a loop repeats: where its nodes are, and why not elsewhere."""
    report = row["report"]
    places = ", ".join(f"{count} on {device}" for device, count in report["nodes_on"].items())
    subgraphs = count(len(report["subgraphs"]), "subgraph")
    reasons = ["  " + line for line in _fallbacks(report)]
    return [f"  '{row['node']}': {places}; {subgraphs}, {report['predicted_us']:,.1f} us a round", *reasons]


def explanation(report: Mapping[str, Any]) -> str:
    """The report as text, and with it the schedule, the other plans that were weighed, and the bound on their cost."""
    rows = [
        [str(k), part["device"], f"{part['start_us']:,.1f}", f"{part['finish_us']:,.1f}"]
        for k, part in enumerate(report["subgraphs"])
    ]
    schedule = ["  " + line for line in table(["subgraph", "device", "from us", "to us"], rows).splitlines()]
    cost = _cost(report["predicted_us"], report["parts"])
    return "\n".join([as_text(report), cost, f"{_overlapping(report)}:", *schedule, *_weighed(report)])


def explained(found: Mapping[str, Any]) -> str:
    """What `Plan.explain` finds: the cost in parts, the other plans that were weighed, the bound on their cost."""
    return "\n".join([_cost(found["cost_us"], found["parts"]), _overlapping(found), *_weighed(found)])


def _cost(cost_us: float, parts: Mapping[str, float]) -> str:
    names = ("node", "launch", "transfer")
    return f"cost {cost_us:,.1f} us = " + " + ".join(f"{_plural(name)} {parts[f'{name}_us']:,.1f}" for name in names)


def _overlapping(found: Mapping[str, Any]) -> str:
    return f"{found['makespan_us']:,.1f} us where devices work at the same time"


def _weighed(found: Mapping[str, Any]) -> list[str]:
    lines = []
    if found["lower_bound_us"] is not None:
        gap = "" if found["gap"] is None else f", gap {100 * found['gap']:.2f} %"
        lines.append(f"no plan costs less than {found['lower_bound_us']:,.1f} us{gap}")
    if found["cut_us"] is not None:
        lines.append(f"minimum cut without launches: {found['cut_us']:,.1f} us")
    if found["candidates"]:
        weighed = [[row["name"], f"{row['cost_us']:,.1f}"] for row in found["candidates"]]
        lines += ["plans weighed:", *("  " + line for line in table(["plan", "us"], weighed).splitlines())]
    if found["margin_us"] is not None:
        lines.append(f"the next dearer one is {found['margin_us']:,.1f} us behind")
    return lines


def diff_text(found: Mapping[str, Any]) -> str:
    """What `Plan.diff` finds: the figures of both, which nodes moved where, and which are in one plan alone."""
    rows = [
        [name, f"{found[key]['before']:,.{digits}f}", f"{found[key]['after']:,.{digits}f}"]
        for name, key, digits in (
            ("cost us", "cost_us", 1),
            ("overlapping us", "makespan_us", 1),
            ("subgraphs", "subgraphs", 0),
        )
    ]
    moved: dict[tuple[str, str], list[str]] = {}
    for row in found["moved"]:
        moved.setdefault((row["from"], row["to"]), []).append(row["node"])
    lines = [f"{before} → {after}: {', '.join(names)}" for (before, after), names in moved.items()]
    lines += [f"{when} alone: {', '.join(found[key])}" for when, key in _IN_ONE.items() if found[key]]
    return "\n".join([table(["", "before", "after"], rows), *(lines or ["no node moved"])])


_IN_ONE = {"before": "only_before", "after": "only_after"}


def why_text(why: Mapping[str, Any]) -> str:
    """Why a node is where it is, as `Plan.why` tells it."""
    where = f"  {place(why)}".rstrip()
    lines = [f"{why.get('op', 'node')} '{why['node']}' is on {why['device']}, subgraph {why['subgraph']}{where}"]
    costs = [
        [device, _figure(time_us), _figure(why["plan_cost_us"][device])] for device, time_us in why["time_us"].items()
    ]
    lines.append(table(["device", "node us", "plan us"], costs))
    lines += [f"{row['device']}: {row['text']} ({row['label']})" for row in why["reasons"]]
    return "\n".join([*lines, *([why["change"]] if why["change"] else [])])


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"


def devices_table(report: Mapping[str, Any]) -> str:
    """What each device runs: nodes, multiply-accumulates and their share, subgraphs, the fewest there could be, us."""
    bounds, macs = report["lower_bound_subgraphs"], report["macs_on"]
    total = sum(macs.values())
    rows = []
    for device, nodes in report["nodes_on"].items():
        parts = [part for part in report["subgraphs"] if part["device"] == device]
        own = macs.get(device, 0)
        share = f"{100 * own / total:.1f} %" if total else "-"
        predicted = f"{sum(part['predicted_us'] for part in parts):,.1f}"
        rows.append(
            [device, str(nodes), f"{own:,.0f}", share, str(len(parts)), str(bounds.get(device, "-")), predicted]
        )
    return table(["device", "nodes", "MACs", "share", "subgraphs", "fewest", "us"], rows)


def costs(report: Mapping[str, Any]) -> str:
    """One line: the predicted time, and what crosses between devices."""
    crossings = count(len(report["crossings"]), "crossing")
    return f"predicted {report['predicted_us']:,.1f} us; {crossings}, {count(report['crossing_bytes'], 'byte')}"


def as_text(report: Mapping[str, Any]) -> str:
    """Placement, crossings, rewrites, kernels and reasons of `report` (`Executable.report(format="dict")`)."""
    parts = [
        f"target {report['target']}, strategy {report['strategy']}",
        devices_table(report),
        "subgraphs, in order:",
        *(_subgraph(k, part) for k, part in enumerate(report["subgraphs"])),
        costs(report),
    ]
    parts += [f"note: {_note(row)}" for row in report.get("notes", [])]
    if report["rewrites"]:
        total = report["rewriting"]
        saved = _saved(total)
        us = f"{total['predicted_us_after']:,.1f} us instead of {total['predicted_us_before']:,.1f}"
        parts.append(f"rewritten: {saved + ', ' if saved else ''}{us}")
        parts += [_rewrite(row) for row in report["rewrites"]]
    if report["fusions"]:
        saved = sum(row["bytes_before"] - row["bytes_after"] for row in report["fusions"])
        groups = count(len(report["fusions"]), "group")
        parts.append(f"fused: {groups}, {_fewer(saved, 'byte')} through memory")
        parts += [_fusion(row) for row in report["fusions"]]
    if kernels := _kernels(report):
        parts += ["kernels on the CPU, and the next best:", *kernels]
    if report["not_on_preferred"]:
        parts += ["not on the accelerator:", *_fallbacks(report)]
    if report.get("bodies"):
        parts += ["repeated:", *(line for row in report["bodies"] for line in _body(row))]
    return "\n".join(parts)
