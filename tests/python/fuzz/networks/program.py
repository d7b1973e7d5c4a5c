"""Random programs of torch, line by line: the text of a module's `forward`, what it computes, and how far that may err.

Every line is computed when it is drawn, and again on twins whose reals are some roundings off: a line that jumps there,
grows beyond bounds or raises is left out, and how far the twins stray is how far a device may.
"""

from __future__ import annotations

import math
import random
import re
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

TWINS = 3
ROUNDINGS = 4  # how many a twin is off by, at the inputs and behind every line
MOST_ELEMENTS = 1 << 16
LARGEST = 1e3
JUMPS = 0.02  # beside the largest value
WORDS: dict[str, Any] = {"torch": torch, "F": nn.functional}


def _cond(when: Any, yes: Callable[..., Any], no: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    return yes(*given) if when else no(*given)


def _while_loop(goes_on: Callable[..., Any], step: Callable[..., Any], carried: tuple[Any, ...]) -> Any:
    while goes_on(*carried):
        carried = step(*carried)
    return carried


def _scan(step: Callable[..., Any], carried: Tensor, xs: Tensor, dim: int = 0, reverse: bool = False) -> Any:
    made = []
    for x in xs.flip(dim).unbind(dim) if reverse else xs.unbind(dim):
        carried, y = step(carried, x)
        made.append(y)
    return carried, torch.stack(made[::-1] if reverse else made)


# torch's own compile what they are given: exported programs have them, and here stands what they mean.
EXPORTED = {"cond": torch.cond, "while_loop": while_loop, "scan": scan}
MEANT = {"cond": _cond, "while_loop": _while_loop, "scan": _scan}
NAME = re.compile(r"\b[xv]\d+\b")


@dataclass(frozen=True)
class Line:
    """`made = text`; what it reads is in the text. `moves`: no arithmetic, so that nothing is rounded."""

    made: tuple[str, ...]
    text: str
    moves: bool = False

    @property
    def reads(self) -> set[str]:
        return set(NAME.findall(self.text))

    def __str__(self) -> str:
        return f"{', '.join(self.made)} = {self.text}" if self.made else self.text


class Beyond(Exception):
    """A line that says nothing: its result jumps, is too large or is no tensor."""


def roundings(x: Tensor) -> float:
    return ROUNDINGS * torch.finfo(x.dtype).eps if x.is_floating_point() else 0.0


def off(x: Tensor, by: torch.Generator | None, summed: bool = False) -> Tensor:
    """The tensor with every real some roundings off; of sums some of the largest of them."""
    if x.is_complex():
        return torch.view_as_complex(off(torch.view_as_real(x.resolve_conj()), by, summed))
    if by is None or not x.is_floating_point():
        return x
    noise = torch.rand(x.shape, generator=by, dtype=torch.float64) * 2 - 1
    wide = x.double()
    return (wide + (largest(x) if summed else wide) * roundings(x) * noise).to(x.dtype)


def apart(a: Tensor, b: Tensor) -> float:
    """How far values are from each other; infinite where they are not alike."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return math.inf
    if not a.is_floating_point():
        return 0.0 if torch.equal(a, b) else math.inf
    if not a.numel():
        return 0.0
    wide = (a.double() - b.double()).abs()
    alike = (a == b) | (a.isnan() & b.isnan())
    far = torch.where(alike, 0.0, wide)
    return math.inf if far.isnan().any() else float(far.max())


def plain(x: Tensor) -> Tensor:
    return torch.view_as_real(x.resolve_conj()) if x.is_complex() else x


def largest(x: Tensor) -> float:
    x = x[x.isfinite()] if x.is_floating_point() else x
    return float(x.double().abs().max()) if x.numel() else 0.0


@dataclass
class Program:
    """Lines over inputs, parameters and states; `runs` are the inputs of each run, the first those drawn with."""

    lines: list[Line] = field(default_factory=list)
    runs: list[dict[str, Tensor]] = field(default_factory=lambda: [{}])
    params: dict[str, Tensor] = field(default_factory=dict)
    states: dict[str, Tensor] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    dynamic: dict[str, dict[int, Any]] = field(default_factory=dict)
    exact: bool = False  # special values: no twins

    def source(self) -> str:
        named = [*self.runs[0]]
        body = [*map(str, self.lines), f"return ({', '.join(self.outputs)},)"]
        return "\n    ".join([f"def forward(self, {', '.join(named)}):", *body])

    def told(self) -> str:
        """The source with what it stands on, for a reader."""
        kinds = {**{name: self.runs[0][name] for name in self.runs[0]}, **self.params, **self.states}
        shapes = ", ".join(f"{name}: {str(x.dtype)[6:]}{list(x.shape)}" for name, x in kinds.items())
        return f"# {shapes}{' ' + str(self.dynamic) if self.dynamic else ''}\n{self.source()}"

    def module(self) -> nn.Module:
        made = nn.Module()
        for name, x in self.params.items():
            made.register_parameter(name, nn.Parameter(x.clone(), requires_grad=x.is_floating_point()))
        for name, x in self.states.items():
            made.register_buffer(name, x.clone())
        words = {**WORDS, **EXPORTED}
        exec(self.source(), words)
        made.__class__ = type("Net", (nn.Module,), {"forward": words["forward"]})
        return made.eval()

    def read(self) -> Program:
        """Without lines and inputs that no output depends on, but for those that write states."""
        wanted, kept = set(self.outputs), []
        for line in reversed(self.lines):
            if not line.made or wanted & set(line.made) or "_(" in line.text:
                kept.append(line)
                wanted |= line.reads
        source = " ".join(map(str, kept))
        used = lambda names: {name: x for name, x in names.items() if re.search(rf"\bself\.{name}\b", source)}  # noqa: E731
        return Program(
            kept[::-1],
            [{name: x for name, x in run.items() if name in wanted} for run in self.runs],
            used(self.params),
            used(self.states),
            self.outputs,
            {name: axes for name, axes in self.dynamic.items() if name in wanted},
            self.exact,
        )


class Machine:
    """Computes lines one after the other, on values that are perhaps off."""

    def __init__(self, program: Program, twin: int | None) -> None:
        self.by = None if twin is None else torch.Generator().manual_seed(twin)
        self.program = program
        self.model = types.SimpleNamespace()
        for name, x in {**program.params, **program.states}.items():
            self.has(name, x)
        self.values: dict[str, Any] = {}

    def has(self, name: str, x: Tensor) -> None:
        setattr(self.model, name, off(x, self.by).clone())

    def begin(self, inputs: dict[str, Tensor]) -> None:
        self.values = {name: off(x, self.by).clone() for name, x in inputs.items()}

    def step(self, line: Line) -> list[Tensor]:
        words = {**WORDS, **MEANT, "self": self.model, **self.values}
        found = eval(line.text, words)
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        if line.made and (len(found) != len(line.made) or not all(isinstance(x, Tensor) for x in found)):
            raise Beyond("no tensor")
        if not line.moves:
            found = [off(x, self.by, summed="fft" in line.text) if isinstance(x, Tensor) else x for x in found]
        self.values.update(zip(line.made, found, strict=False))
        return found if line.made else []


def agree(results: Sequence[list[Tensor]]) -> None:
    """Raises Beyond where twins jump, or values are too large to say anything."""
    first, *twins = [[plain(x) for x in each] for each in results]
    for k, x in enumerate(first):
        if x.numel() > MOST_ELEMENTS or x.ndim > 6:
            raise Beyond("large")
        if x.is_floating_point() and not (x.isfinite().all() and largest(x) <= LARGEST):
            raise Beyond("not finite")
        for twin in twins:
            if not apart(x, twin[k]) <= JUMPS * max(largest(x), 1e-2):
                raise Beyond("jumps")


@dataclass
class Wanted:
    """What a run gives, and how far each output may be from that."""

    outputs: list[Tensor]
    strays: list[float]


def expected(program: Program) -> list[Wanted]:
    """What each run gives, states going on from run to run. Beyond where a run says nothing."""
    count = 0 if program.exact else TWINS
    machines = [Machine(program, None), *(Machine(program, twin) for twin in range(count))]
    out = []
    with torch.no_grad():
        for run in program.runs:
            for machine in machines:
                machine.begin(run)
            for line in program.lines:
                results = [machine.step(line) for machine in machines]
                if not program.exact:
                    agree(results)
            found = [[machine.values[name].clone() for name in program.outputs] for machine in machines]
            strays = [max((apart(x, twin[k]) for twin in found[1:]), default=0.0) for k, x in enumerate(found[0])]
            out.append(Wanted(found[0], strays))
    return out


class Draw:
    """Draws a program: what families ask for numbers, values and lines."""

    def __init__(self, rng: random.Random, exact: bool = False) -> None:
        self.rng = rng
        self.by = torch.Generator().manual_seed(rng.randrange(1 << 31))
        self.program = Program(exact=exact)
        self.machines = [Machine(self.program, twin) for twin in [None, *range(0 if exact else TWINS)]]
        self.count = 0
        self.mutated = False

    # Numbers

    def integer(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def choice(self, of: Sequence[Any]) -> Any:
        return self.rng.choice(of)

    def coin(self, chance: float = 0.5) -> bool:
        return self.rng.random() < chance

    def randn(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.by)

    def integers(self, low: int, high: int, shape: Sequence[int], dtype: torch.dtype = torch.int64) -> Tensor:
        return torch.randint(low, high, tuple(shape), generator=self.by).to(dtype)

    # Values

    def _all(self) -> list[Machine]:
        return self.machines

    def value(self, name: str) -> Tensor:
        found: Tensor = self.machines[0].values[name]
        return found

    def input(self, x: Tensor) -> str:
        name = f"x{len(self.program.runs[0])}"
        self.program.runs[0][name] = x
        for machine in self.machines:
            machine.values[name] = off(x, machine.by).clone()
        return name

    def param(self, x: Tensor) -> str:
        name = f"p{len(self.program.params)}"
        self.program.params[name] = x
        for machine in self.machines:
            machine.has(name, x)
        return f"self.{name}"

    def weight(self, *shape: int) -> str:
        """A parameter of normal numbers, such that sums over all but its first axis keep their size."""
        return self.param(self.randn(*shape) / math.sqrt(max(math.prod(shape[1:]), 1)))

    def state(self, x: Tensor) -> str:
        name = f"s{len(self.program.states)}"
        self.program.states[name] = x
        for machine in self.machines:
            machine.has(name, x)
        return f"self.{name}"

    def pick(self, fits: Callable[[Tensor], bool] = lambda x: True, late: float = 0.6) -> str | None:
        """A value that fits, mostly one of the last."""
        names = [name for name, x in self.machines[0].values.items() if isinstance(x, Tensor) and fits(x)]
        if not names:
            return None
        return names[-1 - int(self.rng.expovariate(1.0)) % len(names)] if self.coin(late) else str(self.choice(names))

    def reals(self, rank: int | Iterable[int] | None = None) -> str | None:
        ranks = None if rank is None else {rank} if isinstance(rank, int) else set(rank)
        return self.pick(lambda x: x.dtype == torch.float32 and (ranks is None or x.ndim in ranks))

    # Lines

    def emit(self, text: str, outputs: int = 1, moves: bool = False) -> str | None:
        """Adds a line if it can be computed and says something; the name of its first result."""
        line = Line(tuple(f"v{self.count + k}" for k in range(outputs)), text, moves)
        writes = "_(" in text or ("[" in text and " = " in text)
        saved = [(dict(m.values), dict(vars(m.model))) for m in self.machines] if not writes else None
        try:
            with torch.no_grad():
                results = [machine.step(line) for machine in self.machines]
                if not self.program.exact:
                    agree(results)
                elif any(x.numel() > MOST_ELEMENTS or x.ndim > 6 for x in results[0]):
                    raise Beyond("large")
        except Exception:
            self._back(saved)
            return None
        self.program.lines.append(line)
        self.count += outputs
        return line.made[0] if outputs else ""

    def _back(self, saved: Any) -> None:
        """As it was before a line failed; lines that write are computed again, all of them."""
        if saved is not None:
            for machine, (values, model) in zip(self.machines, saved, strict=True):
                machine.values = values
                vars(machine.model).update(model)
            return
        twins = [None, *range(len(self.machines) - 1)]
        self.machines = [Machine(self.program, twin) for twin in twins]
        with torch.no_grad():
            for machine in self.machines:
                machine.begin(self.program.runs[0])
                for line in self.program.lines:
                    machine.step(line)

    def finish(self, share: float = 0.15) -> Program:
        """What nothing reads is a result, and now and then what something reads."""
        read = set().union(*(line.reads for line in self.program.lines)) if self.program.lines else set()
        made = [name for line in self.program.lines for name in line.made]
        self.program.outputs = [name for name in made if name not in read or self.coin(share)]
        self.program.outputs = [name for name in self.program.outputs if not self.value(name).is_complex()]
        return self.program.read()
