"""Single operators in hetnn beside eager torch: microseconds of both, in turns in one process, and their ratio.

    python benchmarks/operators.py [--threads 1] [--only fft,sort] [--rounds 5]

`ratio` is torch over hetnn: above 1, hetnn is the faster one. Inputs are arrays that lie ready, outputs are new ones.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "benchmarks")]

import torch  # noqa: E402
from timing import least_us  # noqa: E402
from torch import nn, randn  # noqa: E402
from torch.nn import functional  # noqa: E402

import hetnn  # noqa: E402
from functions import Function  # noqa: E402

Case = tuple[Callable[..., Any], tuple[torch.Tensor, ...]]

SQUARE = (256, 1024)


def _places(most: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, most, shape)


class Outputs(nn.Module):
    """The outputs of a recurrent layer without its last state."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> Any:
        return self.layer(x)[0]


CASES: dict[str, Callable[[], Case]] = {
    "cumsum, last axis": lambda: (lambda x: x.cumsum(-1), (randn(SQUARE),)),
    "cumsum, first axis": lambda: (lambda x: x.cumsum(0), (randn(SQUARE),)),
    "cumprod, last axis": lambda: (lambda x: x.cumprod(-1), (randn(SQUARE),)),
    "conv1d": lambda: (nn.Conv1d(64, 64, 3, padding=1), (randn(8, 64, 400),)),
    "conv1d, dilated": lambda: (nn.Conv1d(64, 64, 3, padding=4, dilation=4), (randn(8, 64, 400),)),
    "conv3d": lambda: (nn.Conv3d(16, 32, 3, padding=1), (randn(1, 16, 16, 28, 28),)),
    "resize, nearest": lambda: (lambda x: functional.interpolate(x, scale_factor=2), (randn(1, 32, 64, 64),)),
    "resize, bilinear": lambda: (
        lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"),
        (randn(1, 32, 64, 64),),
    ),
    "resize, bicubic": lambda: (
        lambda x: functional.interpolate(x, scale_factor=2, mode="bicubic"),
        (randn(1, 32, 64, 64),),
    ),
    "group norm": lambda: (nn.GroupNorm(8, 64), (randn(4, 64, 56, 56),)),
    "sort, last axis": lambda: (lambda x: x.sort(-1), (randn(SQUARE),)),
    "sort, first axis": lambda: (lambda x: x.sort(0), (randn(SQUARE),)),
    "topk, 10 of 1024": lambda: (lambda x: x.topk(10), (randn(SQUARE),)),
    "topk, 5 of 100,000": lambda: (lambda x: x.topk(5), (randn(100_000),)),
    "gather": lambda: (lambda x, i: x.gather(1, i), (randn(SQUARE), _places(1024, 256, 512))),
    "scatter": lambda: (
        lambda x, i, s: x.scatter(1, i, s),
        (randn(SQUARE), _places(1024, 256, 512), randn(256, 512)),
    ),
    "scatter_add": lambda: (
        lambda x, i, s: x.scatter_add(1, i, s),
        (randn(SQUARE), _places(1024, 256, 512), randn(256, 512)),
    ),
    "index_add, rows": lambda: (
        lambda x, i, s: x.index_add(0, i, s),
        (randn(1024, 256), _places(1024, 512), randn(512, 256)),
    ),
    "index_put, rows": lambda: (
        lambda x, i, s: x.index_put((i,), s),
        (randn(1024, 256), _places(1024, 512), randn(512, 256)),
    ),
    "index_put, rows added": lambda: (
        lambda x, i, s: x.index_put((i,), s, accumulate=True),
        (randn(1024, 256), _places(1024, 512), randn(512, 256)),
    ),
    "index_put, points": lambda: (
        lambda x, i, j, s: x.index_put((i, j), s),
        (randn(1024, 256), _places(1024, 5120), _places(256, 5120), randn(5120)),
    ),
    "LSTM, batch 8": lambda: (Outputs(nn.LSTM(128, 128, batch_first=True)), (randn(8, 50, 128),)),
    "LSTM, batch 1": lambda: (Outputs(nn.LSTM(128, 128, batch_first=True)), (randn(1, 50, 128),)),
    "GRU, batch 8": lambda: (Outputs(nn.GRU(128, 128, batch_first=True)), (randn(8, 50, 128),)),
    "GRU, batch 1": lambda: (Outputs(nn.GRU(128, 128, batch_first=True)), (randn(1, 50, 128),)),
    "FFT, 64 of 1024": lambda: (_fft(torch.fft.fft), (randn(64, 1024, 2),)),
    "FFT, 16 of 64 x 64": lambda: (_fft(torch.fft.fft2), (randn(16, 64, 64, 2),)),
    "FFT, real, 64 of 1024": lambda: (lambda x: torch.view_as_real(torch.fft.rfft(x)), (randn(64, 1024),)),
    "FFT, real, 64 of 1000": lambda: (lambda x: torch.view_as_real(torch.fft.rfft(x)), (randn(64, 1000),)),
    "FFT, back to 64 of 1024": lambda: (_fft(torch.fft.irfft, to_reals=True), (randn(64, 513, 2),)),
    "STFT of a second": lambda: (
        lambda x: torch.view_as_real(torch.stft(x, 400, 160, window=torch.hann_window(400), return_complex=True)),
        (randn(1, 16000),),
    ),
}


def _fft(transform: Callable[..., torch.Tensor], to_reals: bool = False) -> Callable[..., torch.Tensor]:
    def run(x: torch.Tensor) -> torch.Tensor:
        out = transform(torch.view_as_complex(x))
        return out if to_reals else torch.view_as_real(out)

    return run


def measure(name: str, threads: int, rounds: int) -> tuple[float, float]:
    """Microseconds of hetnn and of torch."""
    torch.manual_seed(0)
    function, inputs = CASES[name]()
    module = function if isinstance(function, nn.Module) else Function(function)
    executable = hetnn.compile(module.eval(), args=inputs, threads=threads)
    arrays = [x.numpy() for x in inputs]

    def eager() -> Any:
        with torch.inference_mode():
            return module(*inputs)

    took = least_us({"hetnn": lambda: executable.run(arrays), "torch": eager}, rounds, block_s=0.1)
    return took["hetnn"], took["torch"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="names, or parts of them, separated by commas")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(args.threads)
    parts = args.only.lower().split(",")
    names = [name for name in CASES if any(part in name.lower() for part in parts)]
    logs = []
    print(f"| {args.threads} threads | hetnn us | torch us | ratio |\n|---|---|---|---|")
    for name in names:
        ours, theirs = measure(name, args.threads, args.rounds)
        logs.append(math.log(theirs / ours))
        print(f"| {name} | {ours:.0f} | {theirs:.0f} | {theirs / ours:.2f} |", flush=True)
    below = sum(log < 0 for log in logs)
    print(f"\ngeometric mean {math.exp(sum(logs) / len(logs)):.2f}; {below} of {len(logs)} below 1")


if __name__ == "__main__":
    main()
