"""What is generated is current: stubs and documentation pages, and the templates for new files make sound files."""

from __future__ import annotations

from pathlib import Path

import pytest

import check_house
import generate_docs
import generate_stubs
import new_file
from hetnn.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("module", generate_stubs.MODULES)
def test_stub_is_current(module: str) -> None:
    kept = (ROOT / "python" / "hetnn" / f"{module}.pyi").read_text()
    assert kept == generate_stubs.generate(module), f"{module}.pyi is out of date; run `make stubs`"


PAGES = [
    "README.md",
    "docs/benchmarks.md",
    "docs/export.md",
    "docs/operators.md",
    "docs/models.md",
    "docs/rules.md",
    "docs/options.md",
]
PAGES += ["docs/json.md"]


@pytest.mark.parametrize("page", PAGES)
def test_page_is_current(page: str) -> None:
    assert (ROOT / page).read_text() == generate_docs.PAGES[page](), f"{page} is out of date; run `make docs`"


def test_every_command_is_documented() -> None:
    page = (ROOT / "docs/command-line.md").read_text()
    assert [name for name in COMMANDS if f"usage: hetnn {name} " not in page] == []


def test_every_operator_is_documented_once() -> None:
    headings = [line for line in (ROOT / "docs/operators.md").read_text().splitlines() if line.startswith("## ")]
    assert len(headings) == len(set(headings)) > 20


@pytest.fixture
def empty_house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A house with an empty table of operators."""
    (tmp_path / "cpp/hetnn/ops/elementwise").mkdir(parents=True)
    (tmp_path / "cpp/hetnn/passes/canonical").mkdir(parents=True)
    (tmp_path / "cpp/hetnn/ops/all_ops.inc").write_text("// The operators.\n")
    (tmp_path / "cpp/hetnn/ops/elementwise/formulas.inc").write_text("// The functions.\n#undef HETNN_FUNCTION\n")
    for floor in ("ops", "passes"):
        (tmp_path / f"tests/cpp/{floor}").mkdir(parents=True)
        (tmp_path / f"tests/cpp/{floor}/floor_test.cpp").write_text("// Tests of the floor.\n")
    for name in ("CMakeLists.txt", ".clang-format"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    monkeypatch.setattr(new_file, "ROOT", tmp_path)
    return tmp_path


def test_a_new_operator_is_one_row(empty_house: Path) -> None:
    new_file.new_operator("cube")
    ops = empty_house / "cpp/hetnn/ops"
    assert (ops / "all_ops.inc").read_text() == "// The operators.\n"
    table = (ops / "elementwise/formulas.inc").read_text()
    assert table.startswith("// The functions.\nHETNN_FUNCTION(cube, 1, (), light, numbers, 1e-6,\n  (.doc = ")
    assert table.endswith("  { return Mul(x, x); })\n#undef HETNN_FUNCTION\n")
    assert check_house.check(empty_house) == []
    with pytest.raises(SystemExit, match=r"cube is a row of cpp/hetnn/ops/elementwise/formulas\.inc already"):
        new_file.new_operator("cube")


def test_a_new_rule_set_is_one_file(empty_house: Path) -> None:
    new_file.new_pass("merge_rectifiers")
    source = (empty_house / "cpp/hetnn/passes/canonical/merge_rectifiers.cpp").read_text()
    assert "const RuleSet& merge_rectifiers() {" in source
    assert check_house.check(empty_house) == []
