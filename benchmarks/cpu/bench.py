"""Latency of networks on the CPU beside every peer; each in a process of its own, in turns, those that wait stopped.

    python benchmarks/cpu/bench.py prepare FOLDER [--nets a,b]
    python benchmarks/cpu/bench.py lower FOLDER [--nets a,b]        by an interpreter that has ExecuTorch
    python benchmarks/cpu/bench.py run FOLDER [--nets a,b] [--peers a,b] [--threads 2] [--rounds 5]
                                              [--processes 3] [--beside SITE] [--json FILE] [--history FILE]
    python benchmarks/cpu/bench.py kernels FOLDER [--nets a,b] [--threads 2] [--most 5]

`ratio` is the best peer over hetnn, of peers whose answer is within 1e-4 of torch's as a share of its largest element
("!" marks the others); hetnn's own answer is judged on a second input too, and a network that it does not run or
answers wrong has the ratio 0. Where its memory comes to lie makes one process of an engine up to 30 % slower than the
next, for as long as it lives: a time is the median over the rounds of several, one set of processes after another, of
which the later ones leave out what the first found to be far behind. `onnx` is hetnn's time from torch.export over
its time from ONNX. Runs of one program drift by some 7 %, so two trees of hetnn are compared in turns: `--beside`
names the folder where the other one is installed, and `gain` is its time over this one's. XNNPACK runs in the
interpreter that BENCH_PYTHON_XNNPACK names.

`kernels` names hetnn's kernels of a network that lose most time to their ceiling: the best product's multiplications,
or memory's bytes for what does not fit the third-level cache; with what each reaches.

`--history` appends what was measured, with the machine's peaks, and prints what changed since the last line of that
machine. Exit 1 where the mean of the main networks' ratios is below 1.3 or any of them below 1.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import networks
import peers
from side_by_side import Peer, blocks, serve

TOLERANCE = 1e-4
LEAST_MEAN, LEAST = 1.3, 1.0
_CHANGED = 0.05  # less is drift
_CACHE_BYTES = 16e6
_FAR_BEHIND = 1.5  # times the fastest: what such an engine takes decides nothing


def error_of(answer: peers.Arrays, path: Path) -> float:
    """The largest difference as a share of the largest element, over all outputs; infinite for other shapes and NaN."""
    import numpy as np

    worst = 0.0
    for got, want in zip(map(np.asarray, answer), peers.arrays_of(path), strict=True):
        if got.size != want.size:
            return math.inf
        error = float(np.abs(got.reshape(want.shape) - want).max() / max(1e-30, float(np.abs(want).max())))
        worst = max(worst, error if error == error else math.inf)
    return worst


def work(engine: str, folder: Path, threads: int) -> None:
    load = peers.ENGINES[engine]
    error = 0.0
    if engine.startswith("hetnn"):
        second = load(folder, peers.arrays_of(folder / "inputs2.npz"), threads)
        error = error_of(second(), folder / "outputs2.npz")
    run = load(folder, peers.arrays_of(folder / "inputs.npz"), threads)
    serve(run, max(error, error_of(run(), folder / "outputs.npz")))


def peaks(threads: int) -> dict[str, float]:
    """What this machine reaches: products of f32 by the better of torch and hetnn, and reading memory."""
    import numpy as np
    import torch

    import hetnn

    torch.set_num_threads(threads)
    a, b = torch.randn(1536, 1536), torch.randn(1536, 1536)
    product = torch.export.export(torch.nn.Linear(1536, 1536, bias=False), (a,))
    ours = hetnn.compile(product, "cpu", threads=threads)
    block = np.ones(1 << 25, np.float32)

    def least_s(run: Any) -> float:
        best = math.inf
        for _ in range(10):
            begin = time.perf_counter()
            run()
            best = min(best, time.perf_counter() - begin)
        return best

    image = a.numpy()
    products = (lambda: a @ b, lambda: ours(image))  # numpy's take every core, whatever is asked
    return {
        "gflops": 2 * 1536**3 / min(map(least_s, products)) / 1e9,
        "read_gbs": block.nbytes / least_s(block.max) / 1e9,
    }


def machine(threads: int) -> dict[str, Any]:
    flags: list[str] = []
    model = platform.processor()
    if (info := Path("/proc/cpuinfo")).exists():
        fields = dict(
            (part.strip() for part in line.split(":", 1)) for line in info.read_text().splitlines() if ":" in line
        )
        model = f"{fields.get('model name', model)}, family {fields.get('cpu family')} model {fields.get('model')}"
        flags = [
            name for name in ("avx2", "avx512f", "avx512_vnni", "amx_tile") if name in fields.get("flags", "").split()
        ]
    return {"model": model, "flags": flags, "threads": threads, **peaks(threads)}


def started(commands: dict[str, list[str]], threads: int) -> dict[str, Peer]:
    """A process of each engine that runs the network."""
    engines: dict[str, Peer] = {}
    for engine, command in commands.items():
        with contextlib.suppress(RuntimeError):
            engines[engine] = Peer(command, threads)
    return engines


def row_of(name: str, commands: dict[str, list[str]], threads: int, rounds: int, processes: int) -> dict[str, Any]:
    us_of_blocks: dict[str, list[float]] = {}
    error: dict[str, float] = {}
    for _ in range(processes):
        engines = started(commands, threads)
        for engine, block_us in blocks(engines, rounds).items():
            us_of_blocks.setdefault(engine, []).extend(block_us)
            error[engine] = max(error.get(engine, 0.0), engines[engine].error)
        error.update({engine: math.inf for engine in commands if engine in error and engine not in engines})
        us = {engine: statistics.median(block_us) for engine, block_us in us_of_blocks.items()}
        near = _FAR_BEHIND * min(us.values(), default=math.inf)
        commands = {key: value for key, value in commands.items() if us.get(key, math.inf) <= near}
    row: dict[str, Any] = {"net": name, "us": us, "error": error}
    right = {key for key in us if row["error"][key] <= TOLERANCE}
    best = min((us[key] for key in right if not key.startswith(("hetnn", "beside"))), default=None)
    if best is not None:
        row["ratio"] = best / us["hetnn"] if "hetnn" in right else 0.0
    if {"hetnn", "hetnn-onnx"} <= right:
        row["onnx"] = us["hetnn"] / us["hetnn-onnx"]
    if "beside" in us and "hetnn" in us:
        row["gain"] = us["beside"] / us["hetnn"]
    return row


def text_of(row: dict[str, Any]) -> str:
    times = [
        f"{engine} {us / 1e3:.3f}{'' if row['error'][engine] <= TOLERANCE else '!'}" for engine, us in row["us"].items()
    ]
    figures = [f"{key} {row[key]:.2f}" for key in ("ratio", "onnx", "gain") if key in row]
    return f"{row['net']:18} " + "  ".join(times + figures)


def mean(values: list[float]) -> float:
    return math.exp(sum(math.log(max(value, 1e-6)) for value in values) / len(values))


def compare_with_history(rows: list[dict[str, Any]], about: dict[str, Any], path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    alike = [line for line in lines if all(line["machine"][key] == about[key] for key in ("model", "threads"))]
    before = {row["net"]: row["us"].get("hetnn") for row in alike[-1]["rows"]} if alike else {}
    for row in rows:
        now, then = row["us"].get("hetnn"), before.get(row["net"])
        if now and then and abs(now / then - 1) > _CHANGED:
            print(f"{row['net']:18} {then / 1e3:.3f} ms on {alike[-1]['date']}, now {now / 1e3:.3f}")
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"date": time.strftime("%Y-%m-%d %H:%M"), "machine": about, "rows": rows}) + "\n")


def run(args: argparse.Namespace) -> bool:
    about = machine(args.threads)
    print(
        ", ".join(
            f"{key} {value:.0f}" if isinstance(value, float) else f"{key} {value}" for key, value in about.items()
        )
    )
    rows = []
    for name in args.nets:
        commands = {}
        for engine in [*args.peers, *(["beside"] if args.beside else [])]:
            python = os.environ.get(f"BENCH_PYTHON_{engine.upper()}", sys.executable)
            site = [] if engine != "beside" else ["--site", str(args.beside)]
            command = [python, __file__, "work", str(args.folder / name), "--threads", str(args.threads)]
            commands[engine] = [*command, "--peers", "hetnn" if site else engine, *site]
        rows.append(row_of(name, commands, args.threads, args.rounds, args.processes))
        print(text_of(rows[-1]), flush=True)
    if args.json:
        run_of = {"date": time.strftime("%Y-%m-%d"), "machine": about, "rows": rows}
        args.json.write_text(json.dumps(run_of, indent=1) + "\n", encoding="utf-8")
    if args.history:
        compare_with_history(rows, about, args.history)
    ratios = {row["net"]: row.get("ratio", 0.0) for row in rows}
    for title, group in (("main", networks.MAIN), ("others", networks.OTHERS)):
        of_group = {name: ratio for name, ratio in ratios.items() if name in group}
        if of_group:
            lowest = min(of_group, key=lambda name: of_group[name])
            print(
                f"{title}: {len(of_group)} networks, mean ratio {mean(list(of_group.values())):.3f}, "
                f"lowest {of_group[lowest]:.3f} ({lowest})"
            )
    main_ratios = [ratio for name, ratio in ratios.items() if name in networks.MAIN]
    return not main_ratios or (mean(main_ratios) >= LEAST_MEAN and min(main_ratios) >= LEAST)


def kernels(args: argparse.Namespace) -> None:
    import hetnn

    about = machine(args.threads)
    print(f"best product {about['gflops']:.0f} GF/s, memory {about['read_gbs']:.0f} GB/s")
    for name in args.nets:
        folder = args.folder / name
        executable = hetnn.compile(folder / "model.pt2", "cpu", threads=args.threads)
        inputs = peers.arrays_of(folder / "inputs.npz")
        best = executable.profile(*inputs)
        for _ in range(20):
            again = executable.profile(*inputs)
            best = [min(pair, key=lambda row: row["wall_us"]) for pair in zip(best, again, strict=True)]
        total = sum(row["wall_us"] for row in best)
        lost = {k: row["wall_us"] - ceiling_us(row, about) for k, row in enumerate(best)}
        print(f"{name}: {total / 1e3:.3f} ms, {sum(lost.values()) / total:.0%} of it above the ceilings")
        for k in sorted(lost, key=lambda k: -lost[k])[: args.most]:
            row = best[k]
            waits = row["wall_us"] - sum(row["thread_us"]) / len(row["thread_us"])
            print(
                f"    {row['node']:28} {row['kernel']:22} {row['wall_us']:9.1f} us  {row['gflops']:6.1f} GF/s "
                f"{row['gflops'] / about['gflops']:4.0%}  {row['gbytes_s']:6.1f} GB/s  loses {lost[k]:8.1f} us, "
                f"waits {waits:6.1f}",
                flush=True,
            )


def ceiling_us(row: dict[str, Any], about: dict[str, Any]) -> float:
    """No kernel that multiplies as often and reads as much takes less."""
    multiplied = 2 * row["macs"] / about["gflops"] / 1e3
    moved = row["bytes"] / about["read_gbs"] / 1e3 if row["bytes"] > _CACHE_BYTES else 0.0
    return max(multiplied, moved)


def names(text: str) -> list[str]:
    return text.split(",")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["prepare", "lower", "run", "kernels", "work"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nets", type=names, default=list(networks.NETWORKS))
    parser.add_argument("--peers", type=names, default=list(peers.ENGINES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--most", type=int, default=5)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--beside", type=Path, metavar="SITE")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--history", type=Path, metavar="FILE")
    parser.add_argument("--site", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.site:
        sys.path.insert(0, args.site)
    if args.mode == "work":
        work(args.peers[0], args.folder, args.threads)
        return 0
    if args.mode == "run":
        return 0 if run(args) else 1
    if args.mode == "kernels":
        kernels(args)
        return 0
    for name in args.nets:
        begin = time.perf_counter()
        if args.mode == "prepare":
            peers.prepare(name, args.folder / name)
        else:
            try:
                peers.lower(args.folder / name)
            except Exception as error:  # what ExecuTorch refuses has no file, and no time in the table
                print(f"{name}: {str(error).strip().splitlines()[-1][:160]}", flush=True)
        print(f"{name}: {time.perf_counter() - begin:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
