"""The page of a plan or an executable in a browser: it opens, searches, opens modules; the console stays empty."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Page

import hetnn
from hetnn.report.page import as_html
from page import plans

Open = Callable[..., Page]
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    module, inputs = plans.small()
    path = tmp_path_factory.mktemp("pages") / "small.html"
    hetnn.plan(module, plans.TARGET, args=inputs, strategy="take-all").page(path)
    return path


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 nodes in 500 blocks."""
    path = tmp_path_factory.mktemp("pages") / "deep.html"
    plan = hetnn.plan(plans.Deep(500).eval(), plans.TARGET, args=(torch.zeros(1, 4, 8, 8),))
    assert len(plan.report("dict")["graph"]) == 2000
    plan.page(path)
    return path


def labels(page: Page) -> list[str]:
    return [box.get_attribute("aria-label") or "" for box in page.query_selector_all("#drawing .box")]


def test_time_and_reasons_come_first_and_reasons_are_grouped(small: Path, open_page: Open) -> None:
    page = open_page(small)
    titles = [title.inner_text() for title in page.query_selector_all("h2")]
    assert titles[:4] == [
        "Where time goes",
        "Not on the accelerator, dearest first",
        "What if an accelerator had it",
        "Graph",
    ]
    reasons = [line.inner_text() for line in page.query_selector_all("#reasons summary")]
    assert len(reasons) == 1
    assert reasons[0].startswith("1 node, ")
    assert reasons[0].endswith("relu-only has no operator hardswish (hardswish_missing)")
    page.click("#reasons summary")
    page.click("#reasons .link")
    assert page.inner_text("#details h3") == "hardswish"
    assert "relu-only has no operator hardswish" in page.inner_text("#details")


def test_the_axis_has_more_than_its_ends(small: Path, open_page: Open) -> None:
    page = open_page(small)
    texts = [text.text_content() or "" for text in page.query_selector_all(".lanes svg > text.soft")]
    assert len(texts) >= 5
    assert texts[0] == "0 µs"
    before = page.evaluate("document.querySelector('.lanes svg').clientWidth")
    page.click("button[aria-label=longer]")
    assert page.evaluate("document.querySelector('.lanes svg').clientWidth") == 2 * before


def test_rewrites_stand_beside_what_was_written(small: Path, open_page: Open) -> None:
    page = open_page(small)
    (pair,) = page.query_selector_all(".pair")
    before, after = pair.query_selector_all(":scope > div")
    assert "prelu 'prelu'" in before.inner_text()
    assert "prelu_scaled_and_rest" in after.inner_text()
    assert "prelu.conv2d conv2d on relu-only → prelu.relu relu on relu-only" in after.inner_text()
    left, right = before.bounding_box(), after.bounding_box()
    assert left is not None
    assert right is not None
    assert left["x"] + left["width"] < right["x"]
    assert left["y"] == right["y"]


def test_modules_open_and_close_by_keyboard(deep: Path, open_page: Open) -> None:
    page = open_page(deep)
    closed = labels(page)
    assert len(closed) < 60
    page.focus("#drawing .box.group")
    page.keyboard.press("Enter")
    assert len(labels(page)) > len(closed)
    focused = "document.activeElement.getAttribute('data-id')"
    opened = page.evaluate(focused)
    assert page.get_attribute(f"[data-id='{opened}']", "aria-expanded") == "true"
    page.keyboard.press("Enter")
    assert labels(page) == closed
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) not in (opened, None)
    page.dblclick(f"[data-id='{opened}']")
    assert len(labels(page)) > len(closed)
    page.click("#collapse")
    assert all("open" not in label for label in labels(page))


