"""The MTCNN cascade on real photos, its networks run by torch and by hetnn; the numbers are those published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from skimage import data

import hetnn
from models.faces import hundred_faces, rgb
from mtcnn import cascade, networks

Image = NDArray[np.uint8]


def astronaut_beside_mirror() -> Image:
    photo = data.astronaut()
    return np.concatenate([photo, photo[:, ::-1]], axis=1)


class Recorder:
    """A network as the cascade wants it; remembers the shapes it saw."""

    def __init__(self, run: cascade.Network) -> None:
        self.run = run
        self.shapes: list[tuple[int, ...]] = []

    def __call__(self, x: NDArray[np.float32]) -> Sequence[Any]:
        self.shapes.append(x.shape)
        return self.run(x)


def run_in_torch(module: torch.nn.Module) -> cascade.Network:
    def run(x: NDArray[np.float32]) -> Sequence[Any]:
        with torch.no_grad():
            return [output.numpy() for output in module(torch.from_numpy(x))]

    return run


@pytest.fixture(scope="module", params=["torch", "cpu", "cpu+relu-only"])
def compiled(request: pytest.FixtureRequest) -> list[cascade.Network]:
    """The three networks in torch, or compiled for a target."""
    if request.param == "torch":
        return [run_in_torch(module) for module in networks.load_networks()]
    return [hetnn.compile(exported, request.param) for exported in networks.export_networks().values()]


@pytest.fixture
def nets(compiled: list[cascade.Network]) -> list[Recorder]:
    return [Recorder(network) for network in compiled]


def test_astronaut(nets: list[Recorder]) -> None:
    found = cascade.detect(data.astronaut(), *nets)
    assert len(found) == 1
    np.testing.assert_allclose(found.boxes, [[181.05, 62.16, 267.75, 172.05]], atol=0.01)
    np.testing.assert_allclose(found.probabilities, [0.9999977], atol=1e-6)
    eyes_nose_mouth = [[205.0, 101.7], [246.8, 103.7], [224.7, 129.0], [201.7, 139.2], [245.3, 141.9]]
    np.testing.assert_allclose(found.landmarks, [eyes_nose_mouth], atol=0.06)
    pnet, rnet, onet = nets
    assert [shape[2] for shape in pnet.shapes] == [308, 218, 155, 110, 78, 56, 40, 28, 20, 14]
    assert (rnet.shapes, onet.shapes) == ([(153, 3, 24, 24)], [(9, 3, 48, 48)])


def test_camera(nets: list[Recorder]) -> None:
    found = cascade.detect(rgb(data.camera()), *nets)
    np.testing.assert_allclose(found.boxes, [[199.22, 118.93, 254.27, 192.27]], atol=0.01)


def test_two_faces(nets: list[Recorder]) -> None:
    found = cascade.detect(astronaut_beside_mirror(), *nets)
    assert len(found) == 2
    right, left = sorted(found.boxes[:, 0])[::-1]
    assert left < 512 < right


@pytest.mark.slow
def test_hundred_faces(nets: list[Recorder]) -> None:
    found = cascade.detect(hundred_faces(), *nets)
    assert len(found) == 100
    tiles = {(int(box[1] + box[3]) // 200, int(box[0] + box[2]) // 200) for box in found.boxes}
    assert len(tiles) == 100, "one face in each tile"


def test_no_face_at_all(nets: list[Recorder]) -> None:
    found = cascade.detect(rgb(data.brick()), *nets)
    assert found.candidates == {"P-Net": 0, "R-Net": 0, "O-Net": 0}
    assert found.landmarks.shape == (0, 5, 2)


def test_candidates_that_come_to_nothing(nets: list[Recorder]) -> None:
    found = cascade.detect(data.hubble_deep_field(), *nets)
    assert (found.candidates["R-Net"], len(found)) == (14, 0)


def test_an_image_smaller_than_a_face(nets: list[Recorder]) -> None:
    assert len(cascade.detect(np.zeros((8, 8, 3), np.uint8), *nets)) == 0


def test_a_gray_image_is_refused(nets: list[Recorder]) -> None:
    with pytest.raises(ValueError, match=r"expected an RGB image .* got an array of shape \[512, 512\]"):
        cascade.detect(data.camera(), *nets)


@pytest.mark.parametrize("size", [(7, 5, 3, 2), (12, 30, 24, 24), (5, 5, 5, 5), (3, 4, 7, 9)])
def test_area_resize_equals_torch(size: tuple[int, int, int, int]) -> None:
    height, width, new_height, new_width = size
    image = np.random.default_rng(3).integers(0, 256, (height, width, 3))
    tensor = torch.from_numpy(image).permute(2, 0, 1)[None].double()
    want = torch.nn.functional.interpolate(tensor, (new_height, new_width), mode="area")[0].permute(1, 2, 0)
    np.testing.assert_allclose(cascade.resize_by_area(image, new_height, new_width), want, rtol=1e-6)


def test_overlaps_are_suppressed() -> None:
    # The second box shares 50 of 150 with the first (1/3); the third lies inside the first.
    boxes = np.array([[0, 0, 10, 10], [0, 5, 10, 15], [2, 2, 4, 4], [100, 100, 110, 110]], np.float32)
    scores = np.array([0.9, 0.8, 0.7, 0.95], np.float32)
    assert cascade.suppress_overlaps(boxes, scores, 0.3).tolist() == [3, 0, 2]
    assert cascade.suppress_overlaps(boxes, scores, 0.4).tolist() == [3, 0, 1, 2]
    assert cascade.suppress_overlaps(boxes, scores, 0.4, smaller_area=True).tolist() == [3, 0]
