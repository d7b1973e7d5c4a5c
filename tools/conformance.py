"""Counts what hetnn takes of ONNX's backend tests and of PyTorch's operator samples, and says what fails and why.

    python tools/conformance.py [onnx] [opinfo] [onnx-open] [--samples 4] [--part 0/1] [--names a,b]

A test of ONNX passes only if it ran and its values were compared; what is skipped or refused has failed. An operator of
PyTorch passes, for an element type, only if every sample that torch.export takes gives eager's values, types and
shapes, twice; where none is exported, or eager's values depend on the seed, it is not counted.

`onnx-open`, which runs where it is named, are ONNX's tests with every size of every input left open: what the values
of inputs say alone is not known when compiling, and sizes that meet are taken as equal.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
import unittest
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.testing._comparison import get_tolerances
from torch.utils import _pytree as pytree

import hetnn
from forked import Result, run_forked

SETS = ("onnx", "opinfo", "onnx-open")
USUAL = SETS[:2]
DTYPES = ("float32", "int64", "bool")
# Results of these are whatever lay in memory.
UNFIXED = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
# Of these, and of no failure, a score takes no notice.
UNCOUNTED = ("not exported", "random")

Job = Callable[[str], Result]


# ONNX


def opened(model: Any) -> Any:
    """The model with a symbol of its own for every size of its inputs, and no shapes of what is computed."""
    out = type(model).FromString(model.SerializeToString())
    known = {tensor.name for tensor in out.graph.initializer}
    for value in (*out.graph.input, *out.graph.output):
        if value.name in known or value.type.WhichOneof("value") != "tensor_type":
            continue
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{value.name}_{axis}"
    del out.graph.value_info[:]
    return out


def onnx_jobs(target: str, is_open: bool = False) -> tuple[Job, list[str]]:
    """The CPU tests of ONNX's backend suite, each on hetnn.OnnxBackend."""
    import onnx.backend.test
    from onnx.backend.base import Backend

    compared: list[None] = []

    class OnTarget(hetnn.OnnxBackend):
        @classmethod
        def prepare(cls, model: Any, device: str = "CPU", target: Any = target, **kwargs: Any) -> Any:
            return super().prepare(opened(model) if is_open else model, device, target, **kwargs)

    class Suite(onnx.backend.test.BackendTest):
        @classmethod
        def assert_similar_outputs(cls, ref_outputs: Any, outputs: Any, *rest: Any, **kwargs: Any) -> None:
            super().assert_similar_outputs(ref_outputs, outputs, *rest, **kwargs)
            for wanted, got in zip(ref_outputs, outputs, strict=True):
                lists = [isinstance(value, (list, tuple)) for value in (wanted, got)]
                assert lists[0] == lists[1], "a sequence for a tensor"
                assert not lists[0] or len(wanted) == len(got), "the length of a sequence"
            compared.append(None)

    assert issubclass(OnTarget, Backend)
    cases = Suite(OnTarget, __name__).test_cases
    tests = {
        f"{name.removesuffix('_cpu')}": getattr(case, name)
        for case in cases.values()
        for name in dir(case)
        if name.startswith("test_") and name.endswith("_cpu")
    }

    def job(name: str) -> Result:
        warnings.simplefilter("ignore")
        compared.clear()
        try:
            tests[name](unittest.TestCase())
        except unittest.SkipTest as skipped:
            return "skipped", str(skipped)
        except AssertionError as error:
            return "wrong", str(error)
        except hetnn.Unsupported as error:
            return "unsupported", str(error)
        except hetnn.InvalidModel as error:
            if not is_open:
                raise
            return "unsupported", str(error)
        return ("ok", "") if compared else ("vacuous", "nothing was compared")

    return job, sorted(tests)


# PyTorch


class Sample(torch.nn.Module):
    """An operator on one sample: its tensors are the inputs, all else is fixed."""

    def __init__(self, op: Callable[..., Any], sample: Any) -> None:
        super().__init__()
        self.op = op
        self.leaves, self.tree = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        self.places = [k for k, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]
        self.tensors = [self.leaves[k] for k in self.places]

    def forward(self, *tensors: torch.Tensor) -> Any:
        given = dict(zip(self.places, tensors, strict=True))
        value, args, keywords = pytree.tree_unflatten(
            [given.get(k, leaf) for k, leaf in enumerate(self.leaves)], self.tree
        )
        return self.op(value, *args, **keywords)

    def inputs(self) -> tuple[torch.Tensor, ...]:
        return tuple(tensor.clone() for tensor in self.tensors)


def _tensors(found: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(found) if isinstance(leaf, torch.Tensor)]


def _compare(got: Any, want: list[torch.Tensor], loose: tuple[float, float]) -> None:
    """At the usual tolerances of each type, or those of the operator where they are wider."""
    mine = _tensors(got)
    assert len(mine) == len(want), f"{len(mine)} outputs instead of {len(want)}"
    for a, b in zip(mine, want, strict=True):
        rtol, atol = (max(pair) for pair in zip(get_tolerances(b.dtype, rtol=None, atol=None), loose, strict=True))
        torch.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True)


