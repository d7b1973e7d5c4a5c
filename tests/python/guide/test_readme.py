"""The package's page: it renders, its links lead somewhere from anywhere; the changes keep their form."""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import metadata
from pathlib import Path

import readme_renderer.markdown

import package_page

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text()
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
LINK = re.compile(r"\]\(([^)]*)\)")


def test_the_description_renders_as_the_index_shows_it() -> None:
    shown = readme_renderer.markdown.render(package_page.description())
    assert shown
    assert shown.count("<table") == 2
    assert "<img" in shown


def test_links_lead_to_files_of_the_tree_and_are_whole_in_the_package() -> None:
    links = LINK.findall(README)
    assert links
    assert [link for link in links if "://" not in link and not (ROOT / link.partition("#")[0]).exists()] == []
    about = metadata("hetnn")
    description = about.get_payload()  # type: ignore[attr-defined]
    assert [link for link in LINK.findall(description) if "://" not in link] == []
    urls = dict(url.split(", ") for url in about.get_all("Project-URL") or [])
    assert list(urls) == ["Homepage", "Documentation", "Changelog", "Issues"]
    raw = package_page.REPOSITORY.replace("github", "raw.githubusercontent")
    assert all(url.startswith(urls["Homepage"]) for url in urls.values())
    for link, told in zip(links, LINK.findall(description), strict=True):
        assert re.fullmatch(rf"(?:{urls['Homepage']}/(?:blob|tree)|{raw})/main/{re.escape(link)}", told), told


def test_the_address_of_the_repository_stands_in_one_place() -> None:
    host = package_page.REPOSITORY.removeprefix("https://")
    found = subprocess.run(["git", "grep", "-lI", host], cwd=ROOT, capture_output=True, text=True).stdout.split()
    assert found in ([], ["tools/package_page.py"])  # none: not a checkout


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
