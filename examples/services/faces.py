"""A face detector as a service: the networks of MTCNN in a store, and a client that asks for the faces of a photo.

python -m services.faces keep STORE       compiles the networks, for photos of 512x512, into a store
hetnn serve --store STORE
python -m services.faces ask [PHOTO.npy]  prints the faces; by default those of scikit-image's astronaut
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcnn import cascade

SIDE = 512
BATCHES = {"face-refinement": 32, "face-output": 8}
IDS = ("face-proposal", *BATCHES)


def keep(store_path: str, target: str = "cpu+relu-only", side: int = SIDE) -> None:
    """Compiles the networks for the sizes that a photo of side x side leads to, which accelerators want to know."""
    import hetnn
    from mtcnn import networks

    store = hetnn.Store(store_path)
    scales = cascade.pyramid_scales(side, side)
    levels = [math.floor(side * scale + 1) for scale in scales]
    sizes = [[(1, 3, level, level) for level in levels], [(32, 3, 24, 24)], [(8, 3, 48, 48)]]
    for id, exported, shapes in zip(IDS, networks.export_networks().values(), sizes, strict=True):
        executable = hetnn.compile(exported, target)
        for shape in shapes:
            executable(np.zeros(shape, np.float32))
        store.add(id, executable)
        store.deploy(id)


def remote(client: Any) -> list[cascade.Network]:
    """The networks as functions, by tritonclient's client of their server."""
    from services.remote import RemoteNetwork

    return [RemoteNetwork(client, id, BATCHES.get(id)) for id in IDS]


def ask(address: str, photo: NDArray[np.uint8]) -> cascade.Faces:
    """The faces in a photo, by the server at `address`."""
    import tritonclient.http

    with tritonclient.http.InferenceServerClient(address) as client:
        return cascade.detect(photo, *remote(client))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    keeping = actions.add_parser("keep")
    keeping.add_argument("store")
    keeping.add_argument("--target", default="cpu+relu-only")
    asking = actions.add_parser("ask")
    asking.add_argument("photo", type=Path, nargs="?")
    asking.add_argument("--address", default="127.0.0.1:8000")
    args = parser.parse_args(argv)
    if args.action == "keep":
        keep(args.store, args.target)
        return 0
    if args.photo is not None:
        photo: Any = np.load(args.photo)
    else:
        from skimage import data

        photo = data.astronaut()  # type: ignore[no-untyped-call]
    faces = ask(args.address, photo)
    rows = zip(faces.boxes.tolist(), faces.probabilities.tolist(), strict=True)
    print(json.dumps([{"box": box, "probability": probability} for box, probability in rows]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
