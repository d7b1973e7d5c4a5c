"""Makes a built wheel one to publish: libraries inside, the licences of all that is linked, the static archive apart.

python tools/finish_wheel.py WHEEL FOLDER --built BUILD [--platform manylinux_2_28_x86_64] [--with NAME...]

auditwheel puts foreign libraries in and names the platform; `--platform` asks for one, and ends with an error where a
symbol is newer. Licence texts are read from where the packages keep them on this machine; `--with` names more of them.
The static archive, which only who links it needs, lies in FOLDER/apart afterwards, and in its folder `debug` what names
the functions of the wheel's libraries, of which those in BUILD still have it (`set debug-file-directory` of gdb).
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import files as files_of
from pathlib import Path

# What is compiled in or comes along -> where Debian's packages, and those of manylinux images, keep its licence.
LICENCES = {
    "eigen": ("/usr/share/doc/libeigen3-dev/copyright", "/usr/share/licenses/eigen3*/COPYING*"),
    "nlohmann-json": ("/usr/share/doc/nlohmann-json3-dev/copyright", "/usr/share/licenses/json*/LICENSE*"),
    "highway": ("/usr/share/doc/libhwy-dev/copyright", "/usr/share/licenses/highway*/LICENSE*"),
    "openssl": ("/usr/share/doc/libssl-dev/copyright", "/usr/share/licenses/openssl*/LICENSE*"),
    "sqlite": ("/usr/share/doc/libsqlite3-dev/copyright", "/usr/share/licenses/sqlite*/*"),
    "libstdcxx": ("/usr/share/doc/libstdc++-*-dev/copyright", "/usr/share/licenses/libstdc++*/COPYING.RUNTIME"),
}
ALWAYS = ("eigen", "nlohmann-json", "highway", "openssl", "sqlite")
ARCHIVE = "hetnn/lib/libhetnn_runtime.a"


def licence(name: str) -> bytes:
    """The text that the installed package has."""
    for pattern in LICENCES[name]:
        for path in sorted(Path("/").glob(pattern.lstrip("/"))):
            return path.read_bytes()
    sys.exit(f"the licence of {name} is at none of {', '.join(LICENCES[name])}; install its package")


def pybind11_licence() -> bytes:
    """As pip's package of it has it, else Debian's."""
    for path in files_of("pybind11") or []:
        if path.name == "LICENSE":
            return path.read_binary()
    return Path("/usr/share/doc/pybind11-dev/copyright").read_bytes()


def record_line(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def keep_symbols(wheel: Path, built: Path, folder: Path) -> None:
    """Of each library of the wheel a file under the number of its build, as debuggers look for it."""
    with zipfile.ZipFile(wheel) as opened:
        names = {Path(name).name for name in opened.namelist() if ".so" in Path(name).suffixes}
    for library in sorted(path for path in built.rglob("*.so*") if path.name in names and not path.is_symlink()):
        notes = subprocess.run(["readelf", "-n", library], check=True, capture_output=True, text=True).stdout
        number = notes.partition("Build ID: ")[2].split()[0]
        out = folder / ".build-id" / number[:2] / f"{number[2:]}.debug"
        out.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["objcopy", "--only-keep-debug", library, out], check=True)


def finished(wheel: Path, folder: Path, more: list[str]) -> Path:
    """Writes the wheel anew into `folder`: without the archive, with licences, and a record of that."""
    texts = {name: licence(name) for name in (*ALWAYS, *more)} | {"pybind11": pybind11_licence()}
    (folder / "apart").mkdir(parents=True, exist_ok=True)
    out = folder / wheel.name
    record = ""
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        info = next(row.filename.partition("/")[0] for row in old.infolist() if ".dist-info/" in row.filename)
        added = {f"licenses/third_party/{name}.txt": text for name, text in sorted(texts.items())}
        for row in old.infolist():
            if row.filename == ARCHIVE:
                (folder / "apart" / Path(ARCHIVE).name).write_bytes(old.read(row))
                continue
            if row.filename == f"{info}/RECORD":
                continue
            data = old.read(row)
            if row.filename == f"{info}/METADATA":
                own = b"License-File: LICENSE\n"
                data = data.replace(own, own + b"".join(f"License-File: {n[9:]}\n".encode() for n in added), 1)
            kept = zipfile.ZipInfo(row.filename, row.date_time)
            kept.external_attr, kept.compress_type = row.external_attr, zipfile.ZIP_DEFLATED
            new.writestr(kept, data)
            record += record_line(row.filename, data)
        for name, text in added.items():
            new.writestr(f"{info}/{name}", text)
            record += record_line(f"{info}/{name}", text)
        new.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--built", type=Path, required=True, metavar="BUILD", help="folder that it was built in")
    parser.add_argument("--platform", metavar="TAG", help="as auditwheel names them; the oldest that fits by default")
    parser.add_argument("--with", dest="more", nargs="*", default=[], choices=sorted(LICENCES), metavar="NAME")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as repaired:
        platform = ["--plat", args.platform] if args.platform else []
        subprocess.run(["auditwheel", "repair", "-w", repaired, *platform, args.wheel], check=True)
        (wheel,) = Path(repaired).glob("*.whl")
        out = finished(wheel, args.folder, args.more)
    keep_symbols(out, args.built, args.folder / "apart" / "debug")
    print(f"{out}: {out.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
