"""The house holds, and the checker notices each kind of breach."""

from __future__ import annotations

from pathlib import Path

import pytest

import check_house

ROOT = Path(__file__).resolve().parents[3]
FLOORS = "hetnn_floor(base)\nhetnn_floor(kernels DEPENDS base PRIVATE hwy::hwy)\nhetnn_floor(runtime DEPENDS kernels)\n"


def test_the_house_holds() -> None:
    assert check_house.check(ROOT) == []


def test_floors_are_read_with_everything_below() -> None:
    assert check_house.read_floors(FLOORS) == {"base": set(), "kernels": {"base"}, "runtime": {"kernels", "base"}}


def test_the_runtime_tower_does_not_reach_the_compiler_tower() -> None:
    floors = check_house.read_floors((ROOT / "CMakeLists.txt").read_text())
    assert not floors["runtime"] & {"ir", "target", "plan", "passes", "backends", "compiler"}


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        (
            "cpp/hetnn/base/a.h",
            '// A.\n#include "hetnn/runtime/b.h"\n',
            "cpp/hetnn/base/a.h:2: includes hetnn/runtime/b.h",
        ),
        ("cpp/hetnn/base/a.h", "// A.\n#include <pybind11/stl.h>\n", "pybind11 belongs in bindings/"),
        ("cpp/hetnn/runtime/a.cpp", "// A.\n#include <hwy/highway.h>\n", "SIMD belongs in cpp/hetnn/kernels/"),
        ("cpp/hetnn/runtime/a.cpp", "// A.\n#include <immintrin.h>\n", "SIMD belongs in cpp/hetnn/kernels/"),
        ("cpp/hetnn/runtime/a.cpp", "// A.\n#include <Eigen/Core>\n", "Eigen belongs in cpp/hetnn/ops/linalg/"),
        ("cpp/hetnn/runtime/a.cpp", "// A.\n#include <nlohmann/json.hpp>\n", "JSON belongs in files named *_json.cpp"),
        ("bindings/runtime_a.cpp", '// A.\n#include "hetnn/compiler/b.h"\n', "includes hetnn/compiler/b.h"),
        ("tests/cpp/base/a_test.cpp", '// A.\n#include "hetnn/runtime/b.h"\n', "includes hetnn/runtime/b.h"),
        ("cpp/hetnn/base/utils.h", "// A.\n", "the name 'utils' says nothing"),
        ("cpp/hetnn/base/a.h", "#pragma once\nint a;\n" * 401, "802 lines; 800 is the most"),
        ("python/hetnn/a.py", "import os\n", "the first line must be a comment"),
        ("python/hetnn/a.py", '"""A."""\n# TO' + "DO later\n", "an unfinished mark"),
        ("python/hetnn/a.py", '"""A."""\n# ' + "-" * 20 + "\n", "a banner"),
        ("cpp/hetnn/runtime/a.cpp", '// A.\nbool b = name == "relu";\n', "a.cpp:2: names the operator 'relu'"),
        ("cpp/hetnn/runtime/a.cpp", '// A.\nMap m = {{"relu", 3}};\n', "a.cpp:2: names the operator 'relu'"),
        ("cpp/hetnn/base/a.cpp", '// A.\n{Trait::view, "view"},\n', "a.cpp: gives Trait::view a name"),
        (
            "cpp/hetnn/ops/op_def.h",
            '// A.\nenum class Trait {\n  view = 1,\n  source = 2,\n};\n{{Trait::view, "view"}}\n',
            "op_def.h: Trait::source must have one row in the table of traits",
        ),
        (
            "cpp/hetnn/ops/op_def.h",
            '// A.\nenum class Trait {\n  view = 1,\n};\n{{Trait::view, "views"}}\n',
            "op_def.h: Trait::view must have one row in the table of traits, with its own name",
        ),
        ("cpp/hetnn/base/a.h", "// A.\n", "tests/cpp/base: the floor base has no tests"),
    ],
)
def test_a_breach_is_named(tmp_path: Path, path: str, text: str, problem: str) -> None:
    (tmp_path / "CMakeLists.txt").write_text(FLOORS)
    (tmp_path / "cpp/hetnn/ops").mkdir(parents=True)
    (tmp_path / "cpp/hetnn/ops/all_ops.inc").write_text("// The operators.\nHETNN_OP(relu)\n")
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    problems = check_house.check(tmp_path)
    assert any(problem in line for line in problems), problems


def test_what_is_allowed_is_not_named(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(FLOORS)
    allowed = {
        "cpp/hetnn/kernels/a.cpp": '// A.\n#include <hwy/highway.h>\n#include "hetnn/base/b.h"\n',
        "cpp/hetnn/base/a_json.cpp": "// A.\n#include <nlohmann/json.hpp>\n",
        "bindings/a.cpp": '// A.\n#include <pybind11/stl.h>\n#include "hetnn/runtime/b.h"\n',
        "cpp/hetnn/ops/all_ops.inc": "// The operators.\nHETNN_OP(relu)\n",
        "cpp/hetnn/ops/relu.cpp": '// A.\nauto name = "relu";\n',
        "cpp/hetnn/passes/a.cpp": '// A.\nauto rule = op("relu");\n',
        "cpp/hetnn/runtime/a.cpp": '// A.\nauto words = text("relu alone");  // not "relu"\n',
        "cpp/hetnn/runtime/a_json.cpp": '// A.\nauto key = "relu";\n',
        "tests/cpp/base/a_test.cpp": '// A.\nauto key = "relu";\n',
        "tests/cpp/kernels/a_test.cpp": "// A.\n",
        "tests/cpp/runtime/a_test.cpp": "// A.\n",
    }
    for path, text in allowed.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert check_house.check(tmp_path) == []
