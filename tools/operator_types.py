"""Tries every operator on every element type and device; writes docs/operator-types.md.

    python tools/operator_types.py [--names relu,conv2d] [--check]

With --check nothing is written, and the exit code is 1 where the page says something else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import hetnn
import samples
from hetnn import _core, _runtime
from hetnn.importers.onnx.model import NUMBERS
from samples import INPUT, as_input, call_of, random_array

OUT = Path(__file__).resolve().parent.parent / "docs" / "operator-types.md"
DTYPES = [*NUMBERS]
ACCELERATORS = {"cpu+relu-only": "r", "cpu+relu-mul": "m", "cpu+relu-table": "t"}
ON_ACCELERATORS = ("f32", "f16", "bf16", "i8")
SIZE = 2  # of samples' symbols
HEAD = """# Operators by element type and device

Written by `make conformance`; not edited by hand. Each operator alone, on a sample whose first input is of the type:
**K** the CPU by a kernel, **c** the CPU by the operator's meaning, both in saved executables too; **r**, **m**, **t**
also the NPUs of the data sheets `relu-only`, `relu-mul` and `relu-table`. An empty cell is refused by a typed error:
the operator does not compute in the type; types of 8 bits and fewer that are only stored are cast first. The names are
those by which [torch and ONNX](models.md) reach the operator; others reach it by rules.

"""


def graph_of(op: dict[str, Any], sample: str, dtype: str) -> str | None:
    """A sample with its first input's type, and those that are like it, replaced; None where it is no such call."""
    match = call_of(sample)
    first = next((part[1] for part in INPUT.finditer(match[1]) if part[1]), dtype) if match else dtype
    numbers = np.random.default_rng(0)

    def given(builder: Any, number: int, kind: str, shape: Any) -> Any:
        if number > 0 and "compute" in op["traits"] and "elementwise" not in op["traits"]:
            return builder.constant(np.ascontiguousarray(random_array(numbers, kind, shape)))  # a weight
        return as_input(builder, number, kind, shape)

    made = samples.graph_of(op, sample, lambda size: int(size) if size.isdigit() else SIZE, {first: dtype}, given)
    if made is None:
        return None
    for value in made[1]:
        made[0].output(value)
    return str(made[0].finish().print())


def typed(call: Callable[..., Any], *arguments: Any) -> tuple[Any, str]:
    """What a call gives, or the kind of the error by which hetnn refuses it."""
    try:
        return call(*arguments), ""
    except (hetnn.InvalidModel, hetnn.Unsupported, hetnn.DoesNotFit) as error:
        return None, type(error).__name__


def cell(op: dict[str, Any], dtype: str) -> str:
    """The devices that compute the operator in the type."""
    for sample in op["samples"]:
        text, _ = typed(graph_of, op, sample, dtype)
        if text is None:
            continue
        exe, refused = typed(hetnn.compile, text)
        if refused:
            continue
        sizes = exe._engine.example_shapes()
        feeds = [random_array(np.random.default_rng(1), port.dtype, sizes[port.name]) for port in exe.inputs]
        if typed(exe, *feeds)[1] == "Unsupported":
            continue
        kernels = '"variant": ""' not in _runtime.take_apart(exe._engine.image())["program"].replace('":"', '": "')
        return ("K" if kernels and op["kernels"] else "c") + _accelerators(text, dtype)
    return ""


def _accelerators(text: str, dtype: str) -> str:
    out = ""
    for target, letter in ACCELERATORS.items() if dtype in ON_ACCELERATORS else ():
        plan, refused = typed(partial(hetnn.plan, strategy="take-all"), text, target)
        if not refused and any(name != "cpu" and n for name, n in plan.report(format="dict")["nodes_on"].items()):
            out += letter
    return out


def names_of(op: dict[str, Any]) -> str:
    theirs = [name.removeprefix("aten.") for name, *_ in op["torch"]] + [f"ONNX {name}" for name, *_ in op["onnx"]]
    return ", ".join(f"`{name}`" for name in theirs)


def row(op: dict[str, Any]) -> str:
    cells = " | ".join(cell(op, dtype) for dtype in DTYPES)
    return f"| [{op['name']}](operators.md#{op['name']}) | {cells} | {names_of(op)} |"


def table(names: Iterable[str] = ()) -> list[str]:
    """A row an operator; of these alone where some are named."""
    wanted = set(names)
    return [row(op) for op in _core.operators() if not wanted or op["name"] in wanted]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", default="")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    rows = table(filter(None, asked.names.split(",")))
    if asked.check or asked.names:
        missing = [text for text in rows if text not in OUT.read_text(encoding="utf-8").splitlines()]
        print("\n".join(missing or ["as the page says"]))
        return 1 if missing and asked.check else 0
    head = f"| operator | {' | '.join(DTYPES)} | names |\n|{'---|' * (len(DTYPES) + 2)}\n"
    OUT.write_text(HEAD + head + "\n".join(rows) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
