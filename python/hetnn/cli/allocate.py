"""`hetnn allocate`: offsets for buffers with lifetimes, within a capacity."""

from __future__ import annotations

import argparse
import csv
from typing import Any

from hetnn import _core
from hetnn.cli.answer import CHECK_FAILED, DONE, Answer
from hetnn.cli.progress import Progress
from hetnn.errors import InvalidModel

_COLUMNS = ["id", "lower", "upper", "size"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.csv", help="buffers: id,lower,upper,size with half-open lifetimes")
    parser.add_argument("--capacity", type=int, required=True, metavar="BYTES", help="bytes of the memory")
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit of the search")
    parser.add_argument("--heuristic-only", action="store_true", help="no exact search")


def run(args: argparse.Namespace) -> Answer:
    rows = _read(args.file)
    with Progress("allocate", args.quiet) as progress:
        progress(f"{len(rows)} buffers")
        document: dict[str, Any] = _core.allocate(rows, args.capacity, args.seconds, args.heuristic_only)
    verdict = "fits" if document["feasible"] else "does not fit"
    text = f"{verdict}: peak {document['peak']} of {args.capacity} bytes, at least {document['lower_bound']} are needed"
    return Answer(document, text, DONE if document["feasible"] else CHECK_FAILED)


def _read(path: str) -> list[tuple[str, int, int, int]]:
    with open(path, encoding="utf-8", newline="") as file:
        table = [[cell.strip() for cell in row] for row in csv.reader(file) if any(cell.strip() for cell in row)]
    if not table or table[0][:4] != _COLUMNS:
        raise InvalidModel(
            f"'{path}' must begin with {','.join(_COLUMNS)}; got {','.join(table[0]) if table else 'nothing'}."
        )
    rows = []
    for number, row in enumerate(table[1:], 2):
        try:
            identifier, lower, upper, size = row[:4]
            rows.append((identifier, int(lower), int(upper), int(size)))
        except ValueError:
            raise InvalidModel(f"'{path}', line {number}: expected id,lower,upper,size; got {','.join(row)}.") from None
    return rows
