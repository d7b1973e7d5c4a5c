"""Sums of many inputs: one n-ary layer against pairs, numpy, torch, torch.compile and numexpr, and against memory.

    python benchmarks/nary.py [--inputs 3,4,8,16,64] [--kib 16,256,1024,4096,16384,65536] [--threads 2] [--rounds 5]
                              [--fan-ins] [--narrow] [--json FILE]

A size is that of one input. Below 1 MiB a call computes several such layers on operands of their own, as a network
would, so that the costs of a call from Python are shared; times are of one layer. All write into memory that is given,
but for torch.compile, which makes its output anew and is compared with hetnn doing so too (`alloc`). In every round
each peer has a block of time in turn, whose least counts. `x` is a peer's time over hetnn's in the same round, the
median over rounds: what a machine that others use does to one round it does to both. Above 1 hetnn is ahead.

`limit` is what reading all inputs and writing the output once takes at the speeds of memory measured in the same round
(a sum over, and a fill of, 256 MiB on all threads); `of limit` is hetnn's time over it, the median again, for layers of
twice the last cache and more.

--fan-ins: the fan-in that hetnn measured for each layer, the fastest fixed one, and the ratio of their times; half of
the rounds say which is the fastest, in the other half both are compared round by round.

--narrow: sums of f16, bf16 and i8 instead, one at a time, beside themselves without fusion and eager torch, which all
give the same bits.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from timing import Run, rounds_us

import hetnn

MIB = 1 << 20
KEYWORDS: dict[str, Any] = {"strict": False}


class Sums(torch.nn.Module):
    """Several sums of `count` inputs each."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, *xs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out = []
        for start in range(0, len(xs), self.count):
            total = xs[start]
            for x in xs[start + 1 : start + self.count]:
                total = total + x
            out.append(total)
        return tuple(out)


