"""Differentiates every overload of core ATen that torch differentiates, in f64 and f32, three times: through
torch.compile(backend="hetnn"), as a joint graph, which training compiles, and by hetnn's own rules from the overload's
graph; compares with eager torch's gradients.

    python tools/core_gradients.py [--names mul.Tensor,mm.default] [--own] [--check]

Samples are those of tools/core_aten.py and, unless --own says that they suffice, what torch's own operator tests call
the overload with. An overload counts where all of its samples have torch's gradients, within 1e-8 in f64 and torch's
own bounds of f32, on all ways, and no graph stayed in eager. Writes docs/core-gradients.md; with --check nothing is
written, and the exit code is 1 where a gradient differs or fewer than 95 % of the overloads count.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

import hetnn
from core_aten import CASES, Alone, Maker
from hetnn.dynamo.report import torch_report
from hetnn.importers.lowering.updates import Updates
from hetnn.importers.torch.graph import import_exported_program
from hetnn.importers.torch.joint import with_gradients

OUT = Path(__file__).parents[1] / "docs" / "core-gradients.md"
DTYPES = (torch.float64, torch.float32)
EXACT = 1e-8  # of f64; those of f32 are torch.testing's own
GOAL = 0.95
# Of an overload that torch's tests call, so many calls that differ in shapes or arguments, of tensors so large.
MOST_SAMPLES, MOST_ELEMENTS = 5, 4096
# Samples beside core_aten's: where those lie outside a function's domain, or draw numbers.
OWN: dict[str, Callable[[Maker], tuple[Any, ...]]] = {
    "acosh.default": lambda t: (t(3, 4) + 1.5,),
    "native_dropout.default": lambda t: (t(3, 4), 0.0, True),
}

# What a sample consists of.
PLAIN = (torch.Tensor, bool, int, float, complex, str, torch.dtype, torch.layout, torch.device)

Sample = tuple[tuple[Any, ...], dict[str, Any]]


class NotDifferentiated(Exception):
    """Torch has no gradient of this call."""


class Call(nn.Module):
    """An overload of tensors whose gradients are asked for, in real numbers: complex ones are pairs."""

    def __init__(self, overload: Any, sample: Sample) -> None:
        super().__init__()
        self.alone = Alone(overload, *sample)
        tensors = [self.alone.leaves[k] for k in self.alone.places]
        self.pairs = [x.is_complex() for x in tensors]
        self.given = [torch.view_as_real(x.resolve_conj()) if x.is_complex() else x for x in tensors]
        self.names = [argument.name for argument in overload._schema.arguments]
        self.asked = [k for k, x in enumerate(self.given) if x.is_floating_point()]

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        """The sum of all that has a gradient, every element times its own fixed factor."""
        given = [torch.view_as_complex(x) if pair else x for x, pair in zip(tensors, self.pairs, strict=True)]
        found = [x for x in pytree.tree_leaves(self.alone(*given)) if isinstance(x, torch.Tensor) and x.requires_grad]
        if not found:
            raise NotDifferentiated("no result has a gradient")
        reals = [torch.view_as_real(x) if x.is_complex() else x for x in found]
        return torch.stack([(x * _factors(x)).sum() for x in reals]).sum()

    def leaves(self) -> list[torch.Tensor]:
        return [x.detach().clone().requires_grad_(k in self.asked) for k, x in enumerate(self.given)]

    def gradients(self, run: Callable[..., torch.Tensor]) -> list[torch.Tensor]:
        """Those of what a function returns."""
        tensors = self.leaves()
        return list(torch.autograd.grad(run(*tensors), [tensors[k] for k in self.asked]))

    def eager(self) -> list[torch.Tensor]:
        """Torch's own; arguments that have none, or that it names as not differentiable, are no longer asked for."""
        while True:
            try:
                tensors = self.leaves()
                asked = [tensors[k] for k in self.asked]
                found = torch.autograd.grad(self(*tensors), asked, allow_unused=True)
                self.asked = [k for k, gradient in zip(self.asked, found, strict=True) if gradient is not None]
                if not self.asked:
                    raise NotDifferentiated("nothing that it reads has a gradient")
                return [gradient for gradient in found if gradient is not None]
            except (RuntimeError, NotImplementedError) as error:
                told = re.search(r"argument '(\w+)'|derivative for '\w+ (\w+)'", str(error))
                named = self._places_of(next(filter(None, told.groups()))) if told else set()
                if not named & set(self.asked) or named >= set(self.asked):
                    raise NotDifferentiated(str(error).splitlines()[0]) from error
                self.asked = [k for k in self.asked if k not in named]

    def _places_of(self, name: str) -> set[int]:
        """Of an argument the tensors in it."""
        args = self.alone.tree.children() if hasattr(self.alone.tree, "children") else self.alone.tree.children_specs
        begins, leaf = [], 0
        for one in args:
            begins.append((leaf, leaf + one.num_leaves))
            leaf += one.num_leaves
        begin, end = begins[self.names.index(name)]
        return {k for k, place in enumerate(self.alone.places) if begin <= place < end}


