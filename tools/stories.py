"""Plays stories on a scratch copy of the tree: how many files it takes to add a thing, and whether it then works.

    python tools/stories.py [NAME…] [--count]

A story is a folder of tests/stories/: `story.json` says what it adds, the folders of its own, the lines put into files
that are there (behind which line), what is built and how it is checked; `new/` holds its new files. Files outside its
own folders are counted against its bound. With --count nothing is built.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STORIES = ROOT / "tests" / "stories"
SCRATCH = ROOT / "build" / "stories"


class StoryFailed(Exception):
    """A story that cannot be told of the tree as it is."""


@dataclass(frozen=True)
class Story:
    """What is added, and how many files that may touch."""

    name: str
    adds: str
    own: tuple[str, ...]
    bound: int
    lines: tuple[dict[str, Any], ...]
    targets: tuple[str, ...]
    check: tuple[list[str], ...]

    @property
    def folder(self) -> Path:
        return STORIES / self.name

    @property
    def new_files(self) -> list[Path]:
        new = self.folder / "new"
        return sorted(file.relative_to(new) for file in new.rglob("*") if file.is_file())

    @property
    def touched(self) -> list[Path]:
        """Files that it adds or changes, but for those in folders of its own."""
        files = {*self.new_files, *(Path(row["file"]) for row in self.lines)}
        return sorted(file for file in files if not any(file.is_relative_to(folder) for folder in self.own))


def read_stories(names: list[str]) -> list[Story]:
    """The stories of these names; of none: all."""
    there = sorted(file.parent.name for file in STORIES.glob("*/story.json"))
    unknown = sorted(set(names) - set(there))
    if unknown:
        raise SystemExit(f"there is no story '{unknown[0]}'; there are {', '.join(there)}")
    out = []
    for name in names or there:
        told = json.loads((STORIES / name / "story.json").read_text(encoding="utf-8"))
        parts: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in told.items()}
        out.append(Story(name=name, **parts))
    return out


def _copy(source: Path, target: Path) -> None:
    """Copies a file unless it is there already, so that builds keep what did not change."""
    if target.is_file() and target.read_bytes() == source.read_bytes():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def copy_tree(tree: Path) -> None:
    """The files that git knows or would add, under `tree`, and no others but what was built there."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    files = {Path(os.fsdecode(name)) for name in listing.stdout.split(b"\0") if name}
    for file in files:
        if (ROOT / file).is_file():
            _copy(ROOT / file, tree / file)
    for folder in ("cpp", "bindings", "tests/cpp"):
        for there in (tree / folder).rglob("*"):
            if there.is_file() and there.relative_to(tree) not in files:
                there.unlink()


@contextmanager
def told(story: Story, tree: Path) -> Iterator[None]:
    """The tree with the story in it; afterwards as it was."""
    changed = {Path(row["file"]) for row in story.lines}
    try:
        for file in story.new_files:
            if (tree / file).exists():
                raise StoryFailed(f"{file} is there already")
            _copy(story.folder / "new" / file, tree / file)
        for row in story.lines:
            file = tree / row["file"]
            before = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
            if row["after"] not in before:
                raise StoryFailed(f"{row['file']} has no line '{row['after'].strip()}'")
            at = before.index(row["after"]) + 1
            file.write_text("\n".join([*before[:at], *row["text"], *before[at:]]) + "\n", encoding="utf-8")
        yield
    finally:
        for file in story.new_files:
            if not (ROOT / file).exists():
                (tree / file).unlink(missing_ok=True)
        for file in changed:
            if (ROOT / file).is_file():
                _copy(ROOT / file, tree / file)


def _run(command: list[str], tree: Path, what: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(tree / "python"), "HETNN_CALIBRATION": "off", "HETNN_TUNING": "off"}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise StoryFailed(f"{what} failed: {' '.join(command)}\n{(done.stdout + done.stderr)[-4000:]}")


def play(story: Story, tree: Path) -> None:
    """Builds the tree with the story in it and checks what was added."""
    build = tree / "build" / "release"
    if not (build / "build.ninja").exists():
        configure = ["cmake", "-S", str(tree), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
        _run([*configure, "-DHETNN_BUILD_TESTS=ON", f"-DPython_EXECUTABLE={sys.executable}"], tree, "configuring")
    _run(["cmake", "--build", str(build), "--target", *story.targets], tree, "the build")
    names = {"python": sys.executable, "build": str(build), "story": str(story.folder)}
    for command in story.check:
        _run([part.format(**names) for part in command], tree, "the check")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="stories to play (default: all)")
    parser.add_argument("--count", action="store_true", help="count files; build nothing")
    args = parser.parse_args()
    tree, failed = SCRATCH / "tree", 0
    copy_tree(tree)
    for story in read_stories(args.names):
        count = len(story.touched)
        verdict = "" if count <= story.bound else f"more than {story.bound} files: {', '.join(map(str, story.touched))}"
        try:
            with told(story, tree):
                if not args.count:
                    play(story, tree)
        except StoryFailed as error:
            verdict = f"{verdict}\n{error}".strip()
        failed += bool(verdict)
        print(
            f"{story.name}: {story.adds}: {count} of {story.bound} files{'; ' if verdict else ''}{verdict}", flush=True
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
