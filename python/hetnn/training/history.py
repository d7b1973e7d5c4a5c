"""Losses of a training, and their picture."""

from __future__ import annotations

import itertools
import statistics
from dataclasses import dataclass, field

from hetnn.report.text import count

_WIDTH, _HEIGHT, _MARGIN = 480, 200, 36


@dataclass
class History:
    """Losses of every step, an epoch a list, and why training ended.

    `stopped` is "epochs" where all were run, "patience" where the losses no longer fell, "interrupted" after Ctrl-C,
    and empty while it goes on or where it ended with an error.
    """

    losses: list[list[float]] = field(default_factory=list)
    stopped: str = ""

    def means(self) -> list[float]:
        """The mean loss of each epoch that has a step."""
        return [statistics.fmean(epoch) for epoch in self.losses if epoch]

    def svg(self) -> str:
        """The losses over the steps as an SVG image, epochs told apart by lines."""
        steps = list(itertools.chain(*self.losses))
        high = max(steps, default=1.0)
        low = min([*steps, 0.0])
        across, down = (_WIDTH - 2 * _MARGIN) / max(1, len(steps) - 1), (_HEIGHT - 2 * _MARGIN) / ((high - low) or 1.0)
        points = " ".join(
            f"{_MARGIN + k * across:.1f},{_HEIGHT - _MARGIN - (y - low) * down:.1f}" for k, y in enumerate(steps)
        )
        ends = itertools.accumulate(len(epoch) for epoch in self.losses[:-1])
        lines = "".join(
            f'<line x1="{_MARGIN + k * across:.1f}" y1="{_MARGIN}" x2="{_MARGIN + k * across:.1f}" '
            f'y2="{_HEIGHT - _MARGIN}" stroke="#ccc"/>'
            for k in ends
        )
        told = f"{count(len(steps), 'step')} in {count(len(self.losses), 'epoch')}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" font-size="12" '
            f'font-family="sans-serif">{lines}<polyline points="{points}" fill="none" stroke="#06c"/>'
            f'<text x="4" y="{_MARGIN}">{high:.3g}</text><text x="4" y="{_HEIGHT - _MARGIN}">{low:.3g}</text>'
            f'<text x="{_MARGIN}" y="{_HEIGHT - 8}">{told}</text></svg>'
        )

    def _repr_svg_(self) -> str:
        return self.svg()
