"""Products and convolutions of networks by themselves beside torch's (MKL and oneDNN) as oracles, in turns.

    python benchmarks/cpu/products.py [--threads 1] [--rounds 7]

GF/s of both, hetnn's time from the compiled layer with its weights packed, torch's from its functions with weights as
they are (oneDNN packs them at every call of a convolution). The last column is hetnn's share of the best square product
that torch reaches here.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from timing import least_us

import hetnn

# Rows, summed, columns: of ViT, ConvNeXt, ResNet, MobileNet, MiniLM and a classifier's last layer.
PRODUCTS = [
    (197, 768, 3072),
    (197, 3072, 768),
    (3136, 96, 384),
    (3136, 64, 256),
    (49, 512, 2048),
    (12544, 16, 96),
    (128, 384, 1536),
    (16, 384, 384),
    (1, 2048, 1000),
]
# Channels in and out, size of the image, kernel, stride, groups.
CONVOLUTIONS = [
    (3, 64, 224, 7, 2, 1),
    (3, 32, 224, 3, 2, 1),
    (64, 64, 56, 3, 1, 1),
    (128, 128, 56, 3, 2, 1),
    (512, 512, 7, 3, 1, 1),
    (512, 512, 14, 3, 1, 1),
    (104, 104, 28, 3, 1, 13),
    (128, 128, 56, 3, 1, 32),
    (96, 96, 112, 3, 2, 96),
    (1152, 1152, 7, 5, 1, 1152),
    (96, 96, 56, 7, 1, 96),
]


def measured(layer: nn.Module, x: Tensor, macs: int, args: argparse.Namespace) -> tuple[float, float]:
    """GF/s of hetnn and of torch."""
    executable = hetnn.compile(torch.export.export(layer.eval(), (x,)), "cpu", threads=args.threads)
    array = x.numpy()

    def eager() -> None:
        with torch.no_grad():
            layer(x)

    runs: dict[str, Callable[[], object]] = {"hetnn": lambda: executable(array), "torch": eager}
    us = least_us(runs, args.rounds)
    return 2e-3 * macs / us["hetnn"], 2e-3 * macs / us["torch"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    a = torch.randn(1536, 1536)
    best = 2e-3 * 1536**3 / least_us({"best": lambda: a @ a}, args.rounds)["best"]
    print(f"best product {best:.0f} GF/s, {args.threads} threads")
    for rows, summed, columns in PRODUCTS:
        ours, theirs = measured(nn.Linear(summed, columns), torch.randn(rows, summed), rows * summed * columns, args)
        name = f"{rows} x {summed} x {columns}"
        print(
            f"{name:34} hetnn {ours:6.1f}  MKL {theirs:6.1f}  ratio {ours / theirs:5.2f}  {ours / best:4.0%}",
            flush=True,
        )
    for inputs, outputs, size, kernel, stride, groups in CONVOLUTIONS:
        layer = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups)
        side = (size - 1) // stride + 1
        macs = side * side * outputs * inputs // groups * kernel * kernel
        ours, theirs = measured(layer, torch.randn(1, inputs, size, size), macs, args)
        name = f"{inputs}->{outputs} at {size}, {kernel}x{kernel}/{stride}" + (
            f", {groups} groups" if groups > 1 else ""
        )
        print(
            f"{name:34} hetnn {ours:6.1f}  oneDNN {theirs:6.1f}  ratio {ours / theirs:5.2f}  {ours / best:4.0%}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
