"""How often each fault is tried: `make fault` says a hundred times, other runs of the tests a few."""

import os

ROUNDS = int(os.environ.get("HETNN_FAULT_ROUNDS", "4"))
