"""Elements in another order or shape, as one movement from where they were made: two shapes and a transposition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Movement:
    """Of a source whose axes are split into parts, of these sizes in the source's order; each axis of the result has
    some of them, by their places."""

    sizes: tuple[int, ...]
    axes: tuple[tuple[int, ...], ...]

    @classmethod
    def none(cls, shape: Sequence[int]) -> Movement:
        """That of a tensor that is where it was made."""
        return cls(tuple(shape), tuple((k,) for k in range(len(shape))))

    @property
    def shape(self) -> list[int]:
        """Of the result."""
        return [math.prod(self.sizes[part] for part in axis) for axis in self.axes]

    def transposed(self, perm: Sequence[int]) -> Movement:
        """And then the axes in another order."""
        return Movement(self.sizes, tuple(self.axes[k] for k in perm))

    def reshaped(self, shape: Sequence[int]) -> Movement | None:
        """And then another shape; None where a part would be cut at no whole."""
        sizes = {k: [size] for k, size in enumerate(self.sizes)}  # each part as what it is cut into
        left = [(part, self.sizes[part]) for axis in self.axes for part in axis]
        axes: list[list[tuple[int, int]]] = []  # part and which of its pieces
        for size in shape:
            axis: list[tuple[int, int]] = []
            while size > 1:
                if not left:
                    return None
                part, whole = left.pop(0)
                if whole == 1:
                    continue
                shared = math.gcd(size, whole)
                axis.append((part, len(sizes[part]) - 1))
                if shared != whole:
                    if shared != size:
                        return None
                    sizes[part][-1:] = [size, whole // size]
                    left.insert(0, (part, whole // size))
                size //= shared
            axes.append(axis)
        if any(whole != 1 for _, whole in left):
            return None
        begins = [sum(len(sizes[earlier]) for earlier in range(part)) for part in range(len(self.sizes))]
        flat = tuple(size for part in range(len(self.sizes)) for size in sizes[part])
        return Movement(flat, tuple(tuple(begins[part] + piece for part, piece in axis) for axis in axes))

    def owners(self, shape: Sequence[int]) -> list[int]:
        """Of which axis of the source each part is."""
        owners, axis, left = [], 0, shape[0]
        for size in self.sizes:
            while left == 1 and axis < len(shape) - 1:
                axis += 1
                left = shape[axis]
            owners.append(axis)
            left //= size
        return owners

    def order(self, rank: int) -> tuple[int, ...] | None:
        """The permutation of the source's axes that it is; None where it is more than that."""
        if len(self.sizes) != rank or len(self.axes) != rank or any(len(axis) > 1 for axis in self.axes):
            return None
        moved = {part for axis in self.axes for part in axis}
        others = iter(part for part in range(rank) if part not in moved)  # of one element: it is nothing which
        return tuple(axis[0] if axis else next(others) for axis in self.axes)

    def steps(self) -> tuple[list[int], list[int]]:
        """A shape for the source and the order of its axes then: parts that stay together are one, empty where nothing
        is to be transposed."""
        parts = [part for axis in self.axes for part in axis if self.sizes[part] != 1]
        runs: list[list[int]] = []
        for part in parts:
            together = bool(runs) and all(self.sizes[k] == 1 for k in range(runs[-1][-1] + 1, part))
            if together and runs[-1][-1] < part:
                runs[-1].append(part)
            else:
                runs.append([part])
        by_source = sorted(range(len(runs)), key=lambda k: runs[k][0])
        shape = [math.prod(self.sizes[part] for part in runs[k]) for k in by_source]
        order = [by_source.index(k) for k in range(len(runs))]
        return (shape, order) if order != sorted(order) else (shape, [])
