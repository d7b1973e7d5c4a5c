"""The guide as a site: it builds without a warning in under a minute, and reads without a network."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import site_pages

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 60


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    begin = os.times().children_user
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (
        done.stderr
    )  # links and headings that are not there are warnings, and warnings are errors
    assert os.times().children_user - begin < SECONDS
    return folder


@pytest.mark.slow
def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    fetched = re.compile(r"""(?:<script[^>]*\ssrc|<link[^>]*\shref|<img[^>]*\ssrc)=["'](?:https?:)?//[^"']*""")
    found = {page.name: fetched.findall(page.read_text()) for page in site.rglob("*.html")}
    assert {name: links for name, links in found.items() if links} == {}
    assert [sheet for sheet in site.rglob("*.css") if re.search(r"url\(.?https?:|@import", sheet.read_text())] == []


@pytest.mark.slow
def test_search_knows_every_page(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    places = {row["location"].partition("#")[0] for row in index["docs"]}
    made = {"api.html", "start.html", "operators.html", "limits.html", "glossary.html", "tutorials/index.html"}
    made |= {
        "benchmarks.html",
        "beside-others.html",
        "versioning.html",
        "command-line.html",
        "options.html",
        "json.html",
    }
    assert made | {page.replace(".md", ".html") for page in site_pages.notebooks()} <= places


@pytest.mark.slow
def test_every_public_name_has_its_docstring(site: Path) -> None:
    page = (site / "api.html").read_text()
    missing = [name for name, home in site_pages.homes().items() if f'id="{home}.{name}"' not in page]
    assert missing == []


@pytest.mark.slow
def test_a_browser_searches_a_site_on_disk(site: Path, browser: Browser) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "glossary.html").as_uri())
    page.get_by_role("textbox", name="Search").fill("scratchpad")
    page.wait_for_selector(".md-search-result__item", state="attached", timeout=20_000)
    assert [url for url in asked if not url.startswith(("file:", "data:", "about:", "blob:"))] == []
    page.close()


@pytest.mark.slow
def test_long_tables_have_a_filter(site: Path, browser: Browser) -> None:
    page = browser.new_page()
    page.goto((site / "models.html").as_uri())
    field = page.locator(".table-filter").first
    field.fill("conv2d rule")
    shown = page.locator("article table").first.locator("tbody tr:visible").all_inner_texts()
    assert shown
    assert all("conv2d" in row and "rule" in row for row in shown)
    page.close()
