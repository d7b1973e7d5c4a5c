"""The page of operators by element type and device says what is."""

from __future__ import annotations

import re

import pytest

import operator_types

ROWS = operator_types.OUT.read_text(encoding="utf-8").splitlines()


def test_every_operator_has_a_row_with_a_cell_for_every_type() -> None:
    named = [match[1] for row in ROWS if (match := re.match(r"\| \[(\w+)\]", row))]
    assert named == [op["name"] for op in operator_types._core.operators()]
    assert all(row.count("|") == len(operator_types.DTYPES) + 3 for row in ROWS if row.startswith("| ["))


@pytest.mark.parametrize("part", range(4))
def test_the_rows_are_current(part: int) -> None:
    names = [op["name"] for op in operator_types._core.operators()]
    stale = [row for row in operator_types.table(names[part::4]) if row not in ROWS]
    assert not stale, "run tools/operator_types.py"


def test_what_computes_in_a_type_is_not_what_does_not() -> None:
    cells = {row.split("]")[0][3:]: [cell.strip() for cell in row.split("|")[2:-2]] for row in ROWS if row[:3] == "| ["}
    at = {dtype: k for k, dtype in enumerate(operator_types.DTYPES)}
    assert cells["relu"][at["f32"]] == "Krmt"
    assert cells["gelu"][at["i64"]] == ""
    assert cells["nonzero"][at["i64"]] == "c"
    assert cells["cast"][at["i4"]] == "c"
    assert cells["add"][at["i4"]] == ""
