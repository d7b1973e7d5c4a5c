"""Which layers make the noise, and the fewest that must stay float for a bound to hold."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from hetnn.errors import Unsupported
from hetnn.progress import part
from hetnn.quantization.calibrated import Calibrated
from hetnn.quantization.network import layers_of
from hetnn.quantization.observe import Noise


@dataclass(frozen=True)
class Bound:
    """What every output must reach against the float network; None: no matter."""

    db: float | None
    cosine: float | None

    def holds(self, outputs: list[Noise]) -> bool:
        """For noise measured on samples."""
        return all(
            (self.db is None or noise.db >= self.db) and (self.cosine is None or noise.cosine >= self.cosine)
            for noise in outputs
        )

    def __str__(self) -> str:
        words = [f"{self.db:g} dB"] if self.db is not None else []
        return " and ".join([*words, f"a cosine of {self.cosine:g}"] if self.cosine is not None else words)


def layer_noise(calibrated: Calibrated) -> dict[str, list[Noise]]:
    """By layer: what the outputs lose where it alone is quantized."""
    layers = calibrated.choice().nodes.keys() & layers_of(calibrated.network, ()).keys()
    out: dict[str, list[Noise]] = {}
    for k, layer in enumerate(node.name for node in calibrated.network.nodes if node.name in layers):
        with part(k, len(layers)):
            choice = calibrated.choice(layers - {layer})
            out[layer] = calibrated.noise(choice, calibrated.graph(choice))[0]
    return out


def find_kept(calibrated: Calibrated, of_layers: Mapping[str, list[Noise]], bound: Bound) -> dict[str, str]:
    """The layers that stay float, and why: of those that make the most noise alone, as few as it takes.

    Noise of layers adds up, roughly, so the fewest are looked for among the first of that order, by halving.
    Unsupported where the bound does not hold even with all layers in float.
    """
    order = sorted(of_layers, key=lambda layer: min(noise.db for noise in of_layers[layer]))

    tries, of = itertools.count(), 1 + len(order).bit_length()

    def holds(count: int) -> bool:
        with part(next(tries), of):
            choice = calibrated.choice(order[:count])
            return bound.holds(calibrated.noise(choice, calibrated.graph(choice))[0])

    low, high = 0, len(order)
    if not holds(high):
        raise Unsupported(f"the outputs do not reach {bound} even with every layer in float. Ask for less.")
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return {
        layer: f"alone it leaves {min(noise.db for noise in of_layers[layer]):.1f} dB; {bound} asked"
        for layer in order[:low]
    }
