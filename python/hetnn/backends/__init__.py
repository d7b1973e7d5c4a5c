"""Devices of other people: what a vendor's compiler is derived from, and how it is made known.

A backend is found by its kind: given to `register_backend`, or named by an installed package as an entry point of the
group `hetnn.backends`. A target names it as `cpu+KIND` or `cpu+KIND-VARIANT`, or in a target file with its spec.
"""

from hetnn.backends.backend import Backend, Port, Reason, Run
from hetnn.backends.library import Library
from hetnn.backends.registry import backend_kinds, register_backend

__all__ = ["Backend", "Library", "Port", "Reason", "Run", "backend_kinds", "register_backend"]
