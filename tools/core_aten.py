"""Tries every overload of core ATen alone, on every element type, against eager torch; writes docs/core-aten.md.

    python tools/core_aten.py [--names add.Tensor,sort.default] [--check]

With --check nothing is written, and the exit code is 1 where a result differs from torch's or an error has no kind.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

import hetnn

DTYPES = [
    *("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64", "bool"),
    *("complex64", "complex128"),
]
OUT = Path(__file__).parents[1] / "docs" / "core-aten.md"
# Whose values nothing fixes: shape and type alone are compared.
UNFIXED = ("rand", "randn", "randperm", "native_dropout", "empty", "empty_strided")


class Maker:
    """Tensors of one element type, the same every time."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self._generator = torch.Generator().manual_seed(0)

    def __call__(self, *shape: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        dtype = dtype or self.dtype
        values = torch.rand(shape, generator=self._generator)
        if dtype.is_complex:
            return torch.complex(values, torch.rand(shape, generator=self._generator)).to(dtype)
        if dtype.is_floating_point:
            return (values * 0.8 + 0.1).to(dtype)
        return (values > 0.5).to(dtype) if dtype == torch.bool else (values * 4 + 1).to(dtype)

    def index(self, *values: int) -> torch.Tensor:
        return torch.tensor(values)


Arguments = Callable[[Maker], tuple[Any, ...]]
Case = tuple[Arguments, dict[str, Any]]


def _cases() -> dict[str, Case]:
    """By name of the overload: its arguments, and those by keyword."""
    out: dict[str, Case] = {}

    def add(names: str, arguments: Arguments, **keywords: Any) -> None:
        for name in names.split():
            out[name if "." in name else f"{name}.default"] = (arguments, keywords)

    add(
        "abs acos acosh alias asin asinh atan atanh bitwise_not ceil clone cos cosh erf exp expm1 floor isinf isnan "
        "log log10 log1p log2 logical_not neg nonzero reciprocal relu round rsqrt sigmoid sign sin sinh sqrt tan tanh "
        "trunc elu gelu hardtanh leaky_relu any argmax argmin mean prod amax amin _to_copy sort "
        "sym_is_contiguous sym_numel sym_storage_offset",
        lambda t: (t(3, 4),),
    )
    binary = "add sub mul div eq ne lt le gt ge fmod remainder bitwise_and bitwise_or bitwise_xor"
    add(" ".join(f"{name}.Tensor" for name in binary.split()), lambda t: (t(3, 4), t(4)))
    add(" ".join(f"{name}.Scalar" for name in binary.split()), lambda t: (t(3, 4), 2))
    add("atan2 maximum minimum logical_and logical_or logical_xor pow.Tensor_Tensor", lambda t: (t(3, 4), t(3, 4)))
    add("atan2.out", lambda t: (t(3), t(3)), out="result")
    add("pow.Scalar", lambda t: (2, t(3, 4)))
    add("pow.Tensor_Scalar", lambda t: (t(3, 4), 2))
    add("div.Scalar_mode", lambda t: (t(3, 4), 2), rounding_mode="floor")
    add("div.Tensor_mode", lambda t: (t(3, 4), t(4)), rounding_mode="trunc")
    add("clamp", lambda t: (t(3, 4), 1, 2))
    add("clamp.Tensor", lambda t: (t(3, 4), t(4), t(3, 4)))
    add("copy", lambda t: (t(3, 4), t(4)))
    add("where.self", lambda t: (t(3, 4, dtype=torch.bool), t(3, 4), t(4)))
    add("_adaptive_avg_pool2d", lambda t: (t(1, 2, 6, 6), [3, 2]))
    add("_adaptive_avg_pool2d_backward", lambda t: (t(1, 2, 3, 2), t(1, 2, 6, 6)))
    add("_adaptive_avg_pool3d", lambda t: (t(1, 2, 4, 6, 6), [2, 3, 2]))
    add("adaptive_avg_pool1d", lambda t: (t(1, 2, 6), [3]))
    add("avg_pool1d", lambda t: (t(1, 2, 6), [2]))
    add("avg_pool2d max_pool2d_with_indices", lambda t: (t(1, 2, 6, 6), [2, 2]))
    add("avg_pool3d max_pool3d_with_indices", lambda t: (t(1, 2, 4, 6, 6), [2, 2, 2]))
    add("avg_pool2d_backward", lambda t: (t(1, 2, 3, 3), t(1, 2, 6, 6), [2, 2], [2, 2], [0, 0], False, True, None))
    add(
        "max_pool2d_with_indices_backward",
        lambda t: (
            t(1, 1, 1, 2), t(1, 1, 2, 4), [2, 2], [2, 2], [0, 0], [1, 1], False, torch.tensor([[[[0, 3]]]]),
        ),
    )  # fmt: skip
    add("_cdist_forward", lambda t: (t(3, 4), t(2, 4), 2.0, None))
    add("_pdist_forward", lambda t: (t(4, 3),))
    add("_embedding_bag", lambda t: (t(5, 3), t.index(0, 2, 4, 1), t.index(0, 2)))
    add("embedding", lambda t: (t(5, 3), t.index(0, 2, 4)))
    add("embedding_dense_backward", lambda t: (t(3, 4), t.index(0, 2, 2), 5, -1, False))
    add("_fft_r2c", lambda t: (t(3, 4), [1], 0, True))
    add("_fft_c2r", lambda t: (t(3, 3), [1], 2, 4))
    add("_local_scalar_dense", lambda t: (t(),))
    add("_log_softmax _softmax", lambda t: (t(3, 4), 1, False))
    add("_native_batch_norm_legit", lambda t: (t(2, 3, 4), t(3), t(3), t(3), t(3), False, 0.1, 1e-5))
    add("_native_batch_norm_legit.no_stats", lambda t: (t(2, 3, 4), t(3), t(3), True, 0.1, 1e-5))
    add("_native_batch_norm_legit_no_training", lambda t: (t(2, 3, 4), t(3), t(3), t(3), t(3), 0.1, 1e-5))
    add("native_group_norm", lambda t: (t(2, 4, 3), t(4), t(4), 2, 4, 3, 2, 1e-5))
    add("native_layer_norm", lambda t: (t(3, 4), [4], t(4), t(4), 1e-5))
    add(
        "native_group_norm_backward",
        lambda t: (t(2, 4, 3), t(2, 4, 3), t(2, 2), t(2, 2), t(4), 2, 4, 3, 2, [True, True, True]),
    )
    add(
        "native_layer_norm_backward",
        lambda t: (t(3, 4), t(3, 4), [4], t(3, 1), t(3, 1), t(4), t(4), [True, True, True]),
    )
    add("native_dropout", lambda t: (t(3, 4), 0.5, True))
    add("addmm", lambda t: (t(3), t(2, 4), t(4, 3)))
    add("mm", lambda t: (t(2, 4), t(4, 3)))
    add("bmm", lambda t: (t(2, 2, 4), t(2, 4, 3)))
    add("any.dim", lambda t: (t(3, 4), 1))
    add("any.dims sum.dim_IntList mean.dim var.dim", lambda t: (t(3, 4), [1]))
    add("var.correction", lambda t: (t(3, 4), [1]), correction=1)
    add("prod.dim_int max.dim min.dim cumsum squeeze.dim unsqueeze", lambda t: (t(3, 4), 1))
    add("squeeze.dims flip", lambda t: (t(3, 1), [1]))
    add("topk", lambda t: (t(3, 4), 2))
    add("arange.start_step", lambda t: (1, 9, 2), dtype="given")
    add("full", lambda t: ([2, 3], 1), dtype="given")
    add("scalar_tensor", lambda t: (1,), dtype="given")
    add("rand randn empty.memory_format", lambda t: ([2, 3],), dtype="given")
    add("randperm", lambda t: (5,), dtype="given")
    add("empty_strided", lambda t: ([2, 3], [3, 1]), dtype="given")
    add("full_like fill.Scalar", lambda t: (t(3, 4), 1))
    add("as_strided", lambda t: (t(3, 4), [2, 2], [4, 1], 1))
    add("cat", lambda t: ([t(2, 3), t(1, 3)],))
    add("col2im", lambda t: (t(1, 8, 4), [4, 4], [2, 2], [1, 1], [0, 0], [2, 2]))
    add("constant_pad_nd", lambda t: (t(3, 4), [1, 2], 1))
    add("reflection_pad1d", lambda t: (t(1, 2, 4), [1, 2]))
    add("reflection_pad2d replication_pad2d", lambda t: (t(1, 2, 4, 4), [1, 2, 0, 1]))
    add("reflection_pad3d replication_pad3d", lambda t: (t(1, 2, 4, 4, 4), [1, 2, 0, 1, 1, 0]))
    add("convolution", lambda t: (t(1, 2, 5, 5), t(3, 2, 3, 3), t(3), [1, 1], [0, 0], [1, 1], False, [0, 0], 1))
    add(
        "convolution_backward",
        lambda t: (
            t(1, 3, 3, 3), t(1, 2, 5, 5), t(3, 2, 3, 3), [3], [1, 1], [0, 0], [1, 1], False, [0, 0], 1,
            [True, True, True],
        ),
    )  # fmt: skip
    add("diagonal", lambda t: (t(3, 4),))
    add("expand repeat", lambda t: (t(1, 4), [3, 4]))
    add("gather", lambda t: (t(3, 4), 1, torch.tensor([[0, 1], [3, 2], [1, 1]])))
    add("index_select", lambda t: (t(3, 4), 1, t.index(3, 0)))
    add("index.Tensor", lambda t: (t(3, 4), [None, t.index(3, 0)]))
    add("index_put", lambda t: (t(3, 4), [t.index(2, 0)], t(2, 4)))
    add("masked_scatter", lambda t: (t(3, 4), t(3, 4, dtype=torch.bool), t(3, 4)))
    add("grid_sampler_2d", lambda t: (t(1, 2, 4, 4), t(1, 3, 3, 2), 0, 0, False))
    add("permute", lambda t: (t(3, 4), [1, 0]))
    add("resize_", lambda t: (t(3, 4), [2, 6]))
    add("scatter.src scatter_add", lambda t: (t(3, 4), 1, torch.tensor([[0], [3], [1]]), t(3, 1)))
    add("scatter.value", lambda t: (t(3, 4), 1, torch.tensor([[0], [3], [1]]), 1))
    add("scatter_reduce.two", lambda t: (t(3, 4), 1, torch.tensor([[0], [3], [1]]), t(3, 1), "sum"))
    add("select.int", lambda t: (t(3, 4), 1, 2))
    add("select_scatter", lambda t: (t(3, 4), t(3), 1, 2))
    add("slice.Tensor", lambda t: (t(3, 4), 1, 1, 3))
    add("slice_scatter", lambda t: (t(3, 4), t(3, 2), 1, 1, 3))
    add("split_with_sizes", lambda t: (t(3, 4), [1, 3], 1))
    add("sym_size.int sym_stride.int", lambda t: (t(3, 4), 0))
    add("upsample_bilinear2d.vec", lambda t: (t(1, 2, 3, 3), [6, 6], False, None))
    add("upsample_nearest2d.vec", lambda t: (t(1, 2, 3, 3), [6, 6], None))
    add("view", lambda t: (t(3, 4), [2, 6]))
    return out


CASES = _cases()


class Alone(torch.nn.Module):
    """One overload: its tensors are the inputs, the rest is fixed."""

    def __init__(self, overload: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        super().__init__()
        self.overload, self.keywords = overload, keywords
        self.leaves, self.tree = pytree.tree_flatten(args)
        self.places = [k for k, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]

    def forward(self, *tensors: torch.Tensor) -> Any:
        leaves = list(self.leaves)
        for k, tensor in zip(self.places, tensors, strict=False):
            leaves[k] = tensor
        if self.keywords.get("out") == "result":
            return self.overload(*pytree.tree_unflatten(leaves, self.tree), out=torch.empty_like(tensors[0]))
        if self.overload is torch.ops.aten.resize_.default:
            leaves[0] = leaves[0].clone()
        return self.overload(*pytree.tree_unflatten(leaves, self.tree), **self.keywords)


def tried(job: tuple[str, str]) -> tuple[str, str, str]:
    """The overload, the type, and what came of it: `runs`, `none` where torch takes none, or why not."""
    name, kind = job
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dtype = getattr(torch, kind)
    arguments, keywords = CASES[name]
    packet, overload = name.split(".")
    if keywords.get("dtype") == "given":
        keywords = {**keywords, "dtype": dtype}
    try:
        args = arguments(Maker(dtype))
        module = Alone(getattr(getattr(torch.ops.aten, packet), overload), args, keywords)
        # What reads no tensor is given one, so that its result is a tensor, too.
        given = tuple(module.leaves[k] for k in module.places) or (torch.zeros(1),)
        want = module(*[x.clone() for x in given])
    except Exception:  # torch's own kinds of errors are many
        return name, kind, "none"
    try:
        program = torch.export.export(module, given, strict=False)
    except Exception as error:
        return name, kind, f"torch.export refuses it: {str(error).splitlines()[0][:100]}"
    try:
        got = hetnn.compile(program)(*[x.clone() for x in given])
    except hetnn.Error as error:
        return name, kind, f"{type(error).__name__}: {_reason(str(error))}"
    mine, theirs = pytree.tree_leaves(got), pytree.tree_leaves(want)
    try:
        for a, b in zip(mine, theirs, strict=True):
            if packet in UNFIXED:
                a, b = torch.zeros_like(a), torch.zeros_like(b)
            # Of f16 the last bit is open: torch rounds some sums on the way.
            rtol, atol = (2e-3, 1e-5) if dtype == torch.float16 else (None, None)
            torch.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True)
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:
        return name, kind, f"DIFFERS: {' '.join(str(error).split())[:100]}"
    return name, kind, "runs"


def _reason(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen = lines[1] if len(lines) > 1 and "operators that hetnn lacks" in lines[0] else lines[0]
    return chosen.split(" (1 times)")[0][:160]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", default=",".join(CASES))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    names = sorted(options.names.split(","))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.map(tried, [(name, kind) for name in names for kind in DTYPES], chunksize=12)
    cells = {(name, kind): what for name, kind, what in results}
    reasons = sorted({what for what in cells.values() if what not in ("runs", "none")})
    count = {what: sum(1 for cell in cells.values() if cell == what) for what in ("runs", "none")}
    taken = len(cells) - count["none"]
    print(f"{len(names)} overloads; {count['runs']} of {taken} pairs of overload and element type run as in torch")
    for reason in reasons:
        print(f"  {reason}: {', '.join(f'{name} {kind}' for (name, kind), cell in cells.items() if cell == reason)}")
    if not options.check:
        OUT.write_text(_table(names, cells, reasons, f"{count['runs']} of {taken}"))
    return int(any(reason.startswith(("DIFFERS", "InternalError")) for reason in reasons))


def _table(names: list[str], cells: dict[tuple[str, str], str], reasons: list[str], score: str) -> str:
    rows = [
        "# Core ATen",
        "",
        "Each overload alone, exported, compiled for `cpu` and compared with eager torch, by the element type of its",
        f"tensors; written by `tools/core_aten.py`. {score} pairs that torch takes run. `+` runs, `.` torch takes",
        "no such type, a number is the reason below.",
        "",
        "| overload | " + " | ".join(DTYPES) + " |",
        "|---|" + "---|" * len(DTYPES),
    ]
    mark = {"runs": "+", "none": ".", **{reason: str(k + 1) for k, reason in enumerate(reasons)}}
    rows += [f"| `{name}` | " + " | ".join(mark[cells[name, kind]] for kind in DTYPES) + " |" for name in names]
    rows += ["", *(f"{k + 1}. {reason}" for k, reason in enumerate(reasons)), ""]
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
