"""Writes the generated pages of docs/ (operators, command line), or checks that they are current.

python tools/generate_docs.py [--check]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks_page import benchmarks_page, readme
from export_page import NOTICE, export_page
from models_page import models_page

ROOT = Path(__file__).resolve().parent.parent


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _input(row: dict[str, Any]) -> str:
    mark = "?" if row["optional"] else "…" if row["variadic"] else ""
    return f"`{row['name']}{mark}`"


DERIVATIVES = {
    "formula": "from its formula",
    "rule": "by the rule beside its file",
    "meaning": "by those of the smaller operators that the rule beside its file names",
}


def _operator_section(op: dict[str, Any]) -> str:
    lines = [f"## {op['name']}", "", op["doc"], ""]
    if op["formula"] and not op["formula"].startswith(f"{op['name']}("):
        lines.append(f"- formula: `{op['formula']}`")
    lines += [f"- input {_input(row)}: {row['doc']}" for row in op["inputs"]]
    for row in op["attrs"]:
        preset = "required" if row["default"] is None else f"default `{row['default']}`"
        lines.append(f"- attribute `{row['name']}` ({row['kind']}, {preset}): {row['doc']}")
    lines.append(f"- outputs: {', '.join(f'`{name}`' for name in op['outputs'])}")
    if op["traits"]:
        lines.append(f"- traits: {', '.join(op['traits'])}")
    if op["torch"]:
        lines.append(f"- in torch: {', '.join(f'`{name}`' for name, _ in op['torch'])}")
    if op["onnx"]:
        lines.append(f"- in ONNX: {', '.join(f'`{name}`' for name, _, _ in op['onnx'])}")
    if op["derivative"]:
        lines.append(f"- derivative: {DERIVATIVES[op['derivative']]}")
    for row in op["constraints"]:
        lines.append(f"- on a device of class {row['device_class']}, `{row['label']}`: {row['text']}")
    lines.append(f"- tolerance of f32 results: {op['tolerance']:g}")
    return "\n".join(lines)


def operators_page() -> str:
    """The table of operators and a section for each."""
    from hetnn import _core

    operators = _core.operators()
    rows = ["| operator | meaning | in torch | kernels on the CPU |", "|---|---|---|---|"]
    for op in operators:
        torch_names = ", ".join(f"`{name.removeprefix('aten.')}`" for name, _ in op["torch"])
        kernels = ", ".join(op["kernels"]) or "by its meaning"
        rows.append(f"| [{op['name']}](#{op['name']}) | {_cell(op['doc'])} | {torch_names} | {kernels} |")
    sections = "\n\n".join(_operator_section(op) for op in operators)
    table = "\n".join(rows)
    head = (
        f"{NOTICE} Each comes from one file under `cpp/hetnn/ops/`. Those that say nothing of a derivative have none."
    )
    return f"# Operators\n\n{head}\n\n{table}\n\n{sections}\n"


PROOFS = {
    "exact": "equal for all real inputs",
    "all": "equal for all values of the bytes that a result reads",
    "moved": "the same values at the same places",
    "rounded": "for all real inputs within 2^-20 of 1 plus the magnitudes that an output reads, since constants round",
    "step": "at most one step of the result apart, where a tie or a constant is rounded otherwise",
    "bound": "in words",
}


def _proofs_told(proofs: dict[str, Any]) -> str:
    count = Counter(row["proof"] for row in proofs.values())
    return (
        f"Of {len(proofs)} rules {sum(count[kind] for kind in PROOFS)} are proved (`make prove-rules`), on graphs with "
        "which the tests show that they fire: for all inputs, with these graphs' weights and sizes. An SMT solver "
        f"shows over the reals that {count['exact']} give equal results, {count['rounded']} near ones, since constants "
        f"round, and {count['step']} integers at most a step apart. Of {count['all']}, whose results read one byte, or "
        f"one of each of two inputs, all are computed; {count['moved']} move values, each to the same place; of "
        f"{count['bound']} a bound is written. What hinders in other graphs of a rule, or for one that is not proved, "
        "is said. What roundings of reals, NaN, infinities and the sign of zero do is not proved but tested, on random "
        "and edge values."
    )


def _proof_told(row: dict[str, Any] | None) -> str:
    if row is None:
        return "none"
    hindered = ", ".join(row["hindered"])
    if row["proof"] not in PROOFS:
        return f"none ({hindered or 'no graph of its own'})"
    if row["proof"] == "bound":
        return f"{PROOFS[row['proof']]}: {row['words']}"
    graphs = f"{row['graphs']} graph" + ("" if row["graphs"] == 1 else "s")
    return f"{PROOFS[row['proof']]}, on {graphs}" + (f" of {row['of']} (the others: {hindered})" if hindered else "")


def rules_page() -> str:
    """Every rewriting rule, by pass and rule set, in the order in which they are tried."""
    from hetnn import _core

    proofs = json.loads((ROOT / "docs" / "rule_proofs.json").read_text())
    lines: list[str] = [_proofs_told(proofs), ""]
    at: tuple[str, str] = ("", "")
    for rule in _core.rules():
        if rule["pass"] != at[0]:
            lines += [f"## {rule['pass']}", ""]
        if (rule["pass"], rule["set"]) != at:
            lines += [f"### {rule['set']}", "", rule["set_doc"], ""]
            at = rule["pass"], rule["set"]
        lines.append(f"- **{rule['name']}**: `{rule['equation']}`; {rule['exactness']}.")
        if rule["rounds_otherwise"]:
            lines.append("  With `deterministic` only where no result is rounded otherwise.")
        if rule["guards"]:
            lines.append(f"  Where {'; '.join(rule['guards'])}.")
        lines.append(f"  Pattern: `{rule['pattern']}`.")
        lines.append(f"  Proof: {_proof_told(proofs.get(rule['name']))}.")
        lines.append("")
    return f"# Rewriting rules\n\n{NOTICE}\n\n" + "\n".join(lines).rstrip() + "\n"


def command_line_page() -> str:
    """The help of every command."""
    from hetnn.cli import COMMANDS, build_parser

    os.environ["COLUMNS"] = "100"
    parser, commands = build_parser(list(COMMANDS))
    parts = [f"# Command line\n\n{NOTICE}\n\n```text\n{parser.format_help()}```"]
    parts += [f"## {name}\n\n```text\n{command.format_help()}```" for name, command in commands.items()]
    parts.append(
        "## Exit codes\n\n0 done; 1 a comparison or check failed; 2 bad use or bad input; 3 unsupported by the target; "
        '4 a bug.\nWith `--json` an error is `{"error": {"kind", "message", "where"}}` on stdout.'
    )
    return "\n\n".join(parts) + "\n"


def options_page() -> str:
    """The options of compiling, from the compiler's table."""
    from hetnn.options import table

    rows = [
        "| `target: Any = 'cpu'` | `--target` | `cpu`, `reference` (every operator by its meaning, slowly), an NPU "
        "preset (`relu-only`), a JSON data sheet's path, `cpu+NAME`, or any number of them; `hetnn targets` lists the "
        "presets |"
    ]
    for row in table():
        flag = f"`{_cell(row.flag)}`" if row.flag else ""
        rows.append(f"| `{row.name}: {_cell(row.type)} = {row.default!r}` | {flag} | {_cell(row.doc)} |")
    head = "| argument of `hetnn.compile` and `hetnn.plan` | command line | meaning |\n|---|---|---|"
    return f"# Compiling: options\n\n{NOTICE}\n\n{head}\n" + "\n".join(rows) + "\n"


