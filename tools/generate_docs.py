"""Writes the generated pages of docs/ (operators, command line), or checks that they are current.

python tools/generate_docs.py [--check]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from export_page import NOTICE, export_page

ROOT = Path(__file__).resolve().parent.parent


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _input(row: dict[str, Any]) -> str:
    mark = "?" if row["optional"] else "…" if row["variadic"] else ""
    return f"`{row['name']}{mark}`"


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
    return f"# Operators\n\n{NOTICE} Each comes from one file under `cpp/hetnn/ops/`.\n\n{table}\n\n{sections}\n"


def models_page() -> str:
    """What is taken of torch and ONNX: by a row of an operator's file, by a rule, by the standard's own definition."""
    from onnx import defs

    import hetnn.importers.tflite.rules
    import hetnn.importers.torch.rules  # noqa: F401
    from hetnn.importers.onnx.rules import load_rare
    from hetnn.importers.onnx.rules.call import ONNX
    from hetnn.importers.onnx.rules.declare import ADDED, REFUSED
    from hetnn.importers.tflite.rules.call import TFLITE
    from hetnn.importers.torch.rules.call import TORCH

    load_rare()
    every = {name.partition("<")[0] for name in (*ONNX.rows, *ONNX.rules)}
    added = {f"{domain}.{name}" if domain else name for domain, name in ADDED}
    taken = every - added
    refusals = {why: [name for (_, name), reason in REFUSED.items() if reason == why] for why in REFUSED.values()}
    schemas: Any = defs.get_all_schemas()
    bodies = [s.name for s in schemas if not s.domain and (s.has_function or s.has_context_dependent_function)]
    defined = set(bodies) - taken

    def listed(names: Iterable[str]) -> str:
        return ", ".join(f"`{name.removeprefix('aten.')}`" for name in sorted(names))

    return f"""# Models

{NOTICE}

`hetnn.compile`, `plan` and `check` take a `torch.export.ExportedProgram`, a torch module or a function with `args=`, a
`.pt2` file, an ONNX model (path, bytes or a `ModelProto`), a TFLite model (path or bytes), or hetnn's IR text. What a
model uses beyond the lists below is named in one error, with the places.

## torch

Composites that a device may do at once stay whole; what else has no name below is decomposed as torch does it. `make
sweep-architectures` runs networks of timm and transformers, small and of random weights, beside eager torch. Of its
795, torch does not build small, run, repeat or export 185; of the other 610, 608 are as torch has them (the smallest
ones of timm on an NPU too), and byoanet and pp_doclayout_v4 are as near as torch's own f32 is to its f64.

One operator each ({len(TORCH.rows)}): {listed(TORCH.rows)}.

By a rule ({len(TORCH.rules)}): {listed(TORCH.rules)}.

## ONNX

All operator sets, of the default domain. Named sizes are symbols; shapes computed from shapes are computed when
importing. Axes, bounds and shapes that are values of the model are taken where the model declares the shape of what
they give, which is checked when it runs. Weights may lie in files of the model's folder, and be sparse, which makes
them dense; a sparse input is given dense. Functions of a model are opened, and so is an `If` whose condition is known;
of another, both branches are computed and one is chosen, or only the one that is taken where a branch takes long
(layers, loops) or may refuse values or sizes (picks by indices, divides integers, reshapes). Branches may give values
unlike in rank: all that follows is done for both sides until they are alike, which they must be where they leave a
loop's round; an output of the model has the rank that a run says. `CastMap` and `DictVectorizer` are not taken: they
read maps, and inputs are tensors, sequences of them or optional. `Loop`, `Scan` and sequences are unrolled where the
number of rounds and the lengths are known. What a loop repeats, or one branch computes, is a program of its own,
planned, placed and saved as the model is. Names of inputs, outputs, nodes and sizes are the file's own. Sizes of -1 or
`?` are open, each one its own. Nodes may stand in any order that has no circle. An attribute that says something and
that hetnn does not read is refused by name.
ONNX Runtime's searches (`GreedySearch`, `BeamSearch`, `Sampling`, `WhisperBeamSearch`) run their decoder in a loop and
find ONNX Runtime's words, by its own generator where a seed is given. What it leaves of its memory behind the last word
is padding here. Not read are timestamps of Whisper (`logits_processor`), `cross_qk`, `presence_penalty`, and caches
that a decoder shares with what it gives.
Where ONNX Runtime differs from the standard's text, hetnn does what the text says: NaN among what is compared gives NaN
(`ReduceMax`, `ArgMax`, bounds of `Clip`) and is one number for `Unique`; integers that overflow wrap (`Pow`,
`ReduceSum`); numbers become plain texts, without an exponent; a `StringSplit` by a delimiter finds one piece in an
empty text; `NonZero` of a scalar has no row; `OneHot` cuts fractions off its indices; `Resize` measures places by the
scale as it is given, and `align_corners` by the whole length of the result.
`make sweep-files` runs the model files that packages ship beside ONNX Runtime.
`hetnn.OnnxBackend` is an `onnx.backend.base.Backend`.

One operator each ({len(ONNX.rows)}): {listed(ONNX.rows)}.

By a rule ({len(taken - ONNX.rows.keys())}): {listed(taken - ONNX.rows.keys())}.

As the standard defines them by others, as far as those are there ({len(defined)}): {listed(defined)}.

What ONNX Runtime adds, equal to its CPU provider where that has it ({len(added)}): {listed(added)}.

Of those not{"".join(f"{chr(10)}- {why}: {listed(those)}" for why, those in refusals.items()) or " one"}.

## TFLite

The file's first subgraph, read by the schema in the package `tflite`; no TensorFlow. Inputs and outputs have the names
of the file's signature where it has one, else those of the tensors, and the file's layout; inside, images lie channels
first from one convolution to the next. Sizes that the file leaves open are symbols, unless an operator needs to know
them: then all are as the file states them, or as `fix` does. Variables and the variable tensors of recurrent layers are
states. Of an `IF` whose condition is not known both branches are computed; a `WHILE` is unrolled as long as its
condition is known, then it is a loop. Sparse constants are made dense. Custom operators are refused by name.

Integers are [quantized types](numerics.md), layers of them name LiteRT's rounding, functions of one value of i8 or i16
are tables by LiteRT's own formulas: results are those of LiteRT's reference kernels bit for bit. Of `GELU`, `TANH`,
`EXP`, `ELU`, `LOG` and i8 `LOGISTIC` these call the functions of f32 of the C library that is there when a table is
filled, and so does hetnn: where a value lies between two integers, another library (glibc from 2.41 on) may give the
other. So are an NPU's, which
is given no layer whose rounding its engines do not know: linear layers, whose product LiteRT rounds once (`single`),
stay on the general processor where an NPU only rounds twice. `MAXIMUM`, `MINIMUM`, `FLOOR_DIV` and `FLOOR_MOD` take the
file's integers whatever they stand for, as LiteRT does. What no integer form is for is computed on the reals and
rounded once (normalizations, products along axes, quotients). `make sweep-files` runs files of packages beside LiteRT,
`make fuzz-tflite-layers` random layers, and `make fuzz-tosa` the same beside
[TOSA's reference model](numerics.md#beside-tosa).

By a rule ({len(TFLITE.rules)}): {listed(TFLITE.rules)}.
"""


def rules_page() -> str:
    """Every rewriting rule, by pass and rule set, in the order in which they are tried."""
    from hetnn import _core

    lines: list[str] = []
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
