"""Names of what a file adds to those of the graph."""

from __future__ import annotations


def fresh_name(taken: set[str], wanted: str) -> str:
    """The name that is wanted, or with a number behind it; it is taken then."""
    name, k = wanted, 0
    while name in taken:
        k += 1
        name = f"{wanted}_{k}"
    taken.add(name)
    return name
