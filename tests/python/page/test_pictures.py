"""Pictures of the pages of known networks and of a long chain; `make pictures` puts them into docs/pictures."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from PIL import Image
from playwright.sync_api import Page

import hetnn
from models import nets
from page import plans

Open = Callable[..., Page]
BERT_BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}


def plan_of(name: str, folder: Path) -> hetnn.Plan:
    if name == "chain-5000":
        return plans.chain(5000, folder)
    if name == "efficientnet-b0":
        module, inputs = nets.vision("efficientnet_b0")
        return hetnn.plan(module, "cpu+relu-mul", args=inputs)
    ids = torch.zeros(1, 64, dtype=torch.int64)
    return hetnn.plan(nets.Encoder(**BERT_BASE).eval(), "cpu+relu-mul", args=(ids, torch.ones_like(ids)))


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("efficientnet-b0", "light"),
        ("efficientnet-b0", "dark"),
        pytest.param("bert-base", "light", marks=pytest.mark.long),
        ("chain-5000", "light"),
    ],
)
def test_pictures(name: str, scheme: str, tmp_path: Path, open_page: Open) -> None:
    path = tmp_path / f"{name}.html"
    plan_of(name, tmp_path).page(path)
    page = open_page(path, 1100, 700, color_scheme=scheme)
    page.evaluate("for (const one of ['header', 'main']) document.querySelector(one).style.maxWidth = 'none'")
    page.evaluate("document.querySelector('header').style.position = 'static'")  # it would stand in the middle
    folder = Path(os.environ.get("HETNN_PICTURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    shot = folder / f"{name}{'-dark' if scheme == 'dark' else ''}.png"
    clip = {"x": 0, "y": 0, "width": 1100, "height": min(1900, page.evaluate("document.body.scrollHeight"))}
    image = Image.open(io.BytesIO(page.screenshot(full_page=True, clip=clip)))
    image.convert("RGB").quantize(128).save(shot, optimize=True)
    assert shot.stat().st_size < 150_000
    assert image.size == (1100, clip["height"])
    assert len(image.convert("RGB").getcolors(1 << 20) or []) > 50
