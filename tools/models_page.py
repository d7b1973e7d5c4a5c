"""The page of the models that are taken: what hetnn knows of torch, ONNX and TFLite, a row a name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from export_page import NOTICE


def _link(row: Any) -> str:
    name = row.op["name"]
    return f"[{name}](operators.md#{name})"


def _table(names: Mapping[str, str]) -> str:
    """Names and how each is taken, in alphabetical order, with their number."""
    plain = sorted((name.removeprefix("aten."), how) for name, how in names.items())
    rows = "\n".join(f"| `{name}` | {how} |" for name, how in plain)
    return f"{len(plain)} names:\n\n| name | how |\n|---|---|\n{rows}"


def models_page() -> str:
    """What is taken of torch and ONNX: by a row of an operator's file, by a rule, by the standard's own definition."""
    from onnx import defs

    import hetnn.importers.tflite.rules
    import hetnn.importers.torch.rules  # noqa: F401
    from hetnn.importers.onnx.rules import load_rare
    from hetnn.importers.onnx.rules.call import ONNX
    from hetnn.importers.onnx.rules.declare import ADDED, REFUSED
    from hetnn.importers.tflite.rules.call import TFLITE
    from hetnn.importers.torch.rules.call import TORCH

    load_rare()
    every = {name.partition("<")[0] for name in (*ONNX.rows, *ONNX.rules)}
    added = {f"{domain}.{name}" if domain else name for domain, name in ADDED}
    taken = every - added
    refused = {f"{domain}.{name}" if domain else name: why for (domain, name), why in REFUSED.items()}
    schemas: Any = defs.get_all_schemas()
    bodies = [s.name for s in schemas if not s.domain and (s.has_function or s.has_context_dependent_function)]
    defined = set(bodies) - taken

    ruled, standard = "by a rule", "as the standard defines it by others, as far as those are there"
    contrib = "of ONNX Runtime, equal to its CPU provider where that has it"
    torch = {name: _link(row) for name, row in TORCH.rows.items()} | dict.fromkeys(TORCH.rules, ruled)
    onnx = {name.partition("<")[0]: ruled for name in (*ONNX.rows, *ONNX.rules)}
    onnx |= {name: _link(row) for name, row in ONNX.rows.items() if name not in added}
    onnx |= dict.fromkeys(defined, standard) | dict.fromkeys(added, contrib)
    onnx |= {name: f"not taken: {why}" for name, why in refused.items()}

    return f"""# Models

{NOTICE}

`hetnn.compile`, `plan` and `check` take a `torch.export.ExportedProgram`, a torch module or a function with `args=`, a
`.pt2` file, an ONNX model (path, bytes or a `ModelProto`), a TFLite model (path or bytes), or hetnn's IR text. What a
model uses beyond the tables below is named in one error, with the places.

## torch

Composites that a device may do at once stay whole; what else has no name below is decomposed as torch does it. `make
sweep-architectures` runs networks of timm and transformers, small and of random weights, beside eager torch. Of its
795, torch does not build small, run, repeat or export 185; of the other 610, 608 are as torch has them (the smallest
ones of timm on an NPU too), and byoanet and pp_doclayout_v4 are as near as torch's own f32 is to its f64.

{_table(torch)}

## ONNX

All operator sets, of the default domain. Named sizes are symbols; shapes computed from shapes are computed when
importing. Axes, bounds and shapes that are values of the model are taken where the model declares the shape of what
they give, which is checked when it runs. Weights may lie in files of the model's folder, and be sparse, which makes
them dense; a sparse input is given dense. Functions of a model are opened, and so is an `If` whose condition is known;
of another, both branches are computed and one is chosen, or only the one that is taken where a branch takes long
(layers, loops) or may refuse values or sizes (picks by indices, divides integers, reshapes). Branches may give values
unlike in rank: all that follows is done for both sides until they are alike, which they must be where they leave a
loop's round; an output of the model has the rank that a run says. `CastMap` and `DictVectorizer` are not taken: they
read maps, and inputs are tensors, sequences of them or optional. `Loop`, `Scan` and sequences are unrolled where the
number of rounds and the lengths are known. What a loop repeats, or one branch computes, is a program of its own,
planned, placed and saved as the model is. Names of inputs, outputs, nodes and sizes are the file's own. Sizes of -1 or
`?` are open, each one its own. Nodes may stand in any order that has no circle. An attribute that says something and
that hetnn does not read is refused by name.
ONNX Runtime's searches (`GreedySearch`, `BeamSearch`, `Sampling`, `WhisperBeamSearch`) run their decoder in a loop and
find ONNX Runtime's words, by its own generator where a seed is given. What it leaves of its memory behind the last word
is padding here. Not read are timestamps of Whisper (`logits_processor`), `cross_qk`, `presence_penalty`, and caches
that a decoder shares with what it gives.
Where ONNX Runtime differs from the standard's text, hetnn does what the text says: NaN among what is compared gives NaN
(`ReduceMax`, `ArgMax`, bounds of `Clip`) and is one number for `Unique`; integers that overflow wrap (`Pow`,
`ReduceSum`); numbers become plain texts, without an exponent; a `StringSplit` by a delimiter finds one piece in an
empty text; `NonZero` of a scalar has no row; `OneHot` cuts fractions off its indices; `Resize` measures places by the
scale as it is given, and `align_corners` by the whole length of the result.
`make sweep-files` runs the model files that packages ship beside ONNX Runtime.
`hetnn.OnnxBackend` is an `onnx.backend.base.Backend`.

{_table(onnx)}

## TFLite

The file's first subgraph, read by the schema in the package `tflite`; no TensorFlow. Inputs and outputs have the names
of the file's signature where it has one, else those of the tensors, and the file's layout; inside, images lie channels
first from one convolution to the next. Sizes that the file leaves open are symbols, unless an operator needs to know
them: then all are as the file states them, or as `fix` does. Variables and the variable tensors of recurrent layers are
states. Of an `IF` whose condition is not known both branches are computed; a `WHILE` is unrolled as long as its
condition is known, then it is a loop. Sparse constants are made dense. Custom operators are refused by name.

Integers are [quantized types](numerics.md), layers of them name LiteRT's rounding, functions of one value of i8 or i16
are tables by LiteRT's own formulas: results are those of LiteRT's reference kernels bit for bit. Of `GELU`, `TANH`,
`EXP`, `ELU`, `LOG` and i8 `LOGISTIC` these call the functions of f32 of the C library that is there when a table is
filled, and so does hetnn: where a value lies between two integers, another library (glibc from 2.41 on) may give the
other. So are an NPU's, which
is given no layer whose rounding its engines do not know: linear layers, whose product LiteRT rounds once (`single`),
stay on the general processor where an NPU only rounds twice. `MAXIMUM`, `MINIMUM`, `FLOOR_DIV` and `FLOOR_MOD` take the
file's integers whatever they stand for, as LiteRT does. What no integer form is for is computed on the reals and
rounded once (normalizations, products along axes, quotients). `make sweep-files` runs files of packages beside LiteRT,
`make fuzz-tflite-layers` random layers, and `make fuzz-tosa` the same beside
[TOSA's reference model](numerics.md#beside-tosa).

{_table(dict.fromkeys(TFLITE.rules, ruled))}
"""
