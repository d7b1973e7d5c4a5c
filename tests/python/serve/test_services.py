"""Networks with published weights as services: the client's answers are those of the direct call."""

from __future__ import annotations

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
from services import faces, speech
from services.remote import RemoteNetwork


@pytest.mark.slow
def test_faces(tmp_path: Path) -> None:
    faces.keep(str(tmp_path))
    store = hetnn.Store(tmp_path)
    direct = [store.load(id) for id in faces.IDS]

    def padded(executable: hetnn.Executable, batch: int | None) -> cascade.Network:
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

    photo = data.astronaut()
    want = cascade.detect(
        photo, *(padded(one, faces.BATCHES.get(id)) for id, one in zip(faces.IDS, direct, strict=True))
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
