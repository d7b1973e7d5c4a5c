"""Builds the wheels that are published: for each Python one that runs wherever glibc is 2.28 or newer.

python tools/build_wheels.py [PYTHON...] [--folder dist] [--build build/wheels]

PYTHON are interpreters; without any, one of each version from 3.10 to 3.14: on the path, in pyenv, in a manylinux
container, else as uv fetches it. What is not to be had is told at the end. Each is given an environment of its own with
what building needs. The core is compiled once; for another Python only the bindings are.
Where this machine's glibc is newer, as outside of a manylinux_2_28 container, libraries are linked to the names that
glibc 2.28 had, which the package `ziglang` knows, and to those that libstdc++ had then; what GCC's headers ask of a
newer libstdc++ comes out of the static one, as in the compilers of those containers. auditwheel then looks that no
newer symbol is asked for. Each wheel is installed in an environment that has nothing else, run there, and uninstalled.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import auditwheel.policy

ROOT = Path(__file__).resolve().parent.parent
# As deep in the checkout as other builds, so that the compiler's cache has what they compiled.
BUILD = ROOT / "build" / "manylinux"
GLIBC = (2, 28)
PLATFORM = "manylinux_2_28_x86_64"
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
# gcc's headers ask a name of glibc 2.32 whether there is but one thread; that there are more is always safe to say.
SHIM = '__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;\n'

# What a wheel must do where there is nothing but it and numpy.
TRIAL = """
import importlib.util, sys
import numpy as np
import hetnn

assert importlib.util.find_spec("torch") is None
graph = '''graph @g {stage = imported} (%x: f32[1,3,8,8], %w: f32[4,3,3,3]) -> (%z) {
  %y = conv2d(%x, %w) {padding = [1,1]} : f32[1,4,8,8]
  %z = relu(%y) : f32[1,4,8,8]
}
'''
x, w = np.ones((1, 3, 8, 8), np.float32), np.ones((4, 3, 3, 3), np.float32)
exe = hetnn.compile(graph, "cpu+relu-only")
exe.save(sys.argv[1])
for y in (exe(x, w), hetnn.load(sys.argv[1])(x, w)):
    assert (y[0, 0, 1:-1, 1:-1] == 27).all(), y
import hetnn._store
"""


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


def newest_versions() -> dict[str, tuple[int, ...]]:
    """By the names of symbols' versions the newest that the platform allows, as auditwheel has them."""
    policies = json.loads((Path(auditwheel.policy.__file__).parent / "manylinux-policy.json").read_text())
    (policy,) = (one for one in policies if f"{one['name']}_x86_64" == PLATFORM)
    found: dict[str, tuple[int, ...]] = {}
    for name, versions in policy["symbol_versions"]["x86_64"].items():
        found[name] = max(tuple(map(int, v.split("."))) for v in versions if v.replace(".", "").isdigit())
    return found


def old_libstdcxx(build: Path) -> Path:
    """A library with nothing but the names that libstdc++ had on that platform."""
    newest = newest_versions()
    real = of_compiler("-print-file-name=libstdc++.so.6")
    rows = subprocess.run(["readelf", "-W", "--dyn-syms", real], capture_output=True, text=True, check=True).stdout
    by_version: dict[str, list[str]] = {}
    source = ""
    sections = {"FUNC": ".text", "OBJECT": ".data", "TLS": '.section .tbss,"awT",@nobits'}
    kinds = {"FUNC": "function", "OBJECT": "object", "TLS": "tls_object"}
    for row in rows.splitlines():
        fields = row.split()
        if len(fields) != 8 or fields[3] not in kinds or fields[6] == "UND" or "@@" not in fields[7]:
            continue
        symbol, version = fields[7].split("@@")
        name, _, number = version.partition("_")
        digits = number.split(".")
        if not all(map(str.isdigit, digits)) or tuple(map(int, digits)) > newest.get(name, ()):
            continue
        by_version.setdefault(version, []).append(symbol)
        size = int(fields[2], 0)
        source += f"{sections[fields[3]]}\n.globl {symbol}\n.type {symbol}, @{kinds[fields[3]]}\n"
        source += f".size {symbol}, {size}\n{symbol}: .zero {max(size, 1)}\n"
    folder = build / "libstdcxx"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "names.s").write_text(source + '.section .note.GNU-stack,"",@progbits\n')
    script = "".join(f"{v} {{ global: {'; '.join(names)}; }};\n" for v, names in sorted(by_version.items()))
    (folder / "names.map").write_text(script)
    out = folder / "libstdc++.so.6"
    named = ["-Wl,-soname,libstdc++.so.6", f"-Wl,--version-script={folder / 'names.map'}"]
    subprocess.run(["cc", "-shared", "-nostdlib", *named, folder / "names.s", "-o", out], check=True)
    return out


