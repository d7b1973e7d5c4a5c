"""Real weights of ONNX models: speech with its state fed back, and types of files, as ONNX Runtime has them."""

from __future__ import annotations

import importlib.util
import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import hetnn

Array = np.ndarray[Any, Any]


def folder_of(package: str) -> Path:
    """Where a package lies, without importing it."""
    found = importlib.util.find_spec(package)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def close(mine: Array, theirs: Array) -> None:
    assert mine.dtype == theirs.dtype
    assert mine.shape == theirs.shape
    assert np.abs(mine - theirs).max() <= 1e-4 * np.abs(theirs).max() + 1e-6


# Speech: 512 samples a frame behind 64 of the one before; the state of the network goes from frame to frame.

SAMPLES, CONTEXT = 512, 64


def voice(frames: int) -> Array:
    """A buzz with vowel-like resonances between silences, and noise, at 16 kHz."""
    rng, time = np.random.default_rng(0), np.arange(frames * SAMPLES) / 16000
    buzz = sum(np.sin(2 * np.pi * 120 * k * time) / k for k in range(1, 30) if abs(120 * k - 700) < 500 or k < 4)
    loud = (np.sin(2 * np.pi * 1.5 * time) > 0).astype(float)
    return np.asarray(0.2 * buzz * loud + 0.01 * rng.standard_normal(time.shape), np.float32)


# A frame of 16 kHz at a time. The first model names none of its sizes.
UNNAMED = {"input_0": 1, "input_1": CONTEXT + SAMPLES, "state_1": 1, "sr": 16000}
NAMED = {"batch": 1, "sequence": CONTEXT + SAMPLES, "sr": 16000}


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("silero_vad.onnx", UNNAMED),
        ("silero_vad_16k_op15.onnx", NAMED),
        ("silero_vad_op18_ifless.onnx", NAMED),
    ],
)
def test_speech_is_found_where_the_reference_finds_it(name: str, fix: dict[str, int]) -> None:
    exe = hetnn.compile(folder_of("silero_vad") / "data" / name, fix=fix)
    order = [port.name for port in exe.inputs]
    reference = onnxruntime.InferenceSession(str(folder_of("silero_vad") / "data" / name))
    sound = voice(40)
    state, their_state, before = np.zeros((2, 1, 128), np.float32), np.zeros((2, 1, 128), np.float32), np.zeros(CONTEXT)
    found = []
    for frame in sound.reshape(-1, SAMPLES):
        given = np.concatenate([before, frame])[None].astype(np.float32)
        mine = exe(*({"input": given, "state": state}[part] for part in order))
        feeds = {"input": given, "state": their_state, "sr": np.array(16000, np.int64)}
        theirs = reference.run(None, feeds)
        for a, b in zip(mine, theirs, strict=True):
            close(a, b)
        state, their_state, before = mine[1], theirs[1], frame[-CONTEXT:]
        found.append((float(mine[0].item()), float(theirs[0].item())))
    assert [mine > 0.5 for mine, _ in found] == [theirs > 0.5 for _, theirs in found]
    assert max(mine for mine, _ in found) > 2 * min(mine for mine, _ in found)


@pytest.mark.parametrize("name", ["silero_vad.onnx", "silero_vad_16k_op15.onnx"])
def test_speech_of_every_rate_and_number_of_voices_without_a_size_fixed(name: str) -> None:
    """Of what these models call conditions, one is how many frames there are: of more than one they give nothing."""
    path = folder_of("silero_vad") / "data" / name
    exe, reference = hetnn.compile(path), onnxruntime.InferenceSession(str(path))
    order = [port.name for port in exe.inputs]
    taken = {port.name for port in reference.get_inputs()}
    rng = np.random.default_rng(0)

    def feeds(batch: int, samples: int, rate: int) -> dict[str, Array]:
        sound = 0.1 * rng.standard_normal((batch, samples)).astype(np.float32)
        state = rng.standard_normal((2, batch, 128)).astype(np.float32)
        return {"input": sound, "state": state, "sr": np.array(rate)}

    rates = [(1, 576, 16000), (3, 512, 16000), *([(1, 288, 8000), (2, 256, 8000)] if name == "silero_vad.onnx" else [])]
    for row in rates:
        given = feeds(*row)
        theirs = reference.run(None, {part: x for part, x in given.items() if part in taken})
        for a, b in zip(exe(*(given[part] for part in order)), theirs, strict=True):
            close(a, b)
    with pytest.raises(hetnn.InvalidModel, match=r"match_shape_c1|other sizes than lead to this: input 0 of LSTM"):
        exe(*(feeds(1, 1216, 16000)[part] for part in order))


# Types of files by their first and last 1024 bytes.


def as_magika_reads(data: bytes) -> Array:
    begin, end = data[:4096].lstrip()[:1024], data[-4096:].rstrip()[-1024:]
    return np.array([*begin, *[256] * (1024 - len(begin)), *[256] * (1024 - len(end)), *end], np.int32)


def files(folder: Path) -> dict[str, bytes]:
    import sys

    from PIL import Image

    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)
    Image.fromarray(noise).save(folder / "a.png")
    with wave.open(str(folder / "a.wav"), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(16000)
        out.writeframes((voice(20) * 20000).astype(np.int16).tobytes())
    return {
        "python": Path(json.__file__).read_bytes(),
        "png": (folder / "a.png").read_bytes(),
        "wav": (folder / "a.wav").read_bytes(),
        "elf": Path(sys.executable).resolve().read_bytes(),
    }


def test_the_types_of_files_are_told(tmp_path: Path) -> None:
    folder = folder_of("magika") / "models" / "standard_v3_3"
    labels = json.loads((folder / "config.min.json").read_text())["target_labels_space"]
    exe = hetnn.compile(folder / "model.onnx")
    given = files(tmp_path)
    read = np.stack([as_magika_reads(data) for data in given.values()])
    (theirs,) = onnxruntime.InferenceSession(str(folder / "model.onnx")).run(None, {"bytes": read})
    mine = exe(read)
    close(mine, theirs)
    assert [labels[row.argmax()] for row in mine] == list(given)
    close(exe(read[1:2]), theirs[1:2])
