"""Runs clang-tidy over the C++ sources, in parallel: all of them, or those that differ from the last commit.

python tools/run_clang_tidy.py --build BUILD_FOLDER [--changed] [--program clang-tidy-14]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def sources(changed_only: bool) -> list[str]:
    """C++ files of the floors and the bindings, relative to the root."""
    if changed_only:
        listing = subprocess.run(
            ["git", "diff", "--name-only", "--diff-filter=d", "HEAD"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        files = [Path(line) for line in listing.stdout.splitlines()]
    else:
        files = [file.relative_to(ROOT) for folder in ("cpp", "bindings") for file in (ROOT / folder).rglob("*.cpp")]
    return sorted(str(file) for file in files if file.suffix == ".cpp" and file.parts[0] in ("cpp", "bindings"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="folder with compile_commands.json")
    parser.add_argument("--program", default="clang-tidy")
    parser.add_argument("--changed", action="store_true", help="only files that differ from the last commit")
    args = parser.parse_args()

    def tidy(file: str) -> tuple[int, str]:
        command = [args.program, "--quiet", "-p", args.build, "--extra-arg=-Wno-unknown-warning-option", file]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        return done.returncode, done.stdout

    files = sources(args.changed)
    failed = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, (status, output) in zip(files, pool.map(tidy, files), strict=True):
            if status:
                failed.append(file)
                print(output or f"{file}: {args.program} failed", flush=True)
    print(f"clang-tidy: {len(files)} files, {len(failed)} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
