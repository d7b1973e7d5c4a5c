"""Every notebook runs from top to bottom, and is kept with what it gave."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

import keep_notebooks

FOLDER = Path(__file__).resolve().parents[3] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(path: Path) -> list[Any]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def test_each_has_a_number_of_its_own() -> None:
    numbers = [int(path.stem[:2]) for path in NOTEBOOKS]
    assert len(numbers) > 8
    assert sorted(set(numbers)) == numbers


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path) -> None:
    given = [[output.output_type for output in cell.outputs] for cell in cells(path)]
    notebook = keep_notebooks.kept(keep_notebooks.ran(path))
    made = [[output.output_type for output in cell.outputs] for cell in notebook.cells if cell.cell_type == "code"]
    assert made == given, f"run `python tools/keep_notebooks.py {path}`"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_kept_as_it_ran(path: Path) -> None:
    assert [cell.execution_count for cell in cells(path)] == list(range(1, len(cells(path)) + 1))
    text = path.read_text()
    assert not re.search(r"/tmp/|/root/|/home/|\\u001b", text), "a place or a colour of one machine"
    assert len(text) < 300_000
