"""A browser for the tests of the page: headless Chromium of the system's packages, one for all tests of a process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
Open = Callable[..., Page]


@pytest.fixture(scope="module")  # a running loop of events outlives no module: others run loops of their own
def browser() -> Iterator[Browser]:
    """Debian's packages have one (tools/install_system_packages.sh); where there is none, these tests are skipped."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("continuous integration has no browser; see tools/install_system_packages.sh")
        pytest.skip("there is no Chromium")
    with sync_playwright() as playwright:
        # The sandbox of Chromium asks for rights that root in a container has not.
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens a file; at the end nothing was said in the console, and nothing but the file was asked for."""
    said: list[str] = []
    asked: list[str] = []
    contexts = []

    def opened(path: Path, width: int = 1280, height: int = 900, **more: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, offline=True, **more)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", timeout=20_000)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert said == []
    assert {url.partition(":")[0] for url in asked} <= {"file", "data"}
