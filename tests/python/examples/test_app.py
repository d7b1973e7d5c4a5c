"""The page that marks faces: what it computes of a photo; the page itself where gradio is installed."""

from __future__ import annotations

import pytest
from skimage import data

from mtcnn import app, demo


@pytest.mark.slow
def test_the_face_is_marked() -> None:
    photo, marks = app.face_finder("cpu")(data.astronaut())
    assert photo.shape == (512, 512, 3)
    ((box, said),) = marks
    assert box == tuple(round(edge) for edge in demo.BOX)
    assert said == "face 100.0 %"


@pytest.mark.slow
def test_the_page() -> None:
    gradio = pytest.importorskip("gradio")
    assert isinstance(app.page("cpu"), gradio.Interface)