def _factors(x: torch.Tensor) -> torch.Tensor:
    """What every element of a result counts in the sum that is differentiated."""
    return (torch.arange(x.numel(), dtype=x.dtype) % 7 / 4 + 0.5).reshape(x.shape)


class Summed(nn.Module):
    """A call as a model without inputs: tensors whose gradients are asked for are parameters."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call
        for k, x in enumerate(call.leaves()):
            if x.requires_grad:
                self.register_parameter(f"x{k}", nn.Parameter(x.detach()))
            else:
                self.register_buffer(f"x{k}", x)

    def forward(self) -> torch.Tensor:
        found: torch.Tensor = self.call(*(getattr(self, f"x{k}") for k in range(len(self.call.given))))
        return found


def _by_torch_compile(call: Call) -> list[torch.Tensor]:
    torch._dynamo.reset()
    torch._dynamo.config.capture_dynamic_output_shape_ops = True  # else torch breaks the graph at boolean indices
    torch_report(clear=True)
    found = call.gradients(torch.compile(call, backend="hetnn", dynamic=False))
    report = torch_report(clear=True)
    left = [row.why for row in report if row.why]
    if left:
        raise hetnn.Unsupported(left[0])
    if "backward" not in {row.kind for row in report}:
        raise hetnn.Unsupported("torch.compile gives no backward graph")
    return found


def _as_joint_graph(call: Call) -> list[torch.Tensor]:
    def keep(build: Updates, gradients: Mapping[str, tuple[Any, Any]]) -> None:
        for value, gradient in gradients.values():
            build.keep(value, gradient)

    program = with_gradients(Summed(call), (torch.zeros(()),), lambda found, _: found)
    exe = hetnn.compile(import_exported_program(program, functional=True, optimizer=keep))
    exe(torch.zeros(()))
    read = exe.states
    return [
        torch.from_numpy(exe.state(name)) if name in read else torch.zeros_like(call.given[k])
        for k, name in ((k, f"model.x{k}") for k in call.asked)
    ]


def _by_differentiate(call: Call) -> list[torch.Tensor]:
    tensors = call.leaves()
    imported = import_exported_program(torch.export.export(call, tuple(tensors)))
    graph = imported.graph
    loss = len(imported.signature.get("written", []))  # behind what is written into inputs
    names = [graph.inputs[k][0] for k in call.asked]
    whole = hetnn._core.differentiate(graph, graph.outputs[loss][0], names)
    return list(hetnn.compile(whole)(*(x.detach() for x in tensors))[-len(names) :])


WAYS = {"torch.compile": _by_torch_compile, "joint graph": _as_joint_graph, "differentiate": _by_differentiate}


def _tried(name: str, sample: Sample) -> str | None:
    """What came of a call: "equal", None where torch has no gradient of it, or what is in the way."""
    packet, overload = name.split(".")
    try:
        call = Call(getattr(getattr(torch.ops.aten, packet), overload), sample)
        want = call.eager()
    except Exception:  # torch's own kinds of errors are many
        return None
    bound = EXACT if want[0].dtype == torch.float64 else None
    for way, gradients in WAYS.items():
        if way == "differentiate" and "_backward" in name:
            continue  # torch's gradients of gradients take statistics for functions of their input
        try:
            got = gradients(call)
        except hetnn.Error as error:
            return f"{way}: {type(error).__name__}: {_reason(str(error))}"
        except Exception as error:
            return f"{way}: {type(error).__name__}: {str(error).strip().splitlines()[0][:160]}"
        for mine, theirs in zip(got, want, strict=True):
            try:
                torch.testing.assert_close(mine, theirs, rtol=bound, atol=bound, equal_nan=True)
            except AssertionError as error:
                return f"{way}: DIFFERS: {' '.join(str(error).split())[:160]}"
    return "equal"


def _reason(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen = lines[1] if len(lines) > 1 and "operators that hetnn lacks" in lines[0] else lines[0]
    return chosen.split(" (1 times)")[0][:160]


def _typed(sample: Sample, dtype: torch.dtype) -> Sample:
    """The same sample in another real type."""
    kinds = {torch.float64: dtype, torch.complex128: dtype.to_complex()}
    args, keywords = pytree.tree_map_only(
        torch.Tensor, lambda x: x.to(kinds.get(x.dtype, x.dtype)) if x.dtype in kinds else x, sample
    )
    return args, keywords


def own_samples(name: str) -> list[Sample]:
    """Those of tools/core_aten.py in f64, and the ones beside them."""
    arguments, keywords = CASES[name]
    given = {**keywords, **({"dtype": torch.float64} if keywords.get("dtype") == "given" else {})}
    makers = [OWN[name]] if name in OWN else [arguments]
    if name.startswith(("_fft_c2r",)):
        return [(makers[0](Maker(torch.complex128)), given)]
    return [(make(Maker(torch.float64)), given) for make in makers]


class _Recording(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes calls of core overloads on reals, a few of each that differ."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: dict[str, dict[str, Sample]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, keywords = str(func).removeprefix("aten."), dict(kwargs or {})
        kept = {key: value for key, value in keywords.items() if key != "memory_format"}  # cannot be pickled
        known = self.found.setdefault(name, {}) if name in CASES and name not in OWN else None
        leaves = pytree.tree_leaves((args, kept))
        tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
        if (
            known is not None
            and all(x is None or isinstance(x, PLAIN) for x in leaves)
            and len(known) < MOST_SAMPLES
            and any(x.dtype == torch.float64 for x in tensors)
            and all(x.numel() <= MOST_ELEMENTS for x in tensors)
        ):
            told = str(
                pytree.tree_map_only(torch.Tensor, lambda x: (x.dtype, tuple(x.shape), x.stride()), (args, kept))
            )
            if told not in known:
                copied = pytree.tree_map_only(torch.Tensor, lambda x: x.detach().clone(), (tuple(args), kept))
                known[told] = copied
        return func(*args, **keywords)


def samples_of_torch() -> dict[str, list[Sample]]:
    """What torch's own operator tests call each overload with, in f64."""
    from torch.testing._internal.common_methods_invocations import op_db

    recording = _Recording()
    warnings.simplefilter("ignore")
    for info in op_db:
        if torch.float64 not in info.dtypes or not info.supports_autograd:
            continue
        try:
            torch.manual_seed(0)
            for k, one in enumerate(info.sample_inputs("cpu", torch.float64)):  # type: ignore[no-untyped-call]
                if k >= MOST_SAMPLES:
                    break
                with recording:
                    info.op(one.input, *one.args, **one.kwargs)
        except Exception:  # some need what is not installed
            continue
    return {name: list(known.values()) for name, known in recording.found.items()}