def old_sqlite(build: Path, group: list[str]) -> Path:
    """One shared library of what the system has as a static one: its own shared one asks for the system's glibc."""
    out = build / "sqlite" / "libsqlite3.so.0"
    out.parent.mkdir(parents=True, exist_ok=True)
    (out.parent / "names.map").write_text("{ global: sqlite3_*; local: *; };\n")
    whole = ["-Wl,--whole-archive", of_compiler("-print-file-name=libsqlite3.a"), "-Wl,--no-whole-archive"]
    named = ["-Wl,-soname,libsqlite3.so.0,-Bsymbolic,-s", f"-Wl,--version-script={out.parent / 'names.map'}"]
    subprocess.run(["cc", "-shared", "-nodefaultlibs", *named, *whole, *group, "-o", out], check=True)
    return out


def old_libraries(build: Path) -> list[str]:
    """What CMake is told so that libraries ask for nothing newer than the platform has."""
    shim = build / "glibc" / "shim.o"
    libraries = stubs(build)
    subprocess.run(["cc", "-fPIC", "-c", "-x", "c", "-", "-o", shim], input=SHIM, text=True, check=True)
    machine = of_compiler("-print-multiarch")
    standard = [str(old_libstdcxx(build)), of_compiler("-print-file-name=libstdc++.a")]
    group = [*standard, "-lgcc", "-lgcc_s", *map(str, libraries), str(shim)]
    flags = "-nodefaultlibs -Wl,--gc-sections -Wl,--exclude-libs,libstdc++.a"
    return [
        f"-Ccmake.define.CMAKE_SHARED_LINKER_FLAGS={flags}",
        f"-Ccmake.define.CMAKE_MODULE_LINKER_FLAGS={flags}",
        f"-Ccmake.define.CMAKE_CXX_STANDARD_LIBRARIES=-Wl,--start-group {' '.join(group)} -Wl,--end-group",
        # CMake's trials are not linked; it learns the folders of libraries here instead.
        "-Ccmake.define.CMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY",
        f"-Ccmake.define.CMAKE_LIBRARY_ARCHITECTURE={machine}",
        f"-Ccmake.define.SQLite3_LIBRARY={old_sqlite(build, [*map(str, libraries), '-lgcc'])}",
    ]