def test_residuals_do_not_drift(tmp_path: Path, open_page: Open) -> None:
    """Sums of 12 blocks that bear no names of modules stand below one another."""

    class Residual(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(12):
                x = x + torch.tanh(torch.sigmoid(x))
            return x

    path = tmp_path / "residual.html"
    hetnn.plan(Residual(), plans.TARGET, args=(torch.zeros(1, 4, 8, 8),)).page(path)
    page = open_page(path)
    sums = [box for box in page.query_selector_all("#drawing .box") if "add" in (box.get_attribute("aria-label") or "")]
    places = [box.bounding_box() for box in sums]
    assert len(places) == 12
    lefts = [place["x"] for place in places if place]
    assert max(lefts) - min(lefts) < 200
    assert len({round(place["y"]) for place in places if place}) == 12


def test_a_layer_of_2000_is_found_by_name_within_three_seconds(deep: Path, open_page: Open) -> None:
    """The least of three times: other processes are at work beside a test."""
    took = []
    for _ in range(3):
        began = time.perf_counter()
        page = open_page(deep)
        page.keyboard.press("/")
        page.keyboard.type("conv2d_777")
        found = page.inner_text("#found li")
        page.keyboard.press("Enter")
        page.wait_for_selector("#drawing .box.chosen")
        took.append(time.perf_counter() - began)
        if took[-1] < 3:
            break
    assert found.startswith("conv2d_777 conv2d on ")
    assert page.inner_text("#details h3") == "conv2d_777"
    label = page.get_attribute("#drawing .box.chosen", "aria-label") or ""
    assert label.startswith("conv2d conv2d_777, ")
    assert page.evaluate(FIRST_PAINT) < 1000
    assert min(took) < 3
    box, frame = page.locator("#drawing .box.chosen").bounding_box(), page.locator("#drawing").bounding_box()
    assert box is not None
    assert frame is not None
    assert frame["y"] <= box["y"] <= frame["y"] + frame["height"]


def test_search_says_how_many_more_and_when_there_is_none(deep: Path, open_page: Open) -> None:
    page = open_page(deep)
    page.fill("#search", "conv2d")
    lines = page.query_selector_all("#found li")
    assert len(lines) == 61
    assert lines[-1].inner_text() == "940 more"
    page.fill("#search", "conv2d blocks.42.")
    assert len(page.query_selector_all("#found li")) == 2
    page.keyboard.press("ArrowDown")
    assert page.get_attribute("#found li:nth-child(2)", "aria-selected") == "true"
    page.fill("#search", "no such layer")
    assert page.inner_text("#found") == "nothing is called that"
    page.keyboard.press("Escape")
    assert not page.is_visible("#found")


def test_5000_nodes_are_painted_within_a_second(tmp_path: Path, open_page: Open) -> None:
    path = tmp_path / "chain.html"
    plans.chain(5000, tmp_path).page(path)
    page = open_page(path)
    assert page.evaluate(FIRST_PAINT) < 1000
    assert len(labels(page)) < 60
    page.fill("#search", "v4321")
    page.keyboard.press("Enter")
    assert page.inner_text("#details h3") == "v4321"
    assert len(page.query_selector_all(".lanes rect")) < 2000


@pytest.mark.parametrize("width", [360, 1280])
def test_dark_mode_and_narrow_screens(small: Path, open_page: Open, width: int) -> None:
    colours = {}
    for scheme in ("light", "dark"):
        page = open_page(small, width, color_scheme=scheme)
        colours[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert colours == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 29)"}


def test_a_run_shows_its_times_and_a_comparison_its_noise(tmp_path: Path, open_page: Open) -> None:
    module, inputs = plans.small()
    executable = hetnn.compile(module, plans.TARGET, args=inputs, strategy="take-all")
    path = tmp_path / "ran.html"
    executable.page(path, *inputs, comparison=executable.compare(module, inputs))
    page = open_page(path)
    assert "one run, each device on its own time" in page.inner_text("#time")
    assert len(page.query_selector_all(".lanes rect")) >= 5
    titles = page.evaluate("[...document.querySelectorAll('.lanes title')].map(title => title.textContent)")
    assert any("stalled" in title for title in titles)
    paint = "[...document.querySelectorAll('#drawing .box:not(.cluster) .face')].map(face => face.style.fill)"
    seen = set()
    for mode in ("device", "time", "noise"):
        page.select_option("#colour", mode)
        seen.add(json.dumps(page.evaluate(paint)))
    assert len(seen) == 3
    page.fill("#search", "hardswish")
    page.keyboard.press("Enter")
    for word in ("predicted", "measured", "over noise", "kernel"):
        assert word in page.inner_text("#details")
    assert page.inner_text("#reasons h2:nth-of-type(2)") == "What if an accelerator had it"


def test_names_are_text(tmp_path: Path, open_page: Open) -> None:
    module, inputs = plans.small()
    report = hetnn.plan(module, plans.TARGET, args=inputs).report("dict")
    evil = "</script><img src=x onerror=alert(1)>"
    report["graph"][0]["node"] = evil
    path = tmp_path / "evil.html"
    path.write_text(as_html(report, f"a {evil} {{data}}"), encoding="utf-8")
    page = open_page(path)
    assert page.inner_text("h1") == f"a {evil} {{data}}"
    page.fill("#search", "onerror")
    page.keyboard.press("Enter")
    assert page.inner_text("#details h3") == evil
    assert page.query_selector("img") is None