def _tolerance(op: Any, dtype: torch.dtype) -> tuple[float, float]:
    """What the operator's own forward tests allow beyond the usual."""
    from torch.testing._internal.common_device_type import toleranceOverride

    found = [(0.0, 0.0)]
    for decorator in op.decorators:
        scoped = hasattr(decorator, "decorators")
        device = getattr(decorator, "device_type", None)
        test = getattr(decorator, "cls_name", None) or "TestCommon"
        if test in ("TestCommon", "TestUnaryUfuncs", "TestReductions", "TestLinalg") and device in (None, "cpu"):
            inner = decorator.decorators if scoped else [decorator]
            found += [(one.d[dtype].rtol, one.d[dtype].atol) for one in inner
                      if isinstance(one, toleranceOverride) and dtype in one.d]  # fmt: skip
    return max(rtol for rtol, _ in found), max(atol for _, atol in found)


def _tried(module: Sample, loose: tuple[float, float], target: str) -> Result:
    """What came of one sample."""
    try:
        left = module.inputs()
        want = [tensor.clone() for tensor in _tensors(module(*left))]
        for seed in range(3):
            torch.default_generator.manual_seed(seed)
            for again, first in zip(_tensors(module(*module.inputs())), want, strict=True):
                if not torch.equal(torch.nan_to_num(again), torch.nan_to_num(first)):
                    return "random", ""
        program = torch.export.export(module, module.inputs(), strict=False)
    except Exception as error:  # torch's own kinds of errors are many
        return "not exported", str(error)
    if not want or not module.tensors:
        return "not exported", "it has no tensors"
    try:
        exe = hetnn.compile(program, target=target)
        given = module.inputs()
        for inputs in (given, module.inputs()):
            _compare(exe(*inputs), want, loose)
        _compare(list(given), list(left), (0, 0))
    except hetnn.Unsupported as error:
        return "unsupported", str(error)
    except AssertionError as error:
        return "wrong", str(error)
    return "ok", ""


def opinfo_jobs(target: str, samples: int) -> tuple[Job, list[str]]:
    """PyTorch's operators, `name dtype`, each on its first samples."""
    from torch.testing._internal.common_methods_invocations import op_db

    operators: list[Any] = op_db
    table: dict[str, tuple[Any, torch.dtype]] = {
        f"{op.formatted_name} {dtype}": (op, getattr(torch, dtype))
        for op in operators
        for dtype in DTYPES
        if getattr(torch, dtype) in op.supported_dtypes("cpu") and op.name not in UNFIXED
    }

    def job(name: str) -> Result:
        warnings.simplefilter("ignore")
        op, dtype = table[name]
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002  what PyTorch's samples draw from
        torch.default_generator.manual_seed(0)
        torch.manual_seed = lambda seed: torch.default_generator  # samples are not to begin from one seed each
        torch.set_num_threads(1)
        found: collections.Counter[str] = collections.Counter()
        for k, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
            if k == samples:
                break
            what, text = _tried(Sample(op, sample), _tolerance(op, dtype), target)
            if what not in ("ok", *UNCOUNTED):
                return what, f"sample {k}: {text}"
            found[what] += 1
        return ("ok" if found["ok"] else "random" if found["random"] else "not exported"), ""

    return job, list(table)


# Both


def score(title: str, jobs: tuple[Job, list[str]], options: argparse.Namespace) -> bool:
    """Runs one set, prints what failed and how many passed; whether nothing was worse than refused."""
    job, names = jobs
    if options.names:
        names = [name for name in names if name.split()[0] in options.names.split(",")]
    part, parts = map(int, options.part.split("/"))

    def tell(name: str, result: Result) -> None:
        if result[0] not in ("ok", *UNCOUNTED):
            print(f"  {name}: {result[0]}: {' '.join(result[1].split())[:160]}", flush=True)

    results = run_forked(job, names[part::parts], options.jobs, options.seconds, tell)
    count = collections.Counter(what for what, _ in results.values())
    counted = len(results) - sum(count[what] for what in UNCOUNTED)
    print(f"{title}: {count['ok']} of {counted} pass; " + ", ".join(f"{n} {what}" for what, n in count.most_common()))
    return not any(count[what] for what in ("wrong", "error", "crash", "timeout"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="onnx|opinfo|onnx-open", help="the first two where none is named")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--part", default="0/1", help="every n-th of the sorted tests, from i on")
    parser.add_argument("--names", help="these alone")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=120)
    options = parser.parse_args()
    sets = options.sets or list(USUAL)
    if unknown := set(sets) - set(SETS):
        parser.error(f"there is no set {', '.join(sorted(unknown))}; there are {', '.join(SETS)}")
    sound = True
    if "onnx" in sets:
        sound &= score("ONNX", onnx_jobs(options.target), options)
    if "onnx-open" in sets:
        sound &= score("ONNX with open sizes", onnx_jobs(options.target, is_open=True), options)
    if "opinfo" in sets:
        torch.export.export(torch.nn.ReLU(), (torch.zeros(2),)).run_decompositions()  # imports, before processes fork
        sound &= score("OpInfo", opinfo_jobs(options.target, options.samples), options)
    return int(not sound)


if __name__ == "__main__":
    sys.exit(main())
