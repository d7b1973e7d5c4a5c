"""Finding faces in a video as a service: every frame of a clip goes to the networks of a face detector.

python -m services.video keep STORE                   compiles MTCNN, for frames of 192x192, into a store
hetnn serve --store STORE
python -m services.video ask [CLIP.npy] [--frames N]  prints the faces of each frame, and at the end the rate

By default the clip is a camera that pans over scikit-image's astronaut.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcnn import cascade
from services import faces

SIDE = 192

Frame = NDArray[np.uint8]


def pan(frames: int) -> Iterator[Frame]:
    """A clip: a window of SIDE pixels goes once around over the photo of a face, in `frames` steps."""
    from skimage import data

    photo = data.astronaut()[:300, 80:380]  # type: ignore[no-untyped-call]
    room = len(photo) - SIDE
    for k in range(frames):
        angle = 2 * math.pi * k / frames
        top, left = (round(room / 2 * (1 + turn)) for turn in (math.sin(angle), math.cos(angle)))
        yield np.ascontiguousarray(photo[top : top + SIDE, left : left + SIDE])


def ask(address: str, clip: Iterator[Frame]) -> Iterator[cascade.Faces]:
    """The faces of each frame, by the server at `address`, while the clip goes on."""
    import tritonclient.http

    with tritonclient.http.InferenceServerClient(address) as client:
        networks = faces.remote(client)
        for frame in clip:
            yield cascade.detect(frame, *networks)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    keeping = actions.add_parser("keep")
    keeping.add_argument("store")
    keeping.add_argument("--target", default="cpu")
    asking = actions.add_parser("ask")
    asking.add_argument("clip", type=Path, nargs="?", help=f"bytes [n,{SIDE},{SIDE},3]")
    asking.add_argument("--frames", type=int, default=25, help="of the clip that is made")
    asking.add_argument("--address", default="127.0.0.1:8000")
    args = parser.parse_args(argv)
    if args.action == "keep":
        faces.keep(args.store, args.target, SIDE)
        return 0
    clip: Any = pan(args.frames) if args.clip is None else iter(np.load(args.clip))
    begun, count = time.perf_counter(), 0
    for found in ask(args.address, clip):
        rows = zip(found.boxes.tolist(), found.probabilities.tolist(), strict=True)
        print(json.dumps({"frame": count, "faces": [{"box": box, "probability": one} for box, one in rows]}))
        count += 1
    print(json.dumps({"frames": count, "frames_per_second": count / (time.perf_counter() - begun)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
