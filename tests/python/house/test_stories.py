"""The stories fit the tree as it is, files are counted, and what does not fit is named."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import stories

ALL = stories.read_stories([])


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of one file and a story that adds another one and a line."""
    root, story = tmp_path / "root", tmp_path / "stories" / "greeting"
    (story / "new" / "house").mkdir(parents=True)
    (story / "new" / "house" / "guest.txt").write_text("hello\n")
    root.mkdir()
    (root / "list.txt").write_text("one\ntwo\n")
    row = {"file": "list.txt", "after": "one", "text": ["guest"]}
    told = {"adds": "a guest", "own": [], "bound": 2, "lines": [row], "targets": [], "check": []}
    (story / "story.json").write_text(json.dumps(told))
    monkeypatch.setattr(stories, "ROOT", root)
    monkeypatch.setattr(stories, "STORIES", tmp_path / "stories")
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "list.txt").write_text("one\ntwo\n")
    return copy


SOURCES = [(story, file) for story in ALL for file in story.new_files if file.suffix == ".cpp"]


@pytest.mark.parametrize(("story", "file"), SOURCES, ids=[str(file) for _, file in SOURCES])
def test_its_new_files_are_written_for_the_tree_as_it_is(story: stories.Story, file: Path) -> None:
    """What is built takes minutes (`make stories`); whether types and names are those that there are, seconds."""
    includes = [f"-I{folder}" for folder in (story.folder / "new" / "cpp", stories.ROOT / "cpp")]
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-Wno-restrict"]
    source = story.folder / "new" / file
    command = [os.environ.get("CXX", "c++"), "-std=gnu++20", "-fsyntax-only", *warnings, *includes, str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_there_are_stories() -> None:
    assert {"device", "elementwise_operator", "pass", "rewrite_rule"} <= {story.name for story in ALL}


@pytest.mark.parametrize("story", ALL, ids=lambda story: story.name)
def test_a_story_fits_the_tree(story: stories.Story, tmp_path: Path) -> None:
    for row in story.lines:
        stories._copy(stories.ROOT / row["file"], tmp_path / row["file"])
    with stories.told(story, tmp_path):
        for file in story.new_files:
            assert (tmp_path / file).is_file()
        for row in story.lines:
            assert "\n".join([row["after"], *row["text"]]) in (tmp_path / row["file"]).read_text()
    assert all(
        (tmp_path / row["file"]).read_bytes() == (stories.ROOT / row["file"]).read_bytes() for row in story.lines
    )
    assert not any((tmp_path / file).exists() for file in story.new_files)


def test_files_outside_a_storys_own_folders_are_counted(tree: Path) -> None:
    (story,) = stories.read_stories([])
    assert story.touched == [Path("house/guest.txt"), Path("list.txt")]
    with stories.told(story, tree):
        assert (tree / "list.txt").read_text() == "one\nguest\ntwo\n"
        assert (tree / "house/guest.txt").read_text() == "hello\n"
    assert (tree / "list.txt").read_text() == "one\ntwo\n"
    told = json.loads((story.folder / "story.json").read_text())
    (story.folder / "story.json").write_text(json.dumps({**told, "own": ["house"]}))
    assert stories.read_stories(["greeting"])[0].touched == [Path("list.txt")]


def test_what_does_not_fit_is_named(tree: Path) -> None:
    (story,) = stories.read_stories([])
    (tree / "list.txt").write_text("two\n")
    with pytest.raises(stories.StoryFailed, match=r"list\.txt has no line 'one'"), stories.told(story, tree):
        pass
    (tree / "house").mkdir(exist_ok=True)
    (tree / "house/guest.txt").write_text("mine\n")
    with pytest.raises(stories.StoryFailed, match=r"house/guest\.txt is there already"), stories.told(story, tree):
        pass
    with pytest.raises(SystemExit, match="there is no story 'other'; there are greeting"):
        stories.read_stories(["other"])


def test_a_failed_check_shows_what_it_said(tree: Path) -> None:
    with pytest.raises(stories.StoryFailed, match=r"the check failed: sh -c echo no; exit 1\nno"):
        stories._run(["sh", "-c", "echo no; exit 1"], tree, "the check")
