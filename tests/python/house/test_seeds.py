"""docs/seeds.md names what is there: each row has a test, a target or a command, or says that it is not yet."""

from __future__ import annotations

import ast
import re
import shlex
from functools import cache
from pathlib import Path

from hetnn.cli import build_parser
from hetnn.cli.answer import BadUse

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "seeds.md").read_text()
ROWS = [line.strip("|").split(" | ") for line in PAGE.splitlines() if line.startswith("| ") and "---" not in line]
ROWS = [row for row in ROWS if row[0].strip() != "claim"]
PYTEST = re.compile(r"(\w+/\w+\.py)::(\w+)")
CPP = re.compile(r"(\w+)_test (\w+)\.(\w+)")
MAKE = re.compile(r"make ([\w-]+)")


@cache
def functions(path: Path) -> set[str]:
    if not path.is_file():
        return set()
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


@cache
def sources(floor: str) -> str:
    return "".join(path.read_text() for path in sorted((ROOT / "tests" / "cpp" / floor).rglob("*.cpp")))


@cache
def targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    also = re.search(r"^ALSO := (.*)$", makefile, re.MULTILINE)
    assert also is not None
    return {*also[1].split(), "help", "demo", "test", "tiny"}


def missing(named: str) -> str:
    """What a test, target or command that the page names lacks; empty where it is there."""
    if test := PYTEST.fullmatch(named):
        return "" if test[2] in functions(ROOT / "tests" / "python" / test[1]) else "no such test"
    if test := CPP.fullmatch(named):
        return "" if re.search(rf"TEST(_F|_P)?\({test[2]}, {test[3]}\)", sources(test[1])) else "no such test"
    if target := MAKE.fullmatch(named):
        return "" if target[1] in targets() else "no such target"
    if named.startswith("hetnn "):
        words = shlex.split(named)[1:]
        try:
            build_parser(words[:1])[0].parse_args(words)
        except BadUse as error:
            return f"no such command: {error}"
        except SystemExit as done:  # --help
            return "" if done.code == 0 else "no such command"
        return ""
    return "neither a test nor a target nor a command"


def shown(row: list[str]) -> list[str]:
    """What a row's last column names."""
    return re.findall(r"`([^`]+)`", row[-1])


def test_there_are_rows() -> None:
    assert len(ROWS) > 100
    assert all(len(row) == 3 for row in ROWS), [row for row in ROWS if len(row) != 3]


def test_every_row_is_shown_or_says_not_yet() -> None:
    assert [row[0] for row in ROWS if not shown(row) and not row[-1].strip().startswith("not yet")] == []
    assert [(named, missing(named)) for row in ROWS for named in shown(row) if missing(named)] == []


def test_commands_of_other_columns_are_there() -> None:
    commands = [named for row in ROWS for cell in row[:-1] for named in re.findall(r"`((?:hetnn|make) [^`]+)`", cell)]
    assert len(commands) > 10
    assert [(named, missing(named)) for named in commands if missing(named)] == []


def test_what_is_not_there_is_noticed() -> None:
    assert missing("plan/test_planning.py::test_questions") == ""
    assert missing("plan/test_planning.py::test_nothing") == "no such test"
    assert missing("plan/test_nothing.py::test_questions") == "no such test"
    assert missing("plan_test Pins.HardSoftAndImpossible") == ""
    assert missing("plan_test Pins.Nothing") == "no such test"
    assert missing("make nothing") == "no such target"
    assert missing("hetnn plan MODEL --nothing").startswith("no such command")
