"""Networks with published weights as services: the client's answers are those of the direct call."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import tritonclient.http
from skimage import data

import hetnn
from models import nets
from models.test_onnx_weights import voice
from mtcnn import cascade
from serve.server import serving
from services import faces, speech, topics, video
from services.remote import RemoteNetwork
from services.sentences import random_weights


def _padded(executable: hetnn.Executable, batch: int | None) -> cascade.Network:
    def call(x: cascade.Array) -> list[np.ndarray]:
        if batch is None:
            return list(executable(x))
        rows = [np.zeros((batch, *x.shape[1:]), np.float32) for _ in range(0, len(x), batch)]
        for k, piece in enumerate(rows):
            part = x[k * batch : (k + 1) * batch]
            piece[: len(part)] = part
        answers = [executable(piece) for piece in rows]
        return [np.concatenate(parts)[: len(x)] for parts in zip(*answers, strict=True)]

    return call


@pytest.mark.slow
def test_faces(tmp_path: Path) -> None:
    faces.keep(str(tmp_path))
    store = hetnn.Store(tmp_path)
    direct = [store.load(id) for id in faces.IDS]

    photo = data.astronaut()
    want = cascade.detect(
        photo, *(_padded(one, faces.BATCHES.get(id)) for id, one in zip(faces.IDS, direct, strict=True))
    )
    with serving("--store", tmp_path) as server:
        found = faces.ask(server.http, photo)
    assert len(found) == len(want) >= 1
    np.testing.assert_array_equal(found.boxes, want.boxes)
    np.testing.assert_array_equal(found.probabilities, want.probabilities)
    np.testing.assert_array_equal(found.landmarks, want.landmarks)


@pytest.mark.slow
def test_text(tmp_path: Path) -> None:
    import torch

    module, inputs = nets.minilm_real()
    executable = hetnn.compile(torch.export.export(module, inputs, strict=False), "cpu+relu-only")
    hetnn.Store(tmp_path).add("text", executable)
    arrays = [value.numpy() for value in inputs]
    with serving("--store", tmp_path) as server, tritonclient.http.InferenceServerClient(server.http) as client:
        (found,) = RemoteNetwork(client, "text")(*arrays)
    np.testing.assert_array_equal(found, executable(*arrays))


SENTENCES = {
    "The goalkeeper saved two penalties in the final.": "sports",
    "Fry the onions in butter, then add the rice.": "cooking",
    "The compiler cannot find the header file.": "computers",
    "Our flight to Lisbon leaves at noon.": "travel",
    "The violin plays the theme, then the choir sings.": "music",
}


def test_topics(tmp_path: Path) -> None:
    """Of random weights: what the server answers to texts is what the three networks make of them."""
    import torch

    torch.manual_seed(5)
    known = {word: k for k, word in enumerate(["[PAD]", topics.START, topics.END, topics.UNKNOWN])}
    for text in (*topics.TOPICS.values(), *list(SENTENCES)[::2]):
        for word in re.findall(r"\w+", text.lower()):
            known.setdefault(word, len(known))
    weights = random_weights(words=len(known), width=32, wide=48, layers=1, positions=topics.TOKENS)
    topics.keep(str(tmp_path), known=known, sentence=topics.sentence_network(weights, heads=2))
    store = hetnn.Store(tmp_path)
    words, network, names = (store.load(id) for id in ("words", "sentence", "topics"))
    ids = words(np.array(["The goalkeeper unheard-of ."], np.object_))
    tail = [0] * (topics.TOKENS - 6)
    unknown = known[topics.UNKNOWN]
    assert ids.tolist() == [[1, known["the"], known["goalkeeper"], unknown, unknown, 2, *tail]]
    longest = words(np.array([" ".join(["the"] * 99)], np.object_))
    assert longest.tolist() == [[1, *[known["the"]] * (topics.TOKENS - 2), 2]]
    with serving("--store", tmp_path) as server:
        found = topics.ask(server.http, [*SENTENCES])
    for text, (topic, cosine) in zip(SENTENCES, found, strict=True):
        spaced = " ".join(re.findall(r"\w+|[^\w\s]", text))
        name, near = names(network(words(np.array([spaced], np.object_))))
        assert (topic, cosine) == (name.item(), near.item())
    assert {topic for topic, _ in found} <= set(topics.TOPICS)


@pytest.mark.slow
def test_topics_of_published_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert topics.main(["keep", str(tmp_path)]) == 0
    with serving("--store", tmp_path) as server:
        assert topics.main(["ask", "--address", server.http, *SENTENCES]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["sentence"]: row["topic"] for row in rows} == SENTENCES


def test_video(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A face is found in every frame, where the camera's way says that it is."""
    assert video.main(["keep", str(tmp_path)]) == 0
    with serving("--store", tmp_path) as server:
        assert video.main(["ask", "--address", server.http, "--frames", "6"]) == 0
    *frames, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["frame"] for row in frames] == [*range(6)]
    assert last["frames"] == 6
    assert last["frames_per_second"] > 0
    clip = [*video.pan(6)]
    executables = [hetnn.Store(tmp_path).load(id) for id in faces.IDS]
    networks = [_padded(one, faces.BATCHES.get(id)) for id, one in zip(faces.IDS, executables, strict=True)]
    for frame, row in zip(clip, frames, strict=True):
        want = cascade.detect(frame, *networks)
        assert len(want) == 1
        assert [face["box"] for face in row["faces"]] == want.boxes.tolist()


@pytest.mark.slow
def test_speech(tmp_path: Path) -> None:
    speech.keep(str(tmp_path))
    executable = hetnn.Store(tmp_path).load(speech.ID)
    sound = voice(24)
    model = {port.name for port in executable.inputs}, len(executable.outputs), len(executable.states)
    assert model == ({"input"}, 1, 1)
    reference = onnxruntime.InferenceSession(str(speech.published()))
    rate = np.array(speech.RATE, np.int64)
    state, theirs = np.zeros((2, 1, 128), np.float32), []
    for frame in speech.frames(sound):
        probability, state = reference.run(None, {"input": frame, "state": state, "sr": rate})
        theirs.append(float(probability.item()))

    def direct(sound: speech.Sound) -> list[float]:
        session = executable.session()
        return [float(executable.run([frame], session=session)[0].item()) for frame in speech.frames(sound)]

    sounds = [sound, sound[::-1].copy(), 0.1 * sound]
    with serving("--store", tmp_path, "--workers", 2) as server, ThreadPoolExecutor(3) as clients:
        found = [*clients.map(lambda k: speech.ask(server.http, sounds[k], f"caller-{k}"), range(3))]
    assert found == [direct(sound) for sound in sounds]
    np.testing.assert_allclose(found[0], theirs, atol=1e-4)
    assert max(theirs) > 2 * min(theirs)
