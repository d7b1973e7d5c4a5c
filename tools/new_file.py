"""Starts a new operator or rewriting rule set from a template that compiles, passes its tests, and is then edited.

python tools/new_file.py op NAME              -> its row in cpp/hetnn/ops/elementwise/formulas.inc
python tools/new_file.py pass NAME [STAGE]    -> cpp/hetnn/passes/STAGE/NAME.cpp (STAGE: canonical or legal)
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

ROW = """HETNN_FUNCTION({name}, 1, (), light, numbers, 1e-6,
  (.doc = "The square of each element: y = x x.",
   .samples = {{"{name}(f32[2,3,5,7])", "{name}(f32[n,4])"}}),
  {{ return Mul(x, x); }})
"""

RULES = """// {sentence} (edit this line, the equation, the pattern and the guards).
#include "hetnn/passes/{stage}/rules.h"

namespace hetnn::passes::{stage} {{

const RuleSet& {name}() {{
  static const RuleSet set = {{
      "{name}",
      "{sentence}.",
      {{{{.name = "{name}_relu_of_relu",
        .equation = "relu(relu(x)) = relu(x)",
        .pattern = op("relu", {{op("relu", {{any("x")}}, "inner")}}),
        .guards = {{}},
        .exactness = "bit for bit, NaN, inf and -0 included",
        .rewrite = [](const Match& m, Build&) {{ return m.value("inner"); }}}}}}}};
  return set;
}}

}}  // namespace hetnn::passes::{stage}
"""


def _write(path: Path, text: str) -> None:
    if path.exists():
        raise SystemExit(f"{path.relative_to(ROOT)} is there already")
    path.write_text(text, encoding="utf-8")
    formatter = shutil.which("clang-format-14") or shutil.which("clang-format")
    if formatter:
        subprocess.run([formatter, "-i", "--style=file", str(path)], check=True)
    print(f"wrote {path.relative_to(ROOT)}")


def new_operator(name: str) -> None:
    """A row of formulas.inc, for the author to edit: its text, formula and samples."""
    table = ROOT / "cpp/hetnn/ops/elementwise/formulas.inc"
    text, end = table.read_text(encoding="utf-8"), "#undef HETNN_FUNCTION\n"
    if f"({name}," in text:
        raise SystemExit(f"{name} is a row of {table.relative_to(ROOT)} already")
    table.write_text(text.replace(end, ROW.format(name=name) + end), encoding="utf-8")
    print(f"added {name} to {table.relative_to(ROOT)}")


def new_pass(name: str, stage: str = "canonical") -> None:
    """One file with one rule; its line in the stage's rules.h is for the author, because the order is a decision."""
    folder = ROOT / "cpp/hetnn/passes" / stage
    if not folder.is_dir():
        raise SystemExit(f"there is no stage '{stage}'; rule sets belong to canonical or legal")
    sentence = name.replace("_", " ").capitalize()
    _write(folder / f"{name}.cpp", RULES.format(name=name, stage=stage, sentence=sentence))
    print(f"declare `const RuleSet& {name}();` in {stage}/rules.h and put it in its place in the list of rule sets")


def main() -> int:
    kinds = {"op": new_operator, "pass": new_pass}
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in kinds or (sys.argv[1] == "op" and len(sys.argv) == 4):
        raise SystemExit(__doc__)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", sys.argv[2]):
        raise SystemExit(f"a name is snake_case; got '{sys.argv[2]}'")
    kinds[sys.argv[1]](*sys.argv[2:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