def _kind(schema: dict[str, Any]) -> str:
    """What a JSON schema allows, in words."""
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    if "enum" in schema:
        return "one of " + ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    kind = schema.get("type", "any value")
    if kind == "array":
        return f"a list of ({_kind(schema['items'])})"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"an object of ({_kind(schema['additionalProperties'])})"
    bounds = [
        text.format(schema[key])
        for key, text in (("minimum", "at least {:g}"), ("exclusiveMinimum", "above {:g}"), ("maximum", "at most {:g}"))
        if key in schema
    ]
    name = " or ".join(kind) if isinstance(kind, list) else {"string": "text"}.get(kind, kind)
    return " ".join([name, *([", ".join(bounds)] if bounds else [])])


def _field_rows(schema: dict[str, Any], path: str = "") -> list[str]:
    """A row a field, those of objects within below it."""
    rows: list[str] = []
    for name, field in schema.get("properties", {}).items():
        here = f"{path}{name}"
        default = field.get("default")
        preset = "required" if name in schema.get("required", []) else f"`{json.dumps(default)}`" if default else ""
        preset = preset if not isinstance(default, dict) else ""
        rows.append(f"| `{here}` | {_cell(_kind(field))} | {_cell(preset)} | {_cell(field.get('description', ''))} |")
        for inner in [field, *field.get("anyOf", [])]:
            rows += _field_rows(inner, f"{here}.")
            rows += _field_rows(inner.get("items", {}), f"{here}[].")
            if isinstance(inner.get("additionalProperties"), dict):
                rows += _field_rows(inner["additionalProperties"], f"{here}.*.")
    return rows


def _limit_rows(formats: list[dict[str, Any]]) -> str:
    head = "| document | levels at most | values at most | bytes of a text at most |\n|---|---|---|---|\n"
    return head + "\n".join(
        f"| {row['name']} | {row['max_depth']} | {row['max_values']} | {row['max_text_bytes']} |" for row in formats
    )


