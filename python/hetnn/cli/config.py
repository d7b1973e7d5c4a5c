"""`hetnn config`: what C and C++ programs are built with, for this installation."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

import hetnn
from hetnn.cli.answer import Answer
from hetnn.errors import Unsupported


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """At most one of the three things to print."""
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--cmakedir", action="store_true", help="the folder that -Dhetnn_DIR takes")
    chosen.add_argument("--includes", action="store_true", help="the compiler's flags")
    chosen.add_argument("--libs", action="store_true", help="the linker's flags, with an rpath")


def run(args: argparse.Namespace) -> Answer:
    """What C and C++ programs are built with: `cmakedir`, `includes`, `libs`, or the one asked for.

    Unsupported where the package was not installed from a wheel.
    """
    root = Path(hetnn.__file__).resolve().parent
    lib, include = root / "lib", root / "include"
    libraries = sorted(lib.glob("libhetnn_runtime.so.*"))
    if not libraries or not (include / "hetnn" / "hetnn.h").exists():
        raise Unsupported(
            f"the package in '{root}' was not installed from a wheel, so it has no library for C and C++ beside it. "
            "Install the wheel, or build with CMake and `cmake --install BUILD --component runtime`."
        )
    rows = {
        "cmakedir": str(lib / "cmake" / "hetnn"),
        "includes": f"-I{shlex.quote(str(include))}",
        "libs": f"{shlex.quote(str(libraries[-1]))} -Wl,-rpath,{shlex.quote(str(lib))}",
    }
    asked = [name for name in rows if getattr(args, name)]
    shown = asked or list(rows)
    text = "\n".join(rows[name] if asked else f"{name}: {rows[name]}" for name in shown)
    return Answer({name: rows[name] for name in shown}, text)