def version_of(python: str | Path) -> str:
    """As 3.12; nothing where it does not run."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def candidates(version: str) -> Iterator[str]:
    """Where an interpreter of that version may be: on the path, in pyenv, of uv, in a manylinux container."""
    for place in os.get_exec_path():
        yield os.path.join(place, f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", Path.home() / ".local/share/uv/python"))
    tag = f"cp{version.replace('.', '')}"
    folders = (pyenv.glob(f"{version}.*"), uv.glob(f"cpython-{version}.*"), Path("/opt/python").glob(f"{tag}-{tag}"))
    for folder in sorted(chain(*folders), reverse=True):
        yield str(folder / "bin" / "python")


def python_here(version: str) -> str | None:
    """The first that runs and is of that version; a name on the path may only say what is missing."""
    return next(
        (path for path in candidates(version) if os.access(path, os.X_OK) and version_of(path) == version), None
    )


def fetched(version: str) -> tuple[str | None, str]:
    """An interpreter of that version as uv fetches it; else None, and the last of what uv said."""
    uv = shutil.which("uv")
    if uv is None:
        return None, "uv, which fetches interpreters, is not installed"
    done = subprocess.run([uv, "python", "install", version], capture_output=True, text=True)
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return python_here(version), f"uv: {said[-1]}" if said else "uv has none"


def pythons_here() -> tuple[list[str], list[str]]:
    """An interpreter of each version, and a sentence for each that is neither here nor to be had."""
    found, missing = [], []
    for version in VERSIONS:
        path, why = python_here(version), ""
        if path is None:
            path, why = fetched(version)
        if path is None:
            missing.append(f"no wheel for Python {version}: it is not here, and cannot be fetched ({why})")
        else:
            found.append(path)
    return found, missing


def environment(python: str, build: Path) -> Path:
    """The interpreter of an environment of that Python which has what building needs."""
    folder = build / f"python{version_of(python)}"
    inside = folder / "bin" / "python"
    if not inside.exists():
        subprocess.run([python, "-m", "venv", folder], check=True)
    (line,) = (row for row in (ROOT / "pyproject.toml").read_text().splitlines() if row.startswith("requires = "))
    needed = ast.literal_eval(line.removeprefix("requires = "))
    install: list[str | Path] = [inside, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--upgrade"]
    subprocess.run([*install, "pip", *needed], check=True)
    return inside


def compilers() -> dict[str, str]:
    """As the environment names them, else as this Python does: under another's names all is compiled again for it."""
    return {
        variable: os.environ.get(variable) or (sysconfig.get_config_var(variable) or otherwise).split()[0]
        for variable, otherwise in (("CC", "cc"), ("CXX", "c++"))
    }


def try_out(wheel: Path, python: str, build: Path) -> None:
    """Ends with an error where the wheel does not install, run and leave without a rest in a bare environment."""
    folder = build / f"bare{version_of(python)}"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", folder], check=True)
    pip: list[str | Path] = [folder / "bin" / "python", "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", wheel.resolve()], check=True)
    subprocess.run([folder / "bin" / "python", "-I", "-c", TRIAL, folder / "net.hetnn"], check=True, cwd="/")
    subprocess.run([folder / "bin" / "hetnn", "inspect", folder / "net.hetnn"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*pip, "uninstall", "-y", "hetnn"], check=True)
    left = [*folder.glob("lib/python*/site-packages/hetnn*"), *folder.glob("bin/hetnn*")]
    if left:
        sys.exit(f"{wheel.name}: uninstalling leaves {', '.join(map(str, left))}")
    shutil.rmtree(folder)
    print(f"{wheel.name}: installed, run and uninstalled by Python {version_of(python)} alone", flush=True)


def is_newer_here() -> bool:
    name, version = platform.libc_ver()
    return name != "glibc" or tuple(map(int, version.split(".")[:2])) > GLIBC


def main() -> int | str:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    parser.add_argument("--folder", type=Path, default=ROOT / "dist")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "wheels")
    args = parser.parse_args()
    pythons, missing = (args.pythons, []) if args.pythons else pythons_here()
    newer = is_newer_here()
    settings = old_libraries(args.build) if newer else []
    print(f"building for {', '.join(map(version_of, pythons))}", flush=True)
    wheels: list[Path] = []
    for python in pythons:
        inside = environment(python, args.build)
        made = args.build / "made"
        shutil.rmtree(made, ignore_errors=True)
        settled = [f"-Cbuild-dir={BUILD}", *settings]
        wheel_of = [inside, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", made]
        subprocess.run([*wheel_of, *settled, ROOT], check=True, env=os.environ | compilers())
        (plain,) = made.glob("*.whl")
        finish = [sys.executable, ROOT / "tools" / "finish_wheel.py", plain, args.folder, "--built", BUILD]
        linked = ["--with", "libstdcxx"] if newer else []
        of_our_own = os.environ | {"LD_LIBRARY_PATH": str((args.build / "sqlite").resolve())}
        subprocess.run([*finish, "--platform", PLATFORM, *linked], check=True, env=of_our_own)
        (wheel,) = args.folder.glob(f"{'-'.join(plain.name.split('-')[:4])}-*{PLATFORM}.whl")
        try_out(wheel, python, args.build)
        wheels.append(wheel)
    for wheel in wheels:
        print(f"{wheel.stat().st_size:>12,} bytes  {wheel.name}")
    print("\n".join(missing))
    return 0 if wheels else "there is no Python to build for"


if __name__ == "__main__":
    sys.exit(main())
