"""The package's page: it renders, its links lead somewhere from anywhere; the changes keep their form."""

from __future__ import annotations

import re
from importlib.metadata import metadata
from pathlib import Path

import readme_renderer.markdown

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text()
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def test_the_description_renders_as_the_index_shows_it() -> None:
    shown = readme_renderer.markdown.render(README)
    assert shown
    assert shown.count("<table") == 2
    assert "<img" in shown


def test_links_are_whole_and_lead_to_files_of_the_tree() -> None:
    home = re.escape(dict(url.split(", ") for url in metadata("hetnn").get_all("Project-URL") or [])["Homepage"])
    raw = home.replace("github", "raw.githubusercontent")
    inside = re.compile(rf"(?:{home}/(?:blob|tree)|{raw})/main/([^#]*)(?:#.*)?")
    for link in re.findall(r"\]\(([^)]*)\)", README):
        found = inside.fullmatch(link)
        assert found, f"{link} is not whole, or not of this project"
        assert (ROOT / found.group(1)).exists(), link


def test_the_readme_has_what_a_stranger_looks_for() -> None:
    headings = re.findall(r"^## (.*)", README, re.MULTILINE)
    assert {"Five lines", "What it does", "How fast", "Platforms and limits", "Installing"} <= set(headings)


def test_changes_are_by_release_date_and_kind() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    releases = [line for line in lines if line.startswith("## ")]
    assert releases
    dated = re.compile(r"## \d+\.\d+\.\d+ - (?:\d{4}-\d\d-\d\d|not released yet)")
    assert [line for line in releases if not dated.fullmatch(line)] == []
    kinds: list[str] = []
    for line in lines:
        if line.startswith("## "):
            kinds = []
        elif line.startswith("### "):
            kinds.append(line.removeprefix("### "))
            assert kinds == [kind for kind in KINDS if kind in kinds], f"{kinds} are not in the order of {KINDS}"
