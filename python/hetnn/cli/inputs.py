"""The inputs of commands that run a model: .npz and .npy files, images, sounds, or made-up ones.

What is done to an image or a sound is said on the command line, and nothing else is.
"""

from __future__ import annotations

import argparse
import os
import sys
import wave
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import hetnn
from hetnn.cli.answer import BadUse
from hetnn.cli.arrays import match_inputs, random_inputs, read_arrays
from hetnn.element_types import numpy_type

if TYPE_CHECKING:
    from hetnn import Executable
    from hetnn.executable import Port

Array = NDArray[Any]

SOUNDS = (".wav",)
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")


def add_input_arguments(parser: argparse.ArgumentParser) -> None:
    """The file of inputs (or a folder, for commands that take one), and what is done to images and sounds."""
    parser.add_argument(
        "--inputs",
        metavar="FILE",
        help="an .npz, by name or in order; of a model with one input also an .npy, an image or a .wav "
        "(default: seeded random)",
    )
    parser.add_argument(
        "--scale",
        type=float,
        metavar="S",
        help="of an image: bytes are multiplied by this (default: 1/255 for a model that takes floats, else 1)",
    )
    parser.add_argument(
        "--mean",
        metavar="R,G,B",
        help="of an image, after --scale: subtracted, one number or one a channel (default: 0)",
    )
    parser.add_argument(
        "--std", metavar="R,G,B", help="of an image, after --mean: divided by, one number or one a channel (default: 1)"
    )
    parser.add_argument("--bgr", action="store_true", help="of an image: blue first (default: red first)")


def inputs_of(executable: Executable, args: argparse.Namespace, command: str) -> list[Array]:
    """The arrays in the model's order. BadUse or InvalidModel where a file does not fit; Unsupported without Pillow."""
    if args.inputs is None:
        sys.stderr.write(f"{command}: no --inputs; using random ones\n")
        return random_inputs(executable)
    ending = os.path.splitext(args.inputs)[1].lower()
    if ending not in (*IMAGES, *SOUNDS, ".npy"):
        return match_inputs(executable, read_arrays(args.inputs), args.inputs)
    if len(executable.inputs) != 1:
        names = ", ".join(port.name for port in executable.inputs)
        raise BadUse(f"'{args.inputs}' is one array; the model takes {names}. Give an .npz with all of them.")
    (port,) = executable.inputs
    if ending == ".npy":
        return [_read_npy(args.inputs)]
    shape = executable.example_shape(port.name)
    return [_sound(args.inputs, port, shape) if ending in SOUNDS else _image(args, port, shape)]


def several_inputs(executable: Executable, args: argparse.Namespace, command: str) -> list[list[Array]]:
    """As inputs_of, of each file of a folder in the order of their names. BadUse for a folder without any."""
    if args.inputs is None or not os.path.isdir(args.inputs):
        return [inputs_of(executable, args, command)]
    endings = (*IMAGES, *SOUNDS, ".npy", ".npz")
    names = sorted(name for name in os.listdir(args.inputs) if os.path.splitext(name)[1].lower() in endings)
    if not names:
        raise BadUse(f"'{args.inputs}' has no file of inputs; they end in {', '.join(endings)}")
    each = [argparse.Namespace(**{**vars(args), "inputs": os.path.join(args.inputs, name)}) for name in names]
    return [inputs_of(executable, one, command) for one in each]


def _read_npy(path: str) -> Array:
    try:
        loaded = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise hetnn.InvalidModel(f"'{path}' is no .npy file: {error}. Write it with numpy.save.") from error
    if not isinstance(loaded, np.ndarray):
        raise hetnn.InvalidModel(f"'{path}' holds several arrays. Name it .npz.")
    return loaded