def tried(name: str, more: bytes = b"") -> dict[str, list[str]]:
    """By element type what came of each sample that torch differentiates; `more` are samples beside the own ones."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    samples = [*own_samples(name), *(torch.load(io.BytesIO(more), weights_only=False) if more else [])]
    return {
        str(dtype).removeprefix("torch."): [
            what for one in samples if (what := _tried(name, _typed(one, dtype))) is not None
        ]
        for dtype in DTYPES
    }


def _job(job: tuple[str, bytes]) -> tuple[str, dict[str, list[str]]]:
    return job[0], tried(*job)


def _bytes(samples: list[Sample]) -> bytes:
    file = io.BytesIO()
    torch.save(samples, file)
    return file.getvalue()


@cache
def differentiated() -> tuple[str, ...]:
    """Overloads of whose own sample torch has gradients."""
    found = []
    for name in sorted(CASES):
        packet, overload = name.split(".")
        try:
            for sample in own_samples(name):
                Call(getattr(getattr(torch.ops.aten, packet), overload), sample).eager()
        except Exception:  # torch's own kinds of errors are many
            continue
        found.append(name)
    return tuple(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", default="", help="overloads, by commas; all without it")
    parser.add_argument("--own", action="store_true", help="without the samples of torch's operator tests")
    parser.add_argument("--check", action="store_true", help="write no page")
    options = parser.parse_args()
    names = options.names.split(",") if options.names else list(differentiated())
    more = {} if options.own else samples_of_torch()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        rows = dict(pool.imap(_job, [(name, _bytes(more.get(name, []))) for name in names]))
    good = [name for name, row in rows.items() if all(what == "equal" for cell in row.values() for what in cell)]
    samples = sum(len(cell) for row in rows.values() for cell in row.values())
    told = (
        f"{len(good)} of {len(rows)} overloads ({len(good) / len(rows):.1%}) have torch's gradients in f64 and f32, "
        f"on {samples} samples"
    )
    print(told)
    for name, row in rows.items():
        for kind, cell in row.items():
            for what in sorted(set(cell) - {"equal"}):
                print(f"  {name} {kind} ({cell.count(what)} of {len(cell)}): {what}")
    if not options.check:
        OUT.write_text(_page(rows, told, "our own" if options.own else "our own and those of torch's operator tests"))
    differs = any("DIFFERS" in what for row in rows.values() for cell in row.values() for what in cell)
    return int(differs or len(good) < GOAL * len(rows))


def _page(rows: Mapping[str, dict[str, list[str]]], told: str, samples: str) -> str:
    rest = {name: row for name, row in rows.items() if any(what != "equal" for cell in row.values() for what in cell)}
    lines = [
        "# Gradients of core ATen",
        "",
        'Each overload alone, differentiated through `torch.compile(backend="hetnn")`, as a joint graph, which',
        "training compiles, and by hetnn's own rules (`differentiate`), compared with eager torch: f64 within 1e-8,",
        "f32 within torch's own bounds. Samples are",
        f"{samples}. Written by `tools/core_gradients.py`.",
        "",
        f"{told}.",
        "",
        "## The rest",
        "",
    ]
    for name, row in rest.items():
        reasons = sorted({what for cell in row.values() for what in cell} - {"equal"})
        lines += [f"- `{name}`: {reason}" for reason in reasons]
    lines += [*([] if rest else ["None."]), "", "## Those with torch's gradients", ""]
    lines += ["| overload | samples in f64 | samples in f32 |", "|---|---|---|"]
    lines += [
        f"| `{name}` | {len(row['float64'])} | {len(row['float32'])} |"
        for name, row in rows.items()
        if name not in rest
    ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
