"""`hetnn allocate`: offsets for buffers with lifetimes, within a capacity."""

from __future__ import annotations

import argparse
import csv
import io
from typing import Any

from hetnn import _core
from hetnn.cli.answer import CHECK_FAILED, DONE, Answer, BadUse
from hetnn.cli.progress import Progress
from hetnn.errors import InvalidModel
from hetnn.files import read_text

_COLUMNS = ["id", "lower", "upper", "size"]
_MOST = 2**62  # of a moment, a size or the capacity


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The CSV file of buffers, the memory's size in bytes, and how long and by what to search."""
    parser.add_argument("file", metavar="FILE.csv", help="buffers: id,lower,upper,size with half-open lifetimes")
    parser.add_argument("--capacity", type=int, required=True, metavar="BYTES", help="bytes of the memory")
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit of the search")
    parser.add_argument("--heuristic-only", action="store_true", help="no exact search")


def run(args: argparse.Namespace) -> Answer:
    """Places the buffers: `feasible`, `peak` and `lower_bound` in bytes, `offsets` by id, `seconds`.

    Exit code 1 where they do not fit; InvalidModel names the line of a fault.
    """
    if not 0 <= args.capacity <= _MOST:
        raise BadUse(f"--capacity takes a number of bytes from 0 to 2^62; got {args.capacity}")
    if not args.seconds >= 0:
        raise BadUse(f"--seconds takes a number of at least 0; got {args.seconds}")
    with Progress("allocate", args.quiet) as progress:
        rows = _read(args.file)
        progress(f"{len(rows)} buffers")
        document: dict[str, Any] = _core.allocate(rows, args.capacity, args.seconds, args.heuristic_only)
    verdict = "fits" if document["feasible"] else "does not fit"
    text = f"{verdict}: peak {document['peak']} of {args.capacity} bytes, at least {document['lower_bound']} are needed"
    return Answer(document, text, DONE if document["feasible"] else CHECK_FAILED)


def _read(path: str) -> list[tuple[str, int, int, int]]:
    """The buffers of a CSV file. InvalidModel naming the line, also for an id that stands twice."""
    lines = csv.reader(io.StringIO(read_text(path), newline=""))
    rows: dict[str, tuple[str, int, int, int]] = {}
    header: list[str] | None = None
    try:
        for cells in lines:
            row = [cell.strip() for cell in cells]
            if not any(row):
                continue
            if header is None:
                header = row
                if row[:4] != _COLUMNS:
                    break
                continue
            buffer = _buffer(row, f"'{path}', line {lines.line_num}")
            if buffer[0] in rows:
                raise InvalidModel(f"'{path}', line {lines.line_num}: the id '{buffer[0]}' is used twice; ids differ.")
            rows[buffer[0]] = buffer
    except csv.Error as error:
        raise InvalidModel(f"'{path}', line {lines.line_num}: no CSV: {error}.") from error
    if header is None or header[:4] != _COLUMNS:
        found = ",".join(header or [])[:60] or "nothing"
        raise InvalidModel(f"'{path}' must begin with {','.join(_COLUMNS)}; got {found}.")
    return list(rows.values())


def _buffer(row: list[str], where: str) -> tuple[str, int, int, int]:
    try:
        identifier, *texts = row[:4]
        lower, upper, size = (int(text) for text in texts)
    except ValueError:
        raise InvalidModel(f"{where}: expected id,lower,upper,size; got {','.join(row)[:60]}.") from None
    if any(abs(number) > _MOST for number in (lower, upper, size)):
        raise InvalidModel(f"{where}: expected numbers of at most 2^62; got {','.join(row)[:60]}.")
    return identifier, lower, upper, size
