"""Random layers of integers beside TOSA's reference model: a row of each kind, and where integers differ.

    python tests/python/fuzz/fuzz_tosa.py [--layers 500] [--seed 0] [--kinds ADD,PRELU] [--types i8,i16] [--single]

The layers are those of fuzz_tflite_layers.py. Arm's converter writes each as TOSA operators, which the model of TOSA's
specification runs; with --single every rescaling of theirs and of hetnn's rounds once. What the converter cannot write
is counted, not compared, and kinds that TOSA defines otherwise (docs/numerics.md) are not among KINDS. Exit code 1
where one integer differs or hetnn refuses what TOSA has.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent
(APART,) = (FOLDER.parents[2] / "build" / "apart").glob("lib/python*/site-packages")  # see requirements-apart.txt
sys.path.append(str(APART))
import tosa_reference_model  # noqa: E402
from tosa_converter_for_tflite import TosaConverterOutputFormat, tflite_flatbuffer_to_tosa_mlir  # noqa: E402

sys.path.remove(str(APART))
sys.path[:0] = [str(FOLDER.parent)]
import hetnn  # noqa: E402
from fuzz import fuzz_tflite_layers as layers  # noqa: E402
from hetnn.importers import import_model  # noqa: E402
from importers.tflite_files import Array, one  # noqa: E402

OPTIMIZER = APART / "bin" / "tosa-opt"
ALL, BYTES, SIGNED = layers.ALL, layers.BYTES, layers.SIGNED
# Kinds that TOSA defines as LiteRT does, and the types of each.
KINDS: dict[str, Sequence[str]] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "MEAN"), ALL),
    **dict.fromkeys(("MAX_POOL_2D", "REDUCE_MAX", "REDUCE_MIN", "CONCATENATION", "QUANTIZE"), ALL),
    **dict.fromkeys(("DEQUANTIZE", "RESIZE_NEAREST_NEIGHBOR"), ALL),
    **dict.fromkeys(("PRELU", "LOGISTIC", "TANH", "HARD_SWISH", "GELU", "LEAKY_RELU", "SUM"), BYTES),
    **dict.fromkeys(("BATCH_MATMUL", "AVERAGE_POOL_2D"), SIGNED),
    **dict.fromkeys(("SQUARED_DIFFERENCE", "SOFTMAX", "LOG"), ("i8",)),
    "TRANSPOSE_CONV": ALL,
    "NEG": ("i16",),
}
# What TFLite's activations ReLU -1 to 1 and ReLU6 are bound by, in absolute value.
BOUNDS = {2: 1.0, 3: 6.0}
# Those that have a factor to be rounded once: sums of i16 are not among them, whose factor LiteRT then keeps whole.
ONCE: dict[str, Sequence[str]] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"), BYTES),
    **dict.fromkeys(("ADD", "SUB", "MUL", "QUANTIZE"), ALL),
}


def _layer(d: layers.Draw, name: str) -> layers.Layer:
    """As TensorFlow's tools write it: the converter leaves out a pool's activation."""
    name, operands, results, options = layers.KINDS[name][1](d, name)
    if options.get("") == "Pool2DOptions":
        options = {**options, "FusedActivationFunction": 0}
    return name, operands, results, options


def _is_defined_otherwise(layer: layers.Layer) -> bool:
    """Nearest places that TensorFlow rounds down; where in a transposed image lies what no weight reaches; movement of
    sums of 48 bits, which TOSA has not; bounds of activations that the converter divides by the scale in f64 and LiteRT
    in f32, where the integers are others.
    """
    name, operands, (result,), options = layer
    if result.quant is not None:
        scale = np.float32(result.quant.scale)
        bound = np.float32(BOUNDS.get(options.get("FusedActivationFunction", 0), 0))
        if np.floor(float(bound / scale) + 0.5) != np.floor(float(bound) / float(scale) + 0.5):
            return True
    if name == "BATCH_MATMUL" and result.dtype == "i16" and operands[0] is not None:
        return len(operands[0].shape) != 3
    if name == "RESIZE_NEAREST_NEIGHBOR":
        return not (options["AlignCorners"] or options["HalfPixelCenters"])
    kernel = operands[1].shape[1:3] if name == "TRANSPOSE_CONV" and operands[1] is not None else []
    return any(size < options["StrideH"] for size in kernel)


def _graph(layer: layers.Layer, single: bool) -> str:
    """The layer in hetnn's own text; rescalings as such, not as the tables that TFLite's become."""
    name, operands, (result,), _ = layer
    (operand, *_) = operands
    rounding = "single" if single else "double"
    if name != "QUANTIZE" or operand is None:
        text: str = import_model(one(*layer)).graph.print()
        return text.replace("q_rounding = double", f"q_rounding = {rounding}")
    x, y = (f"{t.dtype}{{{t.quant.scale}:{t.quant.zero}}}{list(operand.shape)}" for t in (operand, result) if t.quant)
    assert result.quant is not None
    how = f"to = {result.dtype}, q_scale = [{result.quant.scale}], q_zero = {result.quant.zero}"
    return f"""graph @q {{stage = imported}} (%x: {x}) -> (%y) {{
      %y = quantize(%x) {{{how}, q_rounding = {rounding}}} : {y}
    }}"""


def _in_tosa(data: bytes, single: bool) -> bytes | None:
    """A TFLite file as a file of TOSA; None where the converter cannot."""
    with tempfile.TemporaryDirectory() as folder:
        source, text, file = (Path(folder) / name for name in ("a.tflite", "a.mlir", "a.tosa"))
        source.write_bytes(data)
        try:
            tflite_flatbuffer_to_tosa_mlir(str(source), str(text), TosaConverterOutputFormat.Text)
        except RuntimeError:
            return None
        if single:
            text.write_text(text.read_text().replace("DOUBLE_ROUND", "SINGLE_ROUND"))
        passes = ["--tosa-convert-integer-type-to-signless", "--tosa-serialize", f"--tosa-flatbuffer-filename={file}"]
        subprocess.run([OPTIMIZER, text, *passes, "-o", "/dev/null"], capture_output=True, check=False)
        return file.read_bytes() if file.exists() else None


def _reference(data: bytes, given: Sequence[Array], like: Array, single: bool) -> Array | str:
    """What TOSA's model computes, or why it does not."""
    file = _in_tosa(data, single)
    if file is None:
        return "the converter does not write it"
    try:
        (found, *_), status = tosa_reference_model.run(file, given)
    except ValueError as error:
        return str(error)
    if status != tosa_reference_model.GraphStatus.TOSA_VALID:
        return status.name
    return np.asarray(found).astype(like.dtype).reshape(like.shape)


def compare(name: str, dtype: str, seed: int, single: bool = False) -> layers.Compared:
    """equal, differ, refused, or untaken by TOSA; a sentence; the most steps that integers are apart."""
    d = layers.Draw(name, dtype, seed)
    layer = _layer(d, name)
    given = [d.values(told) for told in layer[1] if told is not None and told.data is None]
    if _is_defined_otherwise(layer):
        return "untaken", "TOSA defines it otherwise", 0
    try:
        found = hetnn.compile(_graph(layer, single))(*given)
    except hetnn.Error as error:
        return "refused", str(error).replace("\n", " ")[:160], 0
    (result,) = layer[2]
    wanted = _reference(one(*layer[:2], [replace(result, shape=found.shape)], layer[3]), given, found, single)
    if isinstance(wanted, str):
        return "untaken", wanted, 0
    return layers.beside(found, wanted)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    layers.add_arguments(parser, layers=500)
    parser.add_argument("--single", action="store_true", help="every rescaling rounds once")
    args = parser.parse_args()
    return layers.print_sweep(args, ONCE if args.single else KINDS, partial(compare, single=args.single))


if __name__ == "__main__":
    sys.exit(main())
