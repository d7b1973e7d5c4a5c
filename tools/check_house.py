"""Checks the rules of the house: includes follow the link lines of CMakeLists.txt, fences hold, files stay small.

    python tools/check_house.py [ROOT]

Prints one line per problem and ends with exit code 1 when there is any.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_LINES = 800
SOURCES = {".h", ".cpp", ".inc", ".py"}
FOLDERS = ("cpp", "bindings", "python", "tests", "tools", "benchmarks", "examples")
TRAITS = Path("cpp/hetnn/ops/op_def.h")
SHAPELESS_NAMES = {"utils", "util", "common", "manager", "info", "misc", "helpers"}

_FLOOR = re.compile(
    r"^hetnn_floor\((?P<name>\w+)(?:\s+DEPENDS(?P<below>[\s\w]*?))?(?:\s+PRIVATE[^)]*)?\)", re.MULTILINE
)
_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"](?P<path>[^>"]+)[>"]', re.MULTILINE)
_MARK = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
_LITERAL = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"')
_TRAITS = re.compile(r"enum class Trait[^{]*\{(?P<traits>[^}]*)\}")
_TRAIT_ROW = re.compile(r'\{\s*(?:\w+::)*Trait::(\w+),\s*"(\w+)"')
_BANNER = re.compile(r"^\s*(//|#)\s*[-=*#/]{8,}")


@dataclass(frozen=True)
class Fence:
    """Headers that only some files may include."""

    what: str
    header: re.Pattern[str]
    allowed: Callable[[Path], bool]
    where: str


def _in_folder(*folders: str) -> Callable[[Path], bool]:
    return lambda path: any(path.is_relative_to(folder) for folder in folders)


# The headers that speak of JSON, for files named *_json.cpp.
_JSON_HEADERS = {Path("cpp/hetnn/base/json_fields.h")}


def _json_file(path: Path) -> bool:
    return path.name.endswith("_json.cpp") or path in _JSON_HEADERS or path.is_relative_to("tests")


FENCES = [
    Fence("pybind11", re.compile(r"pybind11/"), _in_folder("bindings"), "bindings/"),
    Fence("Eigen", re.compile(r"Eigen/"), _in_folder("cpp/hetnn/ops/linalg"), "cpp/hetnn/ops/linalg/"),
    Fence(
        "SIMD",
        re.compile(r"hwy/|\w*intrin\.h|arm_neon\.h"),
        _in_folder("cpp/hetnn/kernels", "tests/cpp/kernels"),
        "cpp/hetnn/kernels/",
    ),
    Fence("JSON", re.compile(r"nlohmann/|hetnn/base/json_fields\.h"), _json_file, "files named *_json.cpp"),
    Fence("SQLite", re.compile(r"^sqlite3\.h$"), _in_folder("cpp/hetnn/store"), "cpp/hetnn/store/"),
    Fence("Python.h", re.compile(r"^Python\.h$"), _in_folder(), "no file; pybind11 is the way in"),
]


def read_floors(cmake_text: str) -> dict[str, set[str]]:
    """Floor -> every floor below it, from the link lines of the top CMakeLists.txt, which stand in order."""
    below: dict[str, set[str]] = {}
    for match in _FLOOR.finditer(cmake_text):
        direct = (match["below"] or "").split()
        unknown = [name for name in direct if name not in below]
        if unknown:
            raise SystemExit(
                f"CMakeLists.txt: floor {match['name']} depends on {unknown[0]}, which no line above it names"
            )
        below[match["name"]] = {floor for name in direct for floor in {name, *below[name]}}
    return below


def _allowed_floors(path: Path, floors: dict[str, set[str]]) -> set[str] | None:
    """The floors that `path` may include; None where every floor may be."""
    parts = path.parts
    if parts[:2] == ("cpp", "hetnn") and len(parts) > 3:
        return floors.get(parts[2], set()) | {parts[2]}
    if parts[:2] == ("tests", "cpp") and len(parts) > 3 and parts[2] in floors:
        return floors[parts[2]] | {parts[2]}
    if parts[0] == "bindings" and path.name.startswith("runtime_"):
        return floors["runtime"] | {"runtime", "serve", "capi"}
    if parts[0] == "bindings" and path.name.startswith("store_"):
        return floors["store"] | {"store"}
    return None


def check_includes(path: Path, text: str, floors: dict[str, set[str]]) -> Iterator[str]:
    """Includes between floors, and the fences."""
    allowed = _allowed_floors(path, floors)
    for match in _INCLUDE.finditer(text):
        header = match["path"]
        line = text.count("\n", 0, match.start("path")) + 1
        if header.startswith("hetnn/") and allowed is not None:
            floor = header.split("/")[1]
            if floor not in allowed:
                yield f"{path}:{line}: includes {header}, but only {', '.join(sorted(allowed))} are below it or its own"
        for fence in FENCES:
            if fence.header.search(header) and not fence.allowed(path):
                yield f"{path}:{line}: includes {header}; {fence.what} belongs in {fence.where}"


def check_shape(path: Path, text: str) -> Iterator[str]:
    """Size, first line, names, unfinished marks and banners."""
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        yield f"{path}: {len(lines)} lines; {MAX_LINES} is the most. Split it by meaning."
    if lines and not lines[0].startswith(("//", "/*", "#", '"""', 'r"""')):
        yield f"{path}:1: the first line must be a comment that says what the file is for"
    for name in (*path.parts[:-1], path.stem):
        if name in SHAPELESS_NAMES:
            yield f"{path}: the name '{name}' says nothing; name the thing"
    for number, line in enumerate(lines, 1):
        if path.name != "check_house.py" and _MARK.search(line):
            yield f"{path}:{number}: an unfinished mark: {line.strip()}"
        if _BANNER.match(line):
            yield f"{path}:{number}: a banner: {line.strip()[:40]}"


def check_op_names(path: Path, text: str, ops: set[str]) -> Iterator[str]:
    """Operators are named in their own files, by their kernels and in rules; JSON has words of its own."""
    if path.parts[:2] != ("cpp", "hetnn") or path.parts[2] in ("ops", "kernels", "passes") or _json_file(path):
        return
    for number, line in enumerate(text.splitlines(), 1):
        for match in _LITERAL.finditer(line.split("//")[0]):
            if match["text"] in ops:
                yield f"{path}:{number}: names the operator '{match['text']}'; ask a trait of the operator instead"


def check_traits(path: Path, text: str) -> Iterator[str]:
    """Traits have their names in one table, beside the enumeration, and each has one row."""
    rows = _TRAIT_ROW.findall(text)
    if path != TRAITS:
        if rows:
            yield f"{path}: gives Trait::{rows[0][0]} a name; the table of traits in {TRAITS} does that"
        return
    listed = _TRAITS.search(text)
    traits = re.findall(r"^\s*(\w+) = \d+,", listed["traits"], re.MULTILINE) if listed else []
    for name in sorted({*traits, *(trait for trait, _ in rows)}):
        if [named for trait, named in rows if trait == name] != [name] or traits.count(name) != 1:
            yield f"{path}: Trait::{name} must have one row in the table of traits, with its own name"


def check_tests(root: Path, floors: Iterable[str]) -> Iterator[str]:
    """Every floor has a folder of tests of its own."""
    for floor in floors:
        if (root / "cpp/hetnn" / floor).is_dir() and not any((root / "tests/cpp" / floor).rglob("*.cpp")):
            yield f"tests/cpp/{floor}: the floor {floor} has no tests"


def check(root: Path) -> list[str]:
    """Every problem below `root`, in the order of paths."""
    floors = read_floors((root / "CMakeLists.txt").read_text(encoding="utf-8"))
    lists = [root / "cpp/hetnn/ops" / name for name in ("all_ops.inc", "elementwise/formulas.inc")]
    rows = "".join(file.read_text(encoding="utf-8") for file in lists if file.exists())
    ops = set(re.findall(r"^HETNN_(?:OP|FUNCTION|PREDICATE|BITS)\((\w+)[,)]", rows, re.MULTILINE))
    problems = list(check_tests(root, floors))
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            path = file.relative_to(root)
            if file.suffix not in SOURCES or "__pycache__" in path.parts:
                continue
            text = file.read_text(encoding="utf-8")
            problems += check_shape(path, text)
            if file.suffix != ".py":
                problems += check_includes(path, text, floors)
                problems += check_op_names(path, text, ops)
                problems += check_traits(path, text)
    return problems


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    problems = check(root)
    for problem in problems:
        print(problem)
    if problems:
        print(f"check_house: {len(problems)} problems", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
