"""All that a model uses and hetnn lacks, told at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hetnn.errors import Unsupported
from hetnn.report.text import count


def lacking(problems: Mapping[str, Sequence[str]]) -> Unsupported:
    """Of what is lacking, each with the places in the model that use it."""
    rows = [
        f"\n  {what} ({count(len(places), 'time')}) at {', '.join(dict.fromkeys(places))}"
        for what, places in problems.items()
    ]
    return Unsupported(
        "the model uses operators that hetnn lacks. Replace them or run those parts elsewhere:" + "".join(rows)
    )
