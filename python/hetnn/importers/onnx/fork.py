"""Values of which a condition decides the type when the model runs: both sides go on until they are alike again.

Every node that reads such a value, a Fork, is converted for each side, and its results are one value as soon as they
agree in element type and rank. What takes long or may refuse what it meets is not to run where the other side is
taken: it stands in a loop of one round or none, whose results have a first axis of as many, Rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numpy as np

from hetnn._core import Dim
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import Size, product
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.looping import is_there, late_loop
from hetnn.importers.onnx.rules.sequence import joint, packed, shapes_of
from hetnn.importers.onnx.rules.text import joined
from hetnn.importers.onnx.values import (
    NESTED,
    AnyRank,
    Array,
    Fork,
    Items,
    Maybe,
    Nothing,
    Refused,
    Rows,
    Tensors,
    Text,
)

# Conditions that lie in one another double the nodes with each.
_MOST_SIDES = 8
# So many integers at most, as shapes have, stay apart where both sides know them.
_MOST_FACTS = 8


class _NotThereError(Exception):
    """A node that always runs reads what only one of the sides has."""


class Forks:
    """Converts nodes on one side of conditions and the other.

    `_path` are the conditions of the side that is converted now, with whether they hold; of the first `_checked` of
    them loops around the nodes make sure.
    """

    def __init__(self) -> None:
        self._path: list[tuple[Any, bool]] = []
        self._checked = 0
        self._reasons: dict[str, str] = {}

    def explain(self, condition: Any, reason: str) -> None:
        """What a condition decides, for refusals of what depends on it."""
        self._reasons[condition.name] = reason

    def is_open(self) -> bool:
        """Whether nodes that are made now run even where their side is not taken."""
        return self._checked < len(self._path)

    @contextmanager
    def _taking(self, condition: Any, holds: bool) -> Iterator[None]:
        """The side of a condition, while nodes of it are made; not longer, also where one is refused."""
        self._path.append((condition, holds))
        try:
            yield
        finally:
            self._path.pop()

    def converted(self, call: Call, convert: Callable[[list[Any]], list[Any]]) -> list[Any]:
        """What a node gives for inputs some of which are forked, where `convert` says it for those that are not."""
        inputs = [self._picked(x) for x in call.inputs]
        refused = next((x for x in inputs if isinstance(x, Refused)), None)
        if refused is not None:
            return [refused] * len(call.node.output)
        fork = _first_fork(inputs)
        if fork is None:
            return convert([self.read(call, x) if isinstance(x, Rows) else x for x in inputs])

        def of_side() -> list[Any]:
            return self.converted(call, convert)

        both = []
        for holds in (True, False):
            with self._taking(fork.condition, holds):
                try:
                    deeper = _first_fork([self._picked(x) for x in inputs]) is not None
                    both.append(of_side() if deeper else self._guarded(call, of_side))
                except InvalidModel as error:
                    both.append([Refused(str(error))] * len(call.node.output))
        return [self.joined(call, fork.condition, a, b, facts=True) for a, b in zip(*both, strict=True)]

    def side(self, call: Call, condition: Any, holds: bool, convert: Callable[[], list[Any]]) -> list[Any]:
        """What `convert` gives where the condition holds, or does not."""
        with self._taking(condition, holds):
            return self._guarded(call, convert, sequences=True)

    def _guarded(self, call: Call, convert: Callable[[], list[Any]], sequences: bool = False) -> list[Any]:
        """What `convert` gives, from nodes that run on this side only if need be; `sequences` are always computed."""
        before = call.doubts(), call.layers()
        try:
            found = convert()
        except _NotThereError:
            return self._alone(call, convert)
        kept = sequences and any(isinstance(x, NESTED) for x in found)
        return found if kept or (call.doubts(), call.layers()) == before else self._alone(call, convert)

    def _alone(self, call: Call, convert: Callable[[], list[Any]]) -> list[Any]:
        """What `convert` gives, from a loop of one round where this side is taken, of none elsewhere."""
        open_to = [
            condition if holds else call.create("logical_not", [condition])
            for condition, holds in self._path[self._checked :]
        ]
        runs = call.folded("logical_and", open_to)
        before, self._checked = self._checked, len(self._path)
        hand = _Hand(call, tuple(self._path))

        def round_of(given: Sequence[Any]) -> list[Any]:
            hand.take(convert())
            return [given[1], *(hand.values or [given[1]])]

        try:
            hand.rows = late_loop(call, call.cast(runs, "i64"), None, [], [], round_of, most=1)
        finally:
            self._checked = before
        return [build() for build in hand.builds]

    def _picked(self, x: Any) -> Any:
        """A value as the side that is converted now has it."""
        while isinstance(x, Fork):
            holds = next((holds for condition, holds in self._path if condition is x.condition), None)
            if holds is None:
                return x
            x = x.sides[0 if holds else 1]
        return x

    def read(self, call: Call, x: Rows) -> Any:
        """The one row of a value that this side has."""
        checked = self._path[: self._checked]
        if not all(any(a is b and x_holds == y_holds for b, y_holds in checked) for a, x_holds in x.path):
            raise _NotThereError
        return with_sizes(call, call.reshape(x.rows, x.rows.shape[1:]), x.sizes)

    def joined(self, call: Call, condition: Any, a: Any, b: Any, facts: bool = False) -> Any:
        """One value, where the two sides are alike, else a Fork.

        With `facts` a Fork also of what is known on both sides, and differs. Where one is refused, what follows from
        the other is looked at where it leaves the model.
        """
        if a is b or (isinstance(a, Refused) and isinstance(b, Refused)):
            return a
        x, y = call.known_of(a), call.known_of(b)
        if facts and x is not None and y is not None and _is_fact(x) and _is_fact(y):
            return a if _type_of(a) == _type_of(b) and np.array_equal(x, y) else _fork(condition, a, b)
        if not isinstance(a, (Fork, Refused)) and not isinstance(b, (Fork, Refused)) and not _are_shapes(a, b):
            try:
                return self._one(call, condition, a, b)
            except Unsupported:
                pass
        return _fork(condition, a, b)

    def settled(self, call: Call, fork: Fork, rank: int | None = None) -> Any:
        """One value of what is forked. Unsupported where its rank or element type is not known.

        With `rank` sides of another one are refused: a run that takes them ends.
        """
        sides = self._sides(fork, lambda x: self.settled(call, x, rank) if isinstance(x, Fork) else _of_rank(x, rank))
        try:
            return self._one(call, fork.condition, *sides)
        except Unsupported as error:
            reason = self._reasons.get(fork.condition.name)
            if reason is None or reason in str(error):
                raise
            raise Unsupported(f"{reason}: {error}") from None

    def _sides(self, fork: Fork, made: Callable[[Any], Any]) -> list[Any]:
        """What `made` gives for each side."""
        found = []
        for x, holds in zip(fork.sides, (True, False), strict=True):
            with self._taking(fork.condition, holds):
                found.append(made(self._picked(x)))
        return found

    def left_open(self, call: Call, x: Any) -> AnyRank:
        """What is forked as a tensor whose rank each run says. Unsupported for several element types."""
        if not isinstance(x, Fork):
            rows = x if isinstance(x, Rows) else _as_rows(call, call.value(x))
            flat = call.reshape(rows.rows, [product(rows.rows.shape)])
            return AnyRank(flat, shapes_of(call, [rows.rows.shape[1:]]))
        there = [not isinstance(side, Refused) for side in self._sides(x, lambda side: side)]
        if not all(there):
            _require(call, x.condition, there[0], next(side for side in x.sides if isinstance(side, Refused)))
            return self.left_open(call, x.sides[0 if there[0] else 1])
        sides = self._sides(x, partial(self.left_open, call))
        if sides[0].values.dtype != sides[1].values.dtype:
            raise Unsupported(
                "a value whose element type depends on a condition computed when the model runs: "
                f"{sides[0].values.dtype} or {sides[1].values.dtype}; give what decides it by fix="
            )
        pairs = [side.values for side in sides], [side.shapes for side in sides]
        return AnyRank(*(_one_of(call, x.condition, *pair) for pair in pairs))

    def _one(self, call: Call, condition: Any, a: Any, b: Any) -> Any:
        if self.is_open() and any(isinstance(x, (Rows, Refused)) for x in (a, b)):
            return self._alone(call, lambda: [chosen(call, condition, a, b)])[0]
        return chosen(call, condition, a, b)


class _Hand:
    """Hands what the body of a loop gives to the side around it."""

    def __init__(self, call: Call, path: tuple[tuple[Any, bool], ...]) -> None:
        self._call, self._path = call, path
        self.values: list[Any] = []  # that the body gives
        self.rows: list[Any] = []  # those, of all rounds
        self.builds: list[Callable[[], Any]] = []
        self._conditions: dict[int, Callable[[], Any]] = {}  # of forks in the body

    def take(self, found: list[Any]) -> None:
        self.builds = [self._taken(x) for x in found]

    def _given(self, value: Any) -> Callable[[], Any]:
        number = len(self.values)
        self.values.append(value)
        return lambda: self.rows[number]

    def _taken(self, x: Any) -> Callable[[], Any]:
        if isinstance(x, Fork):
            condition, sides = self._condition(x.condition), [self._taken(side) for side in x.sides]
            return lambda: Fork(condition(), (sides[0](), sides[1]()))
        if isinstance(x, Rows):
            return self._rows_in_rows(x)
        if isinstance(x, Refused) or not self._call.is_inner(x):
            return lambda: x
        value = self._call.value(x)
        row, sizes = self._given(value), self._outer(value.shape)
        return lambda: Rows(row(), sizes, self._path)

    def _rows_in_rows(self, x: Rows) -> Callable[[], Any]:
        """Rows of a loop in the body as those of both."""
        row, sizes = self._given(x.rows), self._outer(x.sizes)
        path = [(self._condition(condition), holds) for condition, holds in x.path]

        def build() -> Rows:
            each = row()
            count, inner, *shape = each.shape
            flat = self._call.reshape(each, [count * inner, *shape])
            return Rows(flat, sizes, tuple((condition(), holds) for condition, holds in path))

        return build

    def _condition(self, condition: Any) -> Callable[[], Any]:
        """A condition of the body outside it, where it is false if the body does not run."""
        if not self._call.is_inner(condition):
            return lambda: condition
        if id(condition) not in self._conditions:
            row = self._given(condition)
            self._conditions[id(condition)] = cache(lambda: self._call.create("any", [row()], axes=[0]))
        return self._conditions[id(condition)]

    def _outer(self, sizes: Sequence[Size | None]) -> list[Size | None]:
        """None for sizes that are found in the body."""
        return [None if isinstance(size, Dim) and self._call.is_inner(size) else size for size in sizes]


def _first_fork(values: Sequence[Any]) -> Fork | None:
    return next((x for x in values if isinstance(x, Fork)), None)


def _fork(condition: Any, *sides: Any) -> Fork:
    fork = Fork(condition, (sides[0], sides[1]))
    if _count(fork) > _MOST_SIDES:
        raise Unsupported(
            f"one of more than {_MOST_SIDES} values unlike in rank, as conditions computed when the model runs "
            "say; give the sizes or inputs that decide them by fix="
        )
    return fork


def _count(x: Any) -> int:
    return sum(map(_count, x.sides)) if isinstance(x, Fork) else int(not isinstance(x, Refused))


def _is_fact(array: Array) -> bool:
    return array.dtype.kind in "biuO" and array.size <= _MOST_FACTS


def _are_shapes(a: Any, b: Any) -> bool:
    """Whether both are few integers, unlike in number: shapes of values that are unlike in rank."""
    types = [_type_of(x) for x in (a, b) if not isinstance(x, (*NESTED, Refused))]
    few = all(
        dtype in ("i32", "i64") and len(shape) == 1 and isinstance(shape[0], int) and shape[0] <= _MOST_FACTS
        for dtype, shape in types
    )
    return few and len(types) == 2 and types[0] != types[1]


def _type_of(x: Any) -> tuple[str, list[Size]]:
    return (x.rows.dtype, list(x.rows.shape)[1:]) if isinstance(x, Rows) else (x.dtype, list(x.shape))


def chosen(call: Call, condition: Any, a: Any, b: Any) -> Any:
    """What the condition picks of the two, of which nodes run that the sides have. Unsupported for unlike ones."""
    if isinstance(a, Nothing) and isinstance(b, Nothing):
        return a
    if isinstance(a, (Maybe, Nothing)) or isinstance(b, (Maybe, Nothing)):
        there = chosen(call, condition, *(is_there(call, x) for x in (a, b)))
        values = [x.value if isinstance(x, Maybe) else x for x in (a, b) if not isinstance(x, Nothing)]
        return Maybe(there, values[0] if len(values) == 1 else chosen(call, condition, *values))
    if isinstance(a, Items) and isinstance(b, Items) and len(a.values) == len(b.values):
        try:
            return Items(tuple(chosen(call, condition, x, y) for x, y in zip(a.values, b.values, strict=True)), a.dtype)
        except Unsupported:  # of tensors unlike in rank: as those of any rank
            pass
    if isinstance(a, (Items, Tensors)) and isinstance(b, (Items, Tensors)):
        both = [packed(call, x) for x in (a, b)]
        pairs = [x.values for x in both], [x.shapes for x in both]
        values, shapes = (_one_of(call, condition, *pair) for pair in pairs)
        return joint(both, values, shapes)
    if isinstance(a, Text) and isinstance(b, Text) and len(a.shape) == len(b.shape):
        data, spans = joined(call, [a, b])
        return Text(data, _one_of(call, condition, *spans))
    if isinstance(a, Complex) and isinstance(b, Complex) and len(a.shape) == len(b.shape):
        return Complex(chosen(call, condition, a.real, b.real), chosen(call, condition, a.imag, b.imag))
    if isinstance(a, Refused) or isinstance(b, Refused):
        return _only(call, condition, a, b)
    a, b = (x if isinstance(x, Rows) else call.value(x) for x in (a, b))
    types = [_type_of(x) for x in (a, b)]
    if types[0][0] != types[1][0] or len(types[0][1]) != len(types[1][1]):
        found = " or ".join(f"{dtype}{shape}" for dtype, shape in types)
        raise Unsupported(
            f"a value whose rank or element type depends on a condition computed when the model runs: {found}; "
            "give the sizes or inputs that decide it by fix="
        )
    return _one_of(call, condition, a, b)


def _one_of(call: Call, condition: Any, a: Any, b: Any) -> Any:
    """One of two tensors of one rank."""
    if not isinstance(a, Rows) and not isinstance(b, Rows) and list(a.shape) == list(b.shape):
        return call.create("where", [condition, a, b])
    rows = [_as_rows(call, x) for x in (a, b)]
    pairs = zip(*(x.rows.shape[1:] for x in rows), strict=True)
    shape = [m if m == n and isinstance(m, int) else call.found_size() for m, n in pairs]
    y = call.create("choose", [condition, *(x.rows for x in rows)], sizes=[1, *shape])
    said = [m if m == n else None for m, n in zip(*(x.sizes for x in rows), strict=True)]
    return with_sizes(call, call.reshape(y, shape), said)


def _as_rows(call: Call, x: Any) -> Rows:
    return x if isinstance(x, Rows) else Rows(call.reshape(x, [1, *x.shape]), list(x.shape), ())


def _of_rank(x: Any, rank: int | None) -> Any:
    """A side; refused where its rank is not the one that there must be."""
    if rank is None or isinstance(x, (*NESTED, Refused)):
        return x
    _, shape = _type_of(x)
    return x if len(shape) == rank else Refused(f"a value of {len(shape)} axes, where the model declares {rank}")


def _require(call: Call, condition: Any, holds: bool, refused: Refused) -> None:
    """Has a run end where the condition does not hold, or where it does, for this reason."""
    taken = condition if holds else call.create("logical_not", [condition])
    call.create("require", [taken], demand=f"other sizes than lead to this: {refused.reason.replace(';', ',')}")


def _only(call: Call, condition: Any, a: Any, b: Any) -> Any:
    """What one side has where the other one has nothing: a run that takes the other one ends."""
    x, holds = (b, False) if isinstance(a, Refused) else (a, True)
    _require(call, condition, holds, b if holds else a)
    if not isinstance(x, Rows):
        x = _as_rows(call, call.value(x))
        taken = condition if holds else call.create("logical_not", [condition])
        kept = call.create("compress", [x.rows, call.reshape(taken, [1])], axis=0, count=call.found_size(0, 1))
        x = Rows(kept, x.sizes, ())
    one = with_sizes(call, x.rows, [1, *x.sizes])
    return call.reshape(one, one.shape[1:])