class Layer:
    """The operands of one row of the table, and each peer as a function."""

    def __init__(self, count: int, kib: int, threads: int) -> None:
        self.count, self.kib, self.threads = count, kib, threads
        self.elems = kib * 256
        self.repeats = max(1, min(16, MIB // (kib * 1024), 128 // count))
        self.inputs = [torch.randn(self.elems) for _ in range(count * self.repeats)]
        self.arrays = [x.numpy() for x in self.inputs]
        self.sums = [np.empty(self.elems, np.float32) for _ in range(self.repeats)]
        self.tensors = [torch.from_numpy(x) for x in self.sums]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.program = torch.export.export(Sums(count), tuple(self.inputs), **KEYWORDS)

    @property
    def bytes(self) -> int:
        return (self.count + 1) * self.elems * 4

    def hetnn(self, **options: Any) -> hetnn.Executable:
        return hetnn.compile(self.program, "cpu", threads=self.threads, **options)

    def peers(self) -> dict[str, Run]:
        fused, pairs = self.hetnn(), self.hetnn(fusion="off")
        kinds = {row["kernel"] for row in fused.profile(*self.arrays)}
        if kinds != {"nary"}:
            raise RuntimeError(f"the sums became {kinds}, not one n-ary layer each")
        peers: dict[str, Run] = {
            "hetnn": lambda: fused.run(self.arrays, self.sums),
            "pairs": lambda: pairs.run(self.arrays, self.sums),
            "alloc": lambda: fused(*self.arrays),
            "numpy": self.numpy,
            "torch": self.torch,
        }
        torch.compiler.reset()
        compiled = torch.compile(Sums(self.count), dynamic=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled(*self.inputs)
        peers["torch.compile"] = lambda: compiled(*self.inputs)
        if importlib.util.find_spec("numexpr"):
            peers["numexpr"] = self.numexpr
        return peers

    def numpy(self) -> None:
        for k, out in enumerate(self.sums):
            first, second, *rest = self.arrays[k * self.count : (k + 1) * self.count]
            np.add(first, second, out=out)
            for x in rest:
                np.add(out, x, out=out)

    def torch(self) -> None:
        for k, out in enumerate(self.tensors):
            first, second, *rest = self.inputs[k * self.count : (k + 1) * self.count]
            torch.add(first, second, out=out)
            for x in rest:
                torch.add(out, x, out=out)

    def numexpr(self) -> None:
        import numexpr

        # It takes no more than about thirty operands at once.
        for k, out in enumerate(self.sums):
            operands = self.arrays[k * self.count : (k + 1) * self.count]
            done = 0
            while done < self.count:
                part = operands[done : done + 24]
                names = {f"x{i}": x for i, x in enumerate(part)}
                if done:
                    names["so_far"] = out
                numexpr.evaluate(" + ".join(names), local_dict=names, out=out)
                done += len(part)

    def check(self, run: Run) -> None:
        for out in self.sums:
            out.fill(np.nan)
        run()
        for k, out in enumerate(self.sums):
            want = np.sum(self.arrays[k * self.count : (k + 1) * self.count], axis=0, dtype=np.float64)
            if not np.abs(out - want).max() <= 1e-5 * np.abs(want).max():
                raise RuntimeError("a sum is wrong")


def last_cache_bytes() -> int:
    try:
        return max(32 * MIB, os.sysconf("SC_LEVEL3_CACHE_SIZE"))
    except (ValueError, OSError):
        return 32 * MIB


def compare(layer: Layer, rounds: int) -> dict[str, Any]:
    peers = layer.peers()
    layer.check(peers["hetnn"])
    names = list(peers)
    size = layer.elems * 4
    memory_bound = layer.bytes >= 2 * last_cache_bytes()
    if memory_bound:
        big = torch.ones(64 * MIB)
        peers |= {"read": big.sum, "write": lambda: big.fill_(1.0)}
    took = {name: [us / layer.repeats for us in each] for name, each in rounds_us(peers, rounds).items()}
    row: dict[str, Any] = {"inputs": layer.count, "kib": layer.kib}
    row["us"] = {name: statistics.median(took[name]) for name in names}
    row["ratio"] = {
        name: median_ratio(took[name], took["alloc" if name == "torch.compile" else "hetnn"])
        for name in names
        if name not in ("hetnn", "alloc")
    }
    if memory_bound:
        share = size / big.nbytes
        limits = [share * (layer.count * read + write) for read, write in zip(took["read"], took["write"], strict=True)]
        row["limit_us"] = statistics.median(limits)
        row["of_limit"] = median_ratio(took["hetnn"], limits)
    return row


def median_ratio(over: list[float], under: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


def compare_fan_ins(layer: Layer, rounds: int, folder: Path) -> dict[str, Any]:
    """The measured fan-in's time over that of every fixed one."""
    tuned_file = folder / "tuned.json"
    tuned_file.unlink(missing_ok=True)
    os.environ["HETNN_TUNING"] = str(tuned_file)
    begin = time.perf_counter()
    layer.hetnn()
    measured: dict[str, int] = json.loads(tuned_file.read_text())
    name = f"add {layer.count} x 2^{(layer.elems - 1).bit_length()} by {min(layer.threads, 4)}"
    fan_in = measured[name]
    runs: dict[str, Run] = {}
    for fixed in range(2, min(16, max(3, layer.count)) + 1):
        file = folder / f"{fixed}.json"
        file.write_text(json.dumps({name: fixed}))
        os.environ["HETNN_TUNING"] = str(file)
        executable = layer.hetnn()
        runs[str(fixed)] = lambda e=executable: e.run(layer.arrays, layer.sums)  # type: ignore[misc]
    took = rounds_us(runs, 2 * rounds, 0.02)
    # Of many equals one is the fastest by luck: half of the rounds say which, the other half how fast it is.
    found = {key: statistics.median(us[::2]) for key, us in took.items()}
    fastest = min(found, key=lambda key: found[key])
    return {
        "inputs": layer.count,
        "kib": layer.kib,
        "fan_in": fan_in,
        "fastest": int(fastest),
        "ratio": median_ratio(took[str(fan_in)][1::2], took[fastest][1::2]),
        "us": {key: statistics.median(us) / layer.repeats for key, us in took.items()},
        "compile_s": time.perf_counter() - begin,
    }


def compare_narrow(count: int, kib: int, threads: int, dtype: torch.dtype, rounds: int) -> dict[str, Any]:
    elems = kib * 1024 // dtype.itemsize
    module = Sums(count)
    inputs = [torch.randint(-9, 9, (elems,)).to(dtype) / (1 if dtype == torch.int8 else 7) for _ in range(count)]
    inputs = [x.to(dtype) for x in inputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(module, tuple(inputs), **KEYWORDS)
    made = {fusion: hetnn.compile(program, "cpu", threads=threads, fusion=fusion) for fusion in ("on", "off")}
    for executable in made.values():
        if not torch.equal(executable(*inputs)[0], module(*inputs)[0]):
            raise RuntimeError(f"the sum of {count} {dtype} differs from torch's")

    def eager() -> None:
        with torch.inference_mode():
            module(*inputs)

    runs = {"hetnn": lambda: made["on"](*inputs), "pairs": lambda: made["off"](*inputs), "torch": eager}
    took = rounds_us(runs, rounds)
    return {
        "inputs": count,
        "kib": kib,
        "dtype": str(dtype).removeprefix("torch."),
        "us": {name: statistics.median(us) for name, us in took.items()},
        "ratio": {name: median_ratio(us, took["hetnn"]) for name, us in took.items() if name != "hetnn"},
    }


def integers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=integers, default=[3, 4, 8, 16, 64])
    parser.add_argument("--kib", type=integers, default=[16, 256, 1024, 4096, 16384, 65536])
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fan-ins", action="store_true")
    parser.add_argument("--narrow", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    os.environ["NUMEXPR_MAX_THREADS"] = str(args.threads)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HETNN_TUNING"] = str(Path(folder) / "shared.json")
        for kib in args.kib:
            for count in args.inputs:
                for dtype in (torch.float16, torch.bfloat16, torch.int8) if args.narrow else ():
                    row = compare_narrow(count, kib, args.threads, dtype, args.rounds)
                    ratios = "  ".join(f"{name} x{ratio:.2f}" for name, ratio in row["ratio"].items())
                    print(
                        f"{kib:6} KiB x {count:2} {row['dtype']:8}: {row['us']['hetnn']:9.1f} us  {ratios}", flush=True
                    )
                    rows.append(row)
                if args.narrow:
                    continue
                layer = Layer(count, kib, args.threads)
                if args.fan_ins:
                    row = compare_fan_ins(layer, args.rounds, Path(folder))
                    print(
                        f"{kib:6} KiB x {count:2}: measured fan-in {row['fan_in']:2}, fastest {row['fastest']:2}, "
                        f"time over the fastest's {row['ratio']:.3f}",
                        flush=True,
                    )
                else:
                    row = compare(layer, args.rounds)
                    ratios = "  ".join(f"{name} x{ratio:.2f}" for name, ratio in row["ratio"].items())
                    limit = f"  of limit {row['of_limit']:.2f}" if "of_limit" in row else ""
                    print(f"{kib:6} KiB x {count:2}: {row['us']['hetnn']:9.1f} us  {ratios}{limit}", flush=True)
                rows.append(row)
    if args.fan_ins:
        worst = max(rows, key=lambda row: row["ratio"])
        print(f"worst: {worst['ratio']:.3f} at {worst['kib']} KiB x {worst['inputs']}")
    else:
        behind = [row for row in rows if min(row["ratio"].values()) < 1]
        print(f"ahead of every peer in {len(rows) - len(behind)} of {len(rows)} rows")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
