"""The command line `hetnn`: one file per command in this folder, each with `add_arguments` and `run`."""

from __future__ import annotations

from hetnn.cli.main import main

__all__ = ["main"]
