"""Runs notebooks from top to bottom and keeps them with what they gave.

python tools/keep_notebooks.py [NOTEBOOK...]     all of notebooks/, unless named
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

_format: Any = nbformat  # it has no types
FOLDER = Path(__file__).resolve().parent.parent / "notebooks"


def ran(path: Path) -> Any:
    """The notebook after a run in its folder, on a kernel of this interpreter."""
    notebook = _format.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": FOLDER}}).execute()
    return notebook


def _joined(outputs: Iterable[Any]) -> list[Any]:
    """What was printed bit by bit, as one."""
    out: list[Any] = []
    for one in outputs:
        if out and one.output_type == out[-1].output_type == "stream":
            out[-1].text += one.text
        else:
            out.append(one)
    return out


def kept(notebook: Any) -> Any:
    """Without what differs from run to run and tells nothing: when cells ran, and warnings of others."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = _joined(one for one in cell.outputs if one.get("name") != "stderr")
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def main() -> int:
    for path in map(Path, sys.argv[1:] or sorted(map(str, FOLDER.glob("*.ipynb")))):
        _format.write(kept(ran(path)), path)
        print(f"kept {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
