"""Convolutions of values that are not finite beside the same of finite ones.

    python benchmarks/not_finite.py [--threads 2] [--repeat 180]

A row a layer: microseconds of finite values, and how many times that it takes where every 997th element is infinite,
one channel is, all are, and none is a number. The least of so many runs, in turns.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch

import hetnn

# Channels, side of the image, window.
LAYERS = [
    (16, 56, (3, 3)),
    (32, 30, (3, 3)),
    (64, 56, (3, 3)),
    (64, 112, (3, 3)),
    (128, 28, (3, 3)),
    (256, 14, (3, 3)),
    (512, 7, (3, 3)),
    (192, 17, (1, 3)),
    (192, 17, (3, 1)),
]


def inputs_of(channels: int, side: int) -> dict[str, torch.Tensor]:
    finite = torch.randn(1, channels, side, side)
    few, one = finite.clone(), finite.clone()
    few.view(-1)[::997] = float("-inf")
    one[:, channels // 2] = float("inf")
    return {
        "finite": finite,
        "few": few,
        "channel": one,
        "infinite": torch.full_like(finite, float("inf")),
        "nan": torch.full_like(finite, float("nan")),
    }


def least_us(executable: Any, x: torch.Tensor, repeat: int) -> float:
    best = float("inf")
    for _ in range(repeat):
        begin = time.perf_counter()
        executable(x)
        best = min(best, time.perf_counter() - begin)
    return best * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=180)
    args = parser.parse_args()
    for channels, side, window in LAYERS:
        torch.manual_seed(0)
        padding = (window[0] // 2, window[1] // 2)
        layer = torch.nn.Conv2d(channels, channels, window, padding=padding).eval()
        inputs = inputs_of(channels, side)
        executable = hetnn.compile(torch.export.export(layer, (inputs["finite"],)), "cpu", threads=args.threads)
        best = dict.fromkeys(inputs, float("inf"))
        for _ in range(3):
            for name, x in inputs.items():
                best[name] = min(best[name], least_us(executable, x, args.repeat // 3))
        ratios = "  ".join(f"{name} {us / best['finite']:.2f}" for name, us in best.items() if name != "finite")
        print(f"{channels:3}x{side}x{side} by {window[0]}x{window[1]}: {best['finite']:7.1f} us  {ratios}", flush=True)


if __name__ == "__main__":
    main()
