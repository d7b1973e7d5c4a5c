"""Builds the wheels that are published: for each Python one that runs wherever glibc is 2.28 or newer.

python tools/build_wheels.py [PYTHON...] [--folder dist] [--build build/wheels]

PYTHON are interpreters, each with pip, scikit-build-core and pybind11; without any, those of python3.10 to python3.14
that are there. The core is compiled once; for another Python only the bindings are. Where this machine's glibc is
newer, as outside of a manylinux_2_28 container, libraries are linked to the names that glibc 2.28 had, which the
package `ziglang` knows, and hold libstdc++ themselves. auditwheel then looks that no newer symbol is asked for.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GLIBC = (2, 28)
PLATFORM = "manylinux_2_28_x86_64"
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
# gcc's headers ask a name of glibc 2.32 whether there is but one thread; that there are more is always safe to say.
SHIM = '__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;\n'


def stubs(build: Path) -> list[Path]:
    """Libraries with nothing but the names of glibc 2.28, as ziglang makes them for a program that it links."""
    cache = build / "glibc"
    cache.mkdir(parents=True, exist_ok=True)
    source = cache / "nothing.c"
    source.write_text("int main(void) { return 0; }\n")
    target = f"x86_64-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
    command = [
        sys.executable,
        "-m",
        "ziglang",
        "cc",
        "-target",
        target,
        str(source),
        "-o",
        str(cache / "nothing"),
        "-lm",
    ]
    subprocess.run(command, check=True, env=os.environ | {"ZIG_GLOBAL_CACHE_DIR": str(cache)})
    (libc,) = cache.glob("o/*/libc.so.6")
    (rest,) = cache.glob("o/*/libc_nonshared.a")
    return [*(libc.parent / f"lib{name}" for name in ("m.so.6", "c.so.6", "pthread.so.0", "dl.so.2", "ld.so.2")), rest]


def of_compiler(question: str) -> str:
    return subprocess.run(["c++", question], capture_output=True, text=True, check=True).stdout.strip()


def old_glibc(build: Path) -> list[str]:
    """What CMake is told so that libraries ask for no newer glibc than that."""
    shim = build / "glibc" / "shim.o"
    libraries = stubs(build)
    subprocess.run(["cc", "-fPIC", "-c", "-x", "c", "-", "-o", shim], input=SHIM, text=True, check=True)
    machine = of_compiler("-print-multiarch")
    group = [of_compiler("-print-file-name=libstdc++.a"), "-lgcc", "-lgcc_s", *map(str, libraries), str(shim)]
    flags = "-nodefaultlibs -Wl,--gc-sections -Wl,-u,__cxa_pure_virtual"
    return [
        f"-Ccmake.define.CMAKE_SHARED_LINKER_FLAGS={flags}",
        f"-Ccmake.define.CMAKE_MODULE_LINKER_FLAGS={flags}",
        f"-Ccmake.define.CMAKE_CXX_STANDARD_LIBRARIES=-Wl,--start-group {' '.join(group)} -Wl,--end-group",
        # CMake's trials are not linked; it learns the folders of libraries here instead.
        "-Ccmake.define.CMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY",
        f"-Ccmake.define.CMAKE_LIBRARY_ARCHITECTURE={machine}",
        # The system's shared one asks for the system's glibc.
        f"-Ccmake.define.SQLite3_LIBRARY={of_compiler('-print-file-name=libsqlite3.a')}",
    ]


def is_newer_here() -> bool:
    name, version = platform.libc_ver()
    return name != "glibc" or tuple(map(int, version.split(".")[:2])) > GLIBC


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    parser.add_argument("--folder", type=Path, default=ROOT / "dist")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "wheels")
    args = parser.parse_args()
    pythons = args.pythons or [name for v in VERSIONS if (name := shutil.which(f"python{v}"))]
    newer = is_newer_here()
    settings = old_glibc(args.build) if newer else []
    for python in pythons:
        made = args.build / "made"
        shutil.rmtree(made, ignore_errors=True)
        wheel = [python, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(made), str(ROOT)]
        subprocess.run([*wheel, f"-Cbuild-dir={args.build / 'cmake'}", *settings], check=True)
        finish = [sys.executable, ROOT / "tools" / "finish_wheel.py", *made.glob("*.whl"), args.folder]
        linked = ["--with", "libstdcxx"] if newer else []
        subprocess.run([*finish, "--platform", PLATFORM, *linked], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
