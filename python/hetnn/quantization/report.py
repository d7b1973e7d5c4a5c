"""What quantizing decided and what it costs, value by value."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from hetnn.errors import InvalidModel
from hetnn.report.shown import Shown
from hetnn.report.text import count, table


@dataclass(frozen=True)
class ValueRow:
    """A value that became integers: real = scale * (integer - zero_point).

    low, high: the range that integers cover; clipped: share of the samples' numbers beyond it; rounding_db: power of
    the numbers over that of what its own rounding changes; noise_db: over that of all that differs from the float
    network, measured on samples (None: not measured).
    """

    value: str
    layer: str
    op: str
    loc: str
    scale: float
    zero_point: int
    low: float
    high: float
    clipped: float
    rounding_db: float
    noise_db: float | None = None


@dataclass(repr=False)
class QuantizeReport(Shown):
    """What `hetnn.quantize` did. `str` gives tables, `as_dict` what JSON can hold, `svg` a picture of the noise."""

    scheme: str
    calibrator: str
    samples: int
    values: list[ValueRow] = field(default_factory=list)
    weights_db: dict[str, float] = field(default_factory=dict)  # by layer: weights over what rounding them changes
    sensitivity_db: dict[str, float] = field(default_factory=dict)  # by layer: outputs over noise, it alone quantized
    kept_float: dict[str, str] = field(default_factory=dict)  # by node: why
    outputs_db: dict[str, float] = field(default_factory=dict)  # by output: signal over noise on the samples
    cosine: dict[str, float] = field(default_factory=dict)  # by output, the least of the samples

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain dicts and lists."""
        return asdict(self)

    @property
    def worst_layer(self) -> str:
        """The layer that, quantized alone, leaves the most noise in the outputs. InvalidModel where that was not asked
        for (`quantize(..., sensitivity=True)`).
        """
        if not self.sensitivity_db:
            raise InvalidModel("no layer was quantized alone; ask for it: hetnn.quantize(..., sensitivity=True).")
        return min(self.sensitivity_db, key=lambda layer: self.sensitivity_db[layer])

    def svg(self) -> str:
        """A picture of the noise: a bar a value, in the order of the network."""
        from hetnn.quantization.picture import noise_svg

        return noise_svg(self)

    def _card(self) -> str:
        from hetnn.report.card import framed

        return framed(self.svg(), f"<pre>{html.escape(str(self))}</pre>")

    def __str__(self) -> str:
        rows = [
            [
                row.value,
                row.op,
                f"{row.scale:.4g}",
                str(row.zero_point),
                f"[{row.low:.4g}, {row.high:.4g}]",
                f"{row.clipped:.3%}",
                f"{row.rounding_db:.1f}",
                "" if row.noise_db is None else f"{row.noise_db:.1f}",
            ]
            for row in self.values
        ]
        header = ["value", "of", "scale", "zero", "range", "clipped", "rounding dB", "noise dB"]
        ranges = f"ranges by {self.calibrator} over" if self.values else "noise of"
        lines = [f"{self.scheme}, {ranges} {count(self.samples, 'sample')}"]
        if rows:
            lines.append(table(header, rows))
        if self.weights_db:
            header = ["layer", "weights dB", *(["alone dB"] if self.sensitivity_db else [])]
            lines.append(table(header, [self._layer(layer) for layer in self.weights_db]))
        lines += [f"{layer} stays float: {why}" for layer, why in self.kept_float.items()]
        lines += [_output(name, db, self.cosine) for name, db in self.outputs_db.items()]
        return "\n".join(lines)

    __repr__ = __str__

    def _layer(self, layer: str) -> list[str]:
        alone = self.sensitivity_db.get(layer)
        cells = [layer, f"{self.weights_db[layer]:.1f}", *([] if alone is None else [f"{alone:.1f}"])]
        return cells if alone is not None or not self.sensitivity_db else [*cells, ""]


def _output(name: str, db: float, cosine: Mapping[str, float]) -> str:
    return f"output {name}: {db:.1f} dB over its noise, cosine to the float network at least {cosine[name]:.5f}"