def _image(args: argparse.Namespace, port: Port, shape: tuple[int, ...]) -> Array:
    """An image as the model's input of rank 3 or 4, channels first or last: resized to it (bilinear, without keeping
    the proportions), RGB or grey as it has channels, then (pixel * scale - mean) / std.
    """
    channels, height, width, first = _places_of(port, shape)
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise hetnn.Unsupported("reading an image needs Pillow. Install hetnn[images].") from error
    try:
        with Image.open(args.inputs) as file:
            image = file.convert("L" if channels == 1 else "RGB").resize((width, height), Image.Resampling.BILINEAR)
    except (OSError, ValueError, SyntaxError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise hetnn.InvalidModel(f"'{args.inputs}' is no image that Pillow reads: {error}.") from error
    pixels = np.asarray(image, np.float32).reshape(height, width, channels)
    if args.bgr:
        pixels = pixels[:, :, ::-1]
    dtype = numpy_type(port.dtype)
    scale = args.scale if args.scale is not None else (1 / 255 if np.issubdtype(dtype, np.floating) else 1.0)
    pixels = (pixels * np.float32(scale) - _numbers(args.mean, "--mean", 0.0)) / _numbers(args.std, "--std", 1.0)
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        pixels = np.clip(np.rint(pixels), limits.min, limits.max)
    placed = pixels.transpose(2, 0, 1) if first else pixels
    whole: Array = np.ascontiguousarray(placed.reshape([1] * (len(shape) - 3) + list(placed.shape)), dtype)
    return whole


def _places_of(port: Port, shape: tuple[int, ...]) -> tuple[int, int, int, bool]:
    """Channels, height, width, and whether channels come first."""
    if len(shape) in (3, 4) and all(size == 1 for size in shape[:-3]):
        if shape[-3] in (1, 3):
            return shape[-3], shape[-2], shape[-1], True
        if shape[-1] in (1, 3):
            return shape[-1], shape[-3], shape[-2], False
    raise BadUse(
        f"an image does not fit the input '{port.name}' of shape {list(shape)}; it must be [1,C,H,W] or [1,H,W,C] with "
        "1 or 3 channels. Prepare it in Python and give an .npz."
    )


def _numbers(text: str | None, flag: str, default: float) -> Array:
    if text is None:
        return np.full(1, default, np.float32)
    try:
        return np.array([float(part) for part in text.split(",")], np.float32)
    except ValueError:
        raise BadUse(f"{flag} takes a number or one a channel, as 0.485,0.456,0.406; got '{text}'") from None


def _sound(path: str, port: Port, shape: tuple[int, ...]) -> Array:
    """A .wav as samples in [-1, 1) (integers as they are where the model takes them), the mean of its channels, as the
    last axis of the model's input; cut or filled with zeros to the size of that, where it is fixed. The rate stays.
    """
    try:
        with wave.open(path, "rb") as file:
            width, channels, count = file.getsampwidth(), file.getnchannels(), file.getnframes()
            data = file.readframes(count)
    except (wave.Error, EOFError) as error:
        raise hetnn.InvalidModel(f"'{path}' is no .wav of plain samples: {error}.") from error
    kinds = {1: np.uint8, 2: np.int16, 4: np.int32}
    if width not in kinds:
        raise hetnn.InvalidModel(f"'{path}' has samples of {8 * width} bits; 8, 16 and 32 are read.")
    samples = np.frombuffer(data, kinds[width]).reshape(-1, channels)
    if any(size != 1 for size in shape[:-1]) or not shape:
        raise BadUse(
            f"a sound does not fit the input '{port.name}' of shape {list(shape)}; it must be [samples] or [1,…]"
        )
    dtype = numpy_type(port.dtype)
    if np.issubdtype(dtype, np.floating):
        middle, peak = (128.0, 128.0) if width == 1 else (0.0, float(2 ** (8 * width - 1)))
        mono = ((samples.astype(np.float64) - middle) / peak).mean(axis=1)
    else:
        mono = np.rint(samples.astype(np.float64).mean(axis=1))
    size = port.shape[-1]
    if isinstance(size, int):
        mono = np.pad(mono[:size], (0, max(size - mono.size, 0)))
    return np.asarray(mono.reshape([1] * (len(shape) - 1) + [-1]), dtype)
