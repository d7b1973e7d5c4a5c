"""Arm's Ethos-U processors as devices: `cpu+ethos-u55-256` and the other accelerators, by Arm's compiler Vela.

Needs `hetnn[ethos-u]` to compile. What is compiled runs here by its meaning, on the general processor.
"""

from hetnn.backends.ethos_u.backend import EthosU, codes, reports

__all__ = ["EthosU", "codes", "reports"]