def format_page() -> str:
    """The page of the executable file, with the limits of its texts."""
    from hetnn import _core

    texts = (
        "executable's header",
        "executable's program",
        "executable's report",
        "target",
        "code of a CPU",
        "code of an NPU",
        "NPU data sheet",
    )
    begin, end = "<!-- limits: made by `make docs` -->\n", "<!-- end of limits -->"
    before, rest = (ROOT / "docs/format.md").read_text(encoding="utf-8").split(begin)
    table = _limit_rows([row for row in _core.json_formats() if row["name"] in texts])
    return f"{before}{begin}{table}\n{end}{rest.split(end)[1]}"


# Described in npu.md, format.md, report-schema.json and by the Open Inference Protocol.
ELSEWHERE = (
    "NPU data sheet",
    "executable's header",
    "executable's report",
    "program.json of hetnn unpack",
    "inference",
)


def json_page() -> str:
    """The kinds of JSON that are read: limits and fields."""
    from hetnn import _core

    formats = _core.json_formats()
    parts = [
        f"# JSON that hetnn reads\n\n{NOTICE}\n\nUnknown keys and keys that stand twice are refused, and so is, while "
        "it is read, what exceeds a limit. The fields of an NPU's data sheet are those of [the NPU](npu.md).",
        _limit_rows(formats),
    ]
    head = "| key | value | when absent | meaning |\n|---|---|---|---|\n"
    for row in formats:
        if row["name"] in ELSEWHERE:
            continue
        for strategy in ("cost", "topological", "merge", "depth") if row["name"] == "strategy options" else ("cost",):
            schema = json.loads(_core.json_schema(row["name"], strategy))
            parts += [f"## {schema['title']}", head + "\n".join(_field_rows(schema))]
    return "\n\n".join(parts) + "\n"


def npu_page() -> str:
    """The page of the NPU, with the fields of its data sheet."""
    from hetnn import _core

    begin, end = "<!-- sheet: made by `make docs` -->\n", "<!-- end of sheet -->"
    before, rest = (ROOT / "docs/npu.md").read_text(encoding="utf-8").split(begin)
    rows = "\n".join(_field_rows(json.loads(_core.json_schema("NPU data sheet"))))
    head = "| key | value | when absent | meaning |\n|---|---|---|---|\n"
    return f"{before}{begin}{head}{rows}\n{end}{rest.split(end)[1]}"


def npu_instructions_page() -> str:
    """The manual of the instruction set."""
    from hetnn import _core

    title, _, rest = _core.isa_manual().partition("\n")
    return f"{title}\n\n{NOTICE}\n{rest}"


def report_schema_page() -> str:
    """The schema of reports, by which the runtime checks those of the executables it reads."""
    from hetnn import _core

    return json.dumps(json.loads(_core.json_schema("executable's report")), indent=1) + "\n"


def report_page() -> str:
    """The page of the report, with its keys."""
    from hetnn import _core

    begin, end = "<!-- keys: made by `make docs` -->\n", "<!-- end of keys -->"
    before, rest = (ROOT / "docs/report.md").read_text(encoding="utf-8").split(begin)
    rows = "\n".join(_key_rows(json.loads(_core.json_schema("executable's report"))))
    return f"{before}{begin}| key | value | meaning |\n|---|---|---|\n{rows}\n{end}{rest.split(end)[1]}"


def _key_rows(schema: dict[str, Any], path: str = "") -> list[str]:
    """A row a key, those of objects within below it."""
    rows: list[str] = []
    for name, field in schema.get("properties", {}).items():
        here = f"{path}{name}"
        rows.append(f"| `{here}` | {_cell(_kind(field))} | {_cell(field.get('description', ''))} |")
        rows += _key_rows(field, f"{here}.")
        rows += _key_rows(field.get("items", {}), f"{here}[].")
    return rows


PAGES = {
    "README.md": readme,
    "docs/benchmarks.md": benchmarks_page,
    "docs/export.md": export_page,
    "docs/operators.md": operators_page,
    "docs/models.md": models_page,
    "docs/rules.md": rules_page,
    "docs/command-line.md": command_line_page,
    "docs/options.md": options_page,
    "docs/json.md": json_page,
    "docs/format.md": format_page,
    "docs/npu.md": npu_page,
    "docs/npu-instructions.md": npu_instructions_page,
    "docs/report.md": report_page,
    "docs/report-schema.json": report_schema_page,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 when a page is out of date")
    args = parser.parse_args()
    stale = False
    for name, make in PAGES.items():
        page, text = ROOT / name, make()
        if page.exists() and page.read_text(encoding="utf-8") == text:
            continue
        if args.check:
            stale = True
            print(f"{name} is out of date; run `make docs`")
        else:
            page.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
