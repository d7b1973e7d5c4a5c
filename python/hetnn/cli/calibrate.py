"""`hetnn calibrate`: measures this machine, or the ways to devices elsewhere, so that plans predict their times."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from hetnn.calibration import calibrate
from hetnn.cli.answer import Answer, BadUse
from hetnn.cli.model import parse_pairs
from hetnn.cli.progress import Progress
from hetnn.machine import write_whole
from hetnn.progress import Telling, counted
from hetnn.report.text import table
from hetnn.target import resolve_target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the file goes, and the threads to measure with."""
    parser.add_argument("-o", "--output", metavar="FILE", help="the file to write (default: in the user's cache)")
    parser.add_argument("--threads", type=int, metavar="N", help="CPU threads of a run (default: all)")
    parser.add_argument(
        "--device",
        action="append",
        metavar="NAME=HOST:PORT",
        help="measure the way to this device behind a device server, and write a target with it to --output",
    )
    parser.add_argument("--token-file", metavar="F", help="of the device servers' token")


def run(args: argparse.Namespace) -> Answer:
    """Measures this machine's kernels: `output`, the file's path, and its keys (`cpu`, `threads`, `macs_per_us`, ...).

    With devices elsewhere the ways to them: `output`, and the target in it (`name`, `devices`, `links`).
    """
    if args.device:
        return _measure_links(args)
    with Progress("calibrate", args.quiet) as progress, counted(progress, "measure the kernels"):
        path = calibrate(args.output, args.threads)
    sheet = json.loads(path.read_text(encoding="utf-8"))
    figures = {"multiply-adds": sheet.get("macs_per_us"), **sheet["bytes_per_us"]}
    rows = [
        [name, *(f"{figure[cores]:,.0f}" for cores in ("one", "all"))] for name, figure in figures.items() if figure
    ]
    text = f"{sheet['cpu']}, {sheet['threads']} threads: {path}\n{table(['in a us', 'one core', 'all'], rows)}"
    return Answer({"output": str(path), **sheet}, text)


def _measure_links(args: argparse.Namespace) -> Answer:
    if args.token_file is None or args.output is None:
        raise BadUse("--device needs --token-file, the file of the device servers' token, and --output, for the target")
    from hetnn.remote.client import measure_link

    places = parse_pairs("--device", args.device)
    target = resolve_target("+".join(["cpu", *places]))
    general = target["devices"][0]["name"]
    links: list[dict[str, Any]] = []
    with Progress("calibrate", args.quiet) as progress:
        telling = Telling(progress)
        for k, (device, at) in enumerate(places.items()):
            telling(f"measure the way to {at}", k / len(places))
            place = {"at": str(at), "token_file": os.path.abspath(args.token_file)}
            ways = measure_link(device, place)
            next(row for row in target["devices"] if row["name"] == device).update(place)
            links.append({"from": general, "to": device, **ways["to"]})
            links.append({"from": device, "to": general, **ways["from"]})
    target["links"] = links
    write_whole(Path(args.output), json.dumps(target, indent=1) + "\n")
    rows = [[row["from"], row["to"], f"{row['latency_us']:,.0f}", f"{row['bytes_per_us']:,.0f}"] for row in links]
    text = f"{target['name']}: {args.output}\n{table(['from', 'to', 'us', 'bytes in a us'], rows)}"
    return Answer({"output": args.output, **target}, text)
