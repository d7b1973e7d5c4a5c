"""Well-known networks with published weights in fewer bits: faces where they were, sentences as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from skimage import data

import hetnn
from hetnn.quantization.quantizer import Quantized
from models import nets
from models.faces import hundred_faces, other_photos, overlaps, seen_by
from mtcnn import cascade, networks
from quantize.test_quantize import integer_sheet

Array = NDArray[Any]
Sentence = tuple[Array, Array]

SENTENCES = """
The harvest was late this year because of the long rain in spring.
Our server answers most requests within ten milliseconds.
He walked along the river until the sun went down behind the hills.
Mix the flour with two eggs, a little salt and a cup of warm milk.
The committee will vote on the new budget next Thursday.
Whales sing to each other over hundreds of kilometres.
A small engine drives the pump that fills the tank on the roof.
She translated the poem twice and liked neither version.
Prices for copper rose again after the strike in Chile.
The museum keeps letters that nobody has read for two centuries.
If the test fails, read the log before you change anything.
My neighbour teaches chemistry and plays the trumpet badly.
Two ships waited outside the harbour for the storm to pass.
The vaccine protects most people for about ten years.
Children learn to count long before they learn to write.
An old train climbs from the valley to the glacier every hour.
The judge asked whether the contract had ever been signed.
Bees find their way home by the light of the sky.
We replaced the roof, the windows and finally the kitchen.
This function returns a list of numbers in ascending order.
Nobody in the village remembered who had built the bridge.
The orchestra tuned while the audience looked for its seats.
Solar panels now cover the parking lot of the factory.
What time does the last bus to the airport leave?
""".strip().splitlines()
ASKED = [
    "A cat sits on the mat and looks at the rain.",
    "How do I make a cake with chocolate?",
    "The stock market fell sharply on Monday.",
    "A new species of frog was discovered in the rainforest.",
    "Who wrote the novel War and Peace?",
    "Football players run a lot during a match.",
    "Tennis players hit the ball over a net.",
    "The president will visit Berlin in April.",
]


@pytest.fixture(scope="module")
def minilm() -> torch.nn.Module:
    return nets.Encoder(nets.minilm_folder()).eval()


def tokens(texts: list[str], length: int = 20) -> list[Sentence]:
    ids, mask = (part.numpy() for part in nets.tokenize([*texts, "long " * length]))
    return [(ids[k : k + 1, :length], mask[k : k + 1, :length]) for k in range(len(texts))]


def embedding(hidden: Any, sentence: Sentence) -> Array:
    mean = (np.asarray(hidden)[0] * sentence[1][0][:, np.newaxis]).sum(0)
    return np.asarray(mean / np.linalg.norm(mean))


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "least"), [("int8", 0.96), ("int16x8", 0.999), ("int4-weights", 0.9)])
def test_sentences_mean_what_they_meant(minilm: torch.nn.Module, scheme: str, least: float) -> None:
    samples, asked = tokens(SENTENCES), tokens(ASKED)
    program = torch.export.export(minilm, tuple(torch.from_numpy(part) for part in samples[0]))
    quantized = hetnn.compile(hetnn.quantize(program, samples, scheme))
    plain = hetnn.compile(program)
    for sentence in asked:
        assert embedding(plain(*sentence), sentence) @ embedding(quantized(*sentence), sentence) >= least


@pytest.mark.slow
def test_faces_stay_where_they_were() -> None:
    programs = list(networks.export_networks().values())
    plain = [hetnn.compile(program) for program in programs]

    def in_int8(photos: list[NDArray[np.uint8]]) -> list[cascade.Network]:
        samples = seen_by(plain, photos)
        return [hetnn.compile(hetnn.quantize(*pair)) for pair in zip(programs, samples, strict=True)]

    quantized = in_int8([data.coffee(), data.chelsea(), hundred_faces()[:500, :500]])
    want, found = cascade.detect(data.astronaut(), *plain), cascade.detect(data.astronaut(), *quantized)
    assert len(found) == 1
    np.testing.assert_allclose(found.boxes, want.boxes, atol=2)
    assert found.probabilities[0] >= 0.99

    quantized = in_int8(other_photos())
    want, found = cascade.detect(hundred_faces(), *plain), cascade.detect(hundred_faces(), *quantized)
    assert (overlaps(want.boxes, found.boxes) >= 0.7).sum() >= 98


@pytest.mark.slow
def test_a_resnet_is_on_the_npu() -> None:
    module, (image,) = nets.vision("resnet18", 64)
    rng = np.random.default_rng(0)
    samples = [rng.standard_normal(image.shape).astype(np.float32) for _ in range(8)]
    program = torch.export.export(module, (image,))
    executable = hetnn.quantize(program, samples, target=integer_sheet(), strategy="take-all")
    report = executable.report("dict")
    assert report["macs_on"]["npu"] >= 0.95 * sum(report["macs_on"].values())
    assert len(report["subgraphs"]) <= 3
    (db,) = executable.quantization.outputs_db.values()
    want, got = hetnn.compile(program)(image), executable(image)
    assert 10 * np.log10(float((want**2).sum() / ((want - got) ** 2).sum())) > 25
    assert db > 25


@pytest.mark.slow
def test_mobilenet_keeps_layers_float_that_hurt() -> None:
    module, (image,) = nets.vision("mobilenet_v2", 64)
    rng = np.random.default_rng(0)
    samples = [rng.standard_normal(image.shape).astype(np.float32) for _ in range(4)]
    program = torch.export.export(module, (image,))
    all_of_it: Quantized = hetnn.quantize(program, samples)
    (plain_db,) = all_of_it.report.outputs_db.values()
    better: Quantized = hetnn.quantize(program, samples, keep_float="auto", at_least_db=plain_db + 2)
    assert min(better.report.outputs_db.values()) >= plain_db + 2
    assert 0 < len(better.report.kept_float) < 26
