"""Finding speech as a service: a client's frames are one sequence, whose state the server keeps.

python -m services.speech keep STORE       compiles silero-vad for frames of 32 ms at 16 kHz into a store
hetnn serve --store STORE
python -m services.speech ask SOUND.wav    prints the probability of speech in each frame
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import wave
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ID = "speech"
RATE, SAMPLES, CONTEXT = 16000, 512, 64

Sound = NDArray[np.float32]


def published() -> Path:
    """The ONNX model in its package, which is not imported."""
    found = importlib.util.find_spec("silero_vad")
    if found is None or found.origin is None:
        raise SystemExit("this needs the model: pip install --no-deps silero-vad")
    return Path(found.origin).parent / "data" / "silero_vad.onnx"


# One frame of 16 kHz, behind the last samples of the frame before; the model names none of its sizes.
FRAME = {"input_0": 1, "input_1": CONTEXT + SAMPLES, "state_1": 1, "sr": RATE}


def keep(store_path: str, target: str = "cpu+relu-only") -> None:
    """Compiles the model with its state kept by the executable: what is left to send is a frame."""
    import hetnn

    store = hetnn.Store(store_path)
    store.add(ID, hetnn.compile(published(), target, fix=FRAME, states={"state": "stateN"}))
    store.deploy(ID)


def frames(sound: Sound) -> Iterator[Sound]:
    """Frames as the model takes them; samples at the end that fill none are left out."""
    behind = np.concatenate([np.zeros(CONTEXT, np.float32), sound])
    for begin in range(0, len(sound) - SAMPLES + 1, SAMPLES):
        yield behind[begin : begin + CONTEXT + SAMPLES][None]


def ask(address: str, sound: Sound, sequence: int | str = 1) -> list[float]:
    """The probability of speech in each frame, by the server at `address`."""
    import tritonclient.http

    with tritonclient.http.InferenceServerClient(address) as client:
        (output,) = (row["name"] for row in client.get_model_metadata(ID)["outputs"])
        given = [*frames(sound)]
        found = []
        for k, frame in enumerate(given):
            made = tritonclient.http.InferInput("input", list(frame.shape), "FP32")
            made.set_data_from_numpy(frame)
            answer = client.infer(
                ID, [made], sequence_id=sequence, sequence_start=k == 0, sequence_end=k == len(given) - 1
            )
            found.append(float(answer.as_numpy(output).item()))
        return found


def read_wave(path: Path) -> Sound:
    """One channel of 16 bits at 16 kHz, as numbers in [-1, 1)."""
    with wave.open(str(path)) as file:
        if (file.getnchannels(), file.getsampwidth(), file.getframerate()) != (1, 2, RATE):
            raise SystemExit(f"'{path}' must have one channel of 16 bits at {RATE} Hz.")
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        return np.asarray(samples / 32768, np.float32)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    keeping = actions.add_parser("keep")
    keeping.add_argument("store")
    keeping.add_argument("--target", default="cpu+relu-only")
    asking = actions.add_parser("ask")
    asking.add_argument("sound", type=Path)
    asking.add_argument("--address", default="127.0.0.1:8000")
    args = parser.parse_args(argv)
    if args.action == "keep":
        keep(args.store, args.target)
        return 0
    print(json.dumps(ask(args.address, read_wave(args.sound))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
