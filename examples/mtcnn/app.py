"""A page in a browser on which a photo's faces are marked, by the networks of the demo.

pip install gradio
python -m mtcnn.app [--target TARGET] [--port PORT]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hetnn
from mtcnn import cascade, networks

Photo = NDArray[np.uint8]
Marked = tuple[Photo, list[tuple[tuple[int, int, int, int], str]]]


def face_finder(target: str) -> Callable[[Photo], Marked]:
    """A function of a photo [height, width, 3]: the photo, and the box of each face with how sure the detector is, as
    gradio's AnnotatedImage takes them. It may be called by many threads at once.
    """
    compiled = [hetnn.compile(exported, target) for exported in networks.export_networks().values()]

    def find(photo: Photo) -> Marked:
        faces = cascade.detect(photo, *compiled)
        boxes = [tuple(round(float(edge)) for edge in box) for box in faces.boxes]
        sure = [f"face {100 * float(probability):.1f} %" for probability in faces.probabilities]
        return photo, [((box[0], box[1], box[2], box[3]), text) for box, text in zip(boxes, sure, strict=True)]

    return find


def page(target: str) -> Any:
    """The page, which `launch` serves."""
    import gradio

    return gradio.Interface(face_finder(target), gradio.Image(), gradio.AnnotatedImage(), title=f"hetnn on {target}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cpu+relu-only", help="what to compile for")
    parser.add_argument("--port", type=int, default=7860, help="of the page on this machine")
    args = parser.parse_args()
    page(args.target).launch(server_port=args.port)
