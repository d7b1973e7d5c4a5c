"""A Llama-like decoder layer in bf16, in hetnn beside eager torch; a process each, in turns.

    python benchmarks/narrow.py [--tokens 1,128] [--hidden 2048] [--past 128] [--threads 2] [--rounds 5]

One token, and many at once, behind `past` others: projections of heads of 128, attention, a gated layer of 5632. Errors
are against torch. Times as in side_by_side.py; `ratio` is torch over hetnn.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

from side_by_side import compare, work


def build(
    peer: str, tokens: int, hidden: int, past: int, threads: int
) -> tuple[Callable[[], Any], list[Any], list[Any]]:
    """A function that runs the step once, its result, and torch's."""
    import torch
    from torch import nn
    from torch.nn import functional

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    heads = hidden // 128

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v, self.o = (nn.Linear(hidden, hidden, bias=False) for _ in range(4))
            self.gate, self.up = (nn.Linear(hidden, 5632, bias=False) for _ in range(2))
            self.down = nn.Linear(5632, hidden, bias=False)
            self.first, self.second = nn.RMSNorm(hidden), nn.RMSNorm(hidden)

        def forward(self, x: Any, keys: Any, values: Any) -> Any:
            n = self.first(x)
            q, k, v = (f(n).view(1, tokens, heads, 128).transpose(1, 2) for f in (self.q, self.k, self.v))
            keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
            y = functional.scaled_dot_product_attention(q, keys, values)
            x = x + self.o(y.transpose(1, 2).reshape(1, tokens, hidden))
            n = self.second(x)
            return x + self.down(functional.silu(self.gate(n)) * self.up(n))

    layer = Layer().to(torch.bfloat16).eval()
    shapes = ((1, tokens, hidden), (1, heads, past, 128), (1, heads, past, 128))
    given = tuple(torch.randn(shape).to(torch.bfloat16) for shape in shapes)
    with torch.no_grad():
        wanted = [layer(*given).float().numpy()]
    if peer == "torch":

        def run() -> Any:
            with torch.no_grad():
                return layer(*given)

        return run, wanted, wanted
    import hetnn

    executable = hetnn.compile(torch.export.export(layer, given, strict=False), "cpu", threads=threads)
    return lambda: executable(*given), [torch.as_tensor(executable(*given)).float().numpy()], wanted


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", default="1,128")
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--past", type=int, default=128)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        work(*build(args.work, int(args.tokens), args.hidden, args.past, args.threads))
        return 0
    common = ["--hidden", str(args.hidden), "--past", str(args.past), "--threads", str(args.threads)]
    for tokens in args.tokens.split(","):
        commands = {peer: [__file__, "--work", peer, "--tokens", tokens, *common] for peer in ("hetnn", "torch")}
        row = compare("decoder", commands, args.threads, args.rounds)
        times = "  ".join(f"{peer} {time / 1e3:.3f} ms" for peer, time in row["us"].items())
        print(f"{tokens:>5} tokens  {times}  ratio {row['ratio']:.2f}  error {row['error']['hetnn']:.1e}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
