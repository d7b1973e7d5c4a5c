"""How right networks stay in int8: hetnn's quantizer beside those of ONNX Runtime and torchao, from the same samples.

    python benchmarks/quantize.py [--cases digits,mtcnn,faces,minilm,resnet18] [--json FILE]

Each peer quantizes with its defaults (ONNX Runtime also with scales by filter) and runs what it made. `digits`: right
answers of a trained classifier. `mtcnn`: how far the astronaut's box is from that in float, in pixels, and its
probability; the samples are other photos. `faces`: how many boxes of 100 faces overlap those in float by 0.7 at least,
again with other photos as samples. `minilm`: the least and the mean cosine of sentences' embeddings to those in
float, on sentences that were no samples. `resnet18`: signal over noise of the output, random weights and images.
torchao is compared where it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import hetnn

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("tests/python", "tests/python/quantize", "examples")]

Array = NDArray[Any]
Network = Callable[..., list[Array]]
Sample = tuple[Array, ...]


@dataclass
class Part:
    """A network to be quantized: what it is called with, and which axes of its inputs are open."""

    module: torch.nn.Module
    samples: list[Sample]
    open_axes: Sequence[int] = ()

    def export(self) -> torch.export.ExportedProgram:
        shapes = None
        if self.open_axes:
            side = torch.export.Dim.DYNAMIC(min=1 if 0 in self.open_axes else 13, max=4096)
            shapes = tuple(dict.fromkeys(self.open_axes, side) for _ in self.samples[0])
        largest = max(self.samples, key=lambda sample: sample[0].size)  # a batch of one would be taken to be fixed
        return torch.export.export(self.module, self.tensors(largest), dynamic_shapes=shapes)

    @staticmethod
    def tensors(sample: Sample) -> tuple[torch.Tensor, ...]:
        return tuple(torch.from_numpy(array) for array in sample)


@dataclass
class Case:
    """Networks, and how to judge what became of them: figures by name."""

    parts: list[Part]
    judge: Callable[[list[Network]], dict[str, float]]


def as_list(outputs: Any) -> list[Array]:
    return [np.asarray(output) for output in (outputs if isinstance(outputs, (tuple, list)) else [outputs])]


def in_torch(part: Part) -> Network:
    def run(*inputs: Array) -> list[Array]:
        with torch.no_grad():
            return as_list(part.module(*Part.tensors(inputs)))

    return run


def by_hetnn(calibrator: str, scheme: str = "int8", **options: Any) -> Callable[[Part], Network]:
    def make(part: Part) -> Network:
        executable = hetnn.quantize(part.export(), part.samples, scheme, calibrator, "cpu", **options)
        return lambda *inputs: as_list(executable(*inputs))

    return make


def by_onnxruntime(**options: Any) -> Callable[[Part], Network]:
    def make(part: Part) -> Network:
        import onnxruntime
        from onnxruntime.quantization import CalibrationDataReader, quantize_static

        names = [f"x{k}" for k in range(len(part.samples[0]))]

        class Reader(CalibrationDataReader):
            def __init__(self) -> None:
                self.left = iter(part.samples)

            def get_next(self) -> dict[str, Array] | None:
                sample = next(self.left, None)
                return None if sample is None else dict(zip(names, sample, strict=True))

        with tempfile.TemporaryDirectory() as folder:
            plain, made = f"{folder}/plain.onnx", f"{folder}/made.onnx"
            axes = {name: {axis: f"{name}_{axis}" for axis in part.open_axes} for name in names}
            torch.onnx.export(
                part.module, Part.tensors(part.samples[0]), plain, dynamo=False, input_names=names, dynamic_axes=axes
            )
            quantize_static(plain, made, Reader(), **options)
            session = onnxruntime.InferenceSession(made, providers=["CPUExecutionProvider"])
        return lambda *inputs: list(session.run(None, dict(zip(names, inputs, strict=True))))

    return make


def by_torchao(part: Part) -> Network:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(part.export().module(), quantizer)
    with torch.no_grad():
        for sample in part.samples:
            prepared(*Part.tensors(sample))
        made = convert_pt2e(prepared)

    def run(*inputs: Array) -> list[Array]:
        with torch.no_grad():
            return as_list(made(*Part.tensors(inputs)))

    return run


def digits() -> Case:
    import trained

    images, labels = trained.digits(2000, 20)

    def judge(networks: list[Network]) -> dict[str, float]:
        return {"right %": float((networks[0](images)[0].argmax(1) == labels).mean() * 100)}

    part = Part(trained.classifier(), [(trained.digits(100, 100 + k)[0],) for k in range(10)], (0,))
    return Case([part], judge)


def mtcnn_parts(photos: Sequence[NDArray[np.uint8]]) -> list[Part]:
    """MTCNN's three networks, and what they are given for some photos."""
    from models.faces import seen_by
    from mtcnn import networks

    parts = [
        Part(module, [], axes) for module, axes in zip(networks.load_networks(), [(2, 3), (0,), (0,)], strict=True)
    ]
    for part, seen in zip(parts, seen_by([in_torch(part) for part in parts], photos), strict=True):
        part.samples = [(x,) for x in seen]
    return parts


def mtcnn() -> Case:
    from skimage import data

    from models.faces import hundred_faces
    from mtcnn import cascade

    parts = mtcnn_parts([data.coffee(), data.chelsea(), hundred_faces()])
    want = cascade.detect(data.astronaut(), *[in_torch(part) for part in parts])

    def judge(made: list[Network]) -> dict[str, float]:
        found = cascade.detect(data.astronaut(), *made)
        if len(found) != 1:
            return {"boxes": float(len(found)), "off px": float("inf"), "p": 0.0}
        off = float(np.abs(found.boxes - want.boxes).max())
        return {"boxes": 1.0, "off px": off, "p": float(found.probabilities[0])}

    return Case(parts, judge)


def faces() -> Case:
    from models.faces import hundred_faces, other_photos, overlaps
    from mtcnn import cascade

    parts = mtcnn_parts(other_photos())
    want = cascade.detect(hundred_faces(), *[in_torch(part) for part in parts])

    def judge(made: list[Network]) -> dict[str, float]:
        found = cascade.detect(hundred_faces(), *made)
        kept = overlaps(want.boxes, found.boxes)
        return {"boxes": float(len(found)), "kept": float((kept >= 0.7).sum()), "least IoU": float(kept.min())}

    return Case(parts, judge)


def sentences(folder: str) -> list[str]:
    """Of a folder's pages: prose lines of some length."""
    text = "\n".join(path.read_text() for path in sorted((ROOT / folder).glob("*.md")))
    found = re.findall(r"(?<=[.:] )[A-Z][a-z]+ [a-zA-Z ,']{30,110}[.;:]", text)
    return list(dict.fromkeys(found))


def minilm() -> Case:
    from models import nets

    tokens = 24
    module = nets.Encoder(nets.minilm_folder()).eval()

    def encoded(texts: list[str]) -> list[Sample]:
        ids, mask = nets.tokenize([*texts, " ".join(["long"] * 100)])
        return [(ids[k : k + 1, :tokens].numpy(), mask[k : k + 1, :tokens].numpy()) for k in range(len(texts))]

    samples = sentences("docs")
    asked = encoded(
        [
            "A cat sits on the mat and looks at the rain.",
            "How do I make a cake with chocolate?",
            "The stock market fell sharply on Monday.",
            "A new species of frog was discovered in the rainforest.",
            "Football players run a lot during a match.",
            "She plays the violin in an orchestra.",
            "The hotel was near the airport, but noisy at night.",
            "Who wrote the novel War and Peace?",
            *(each for each in sentences("docs/decisions") if each not in samples),
        ]
    )
    plain = in_torch(Part(module, asked))

    def embedding(network: Network, sample: Sample) -> Array:
        mean = (network(*sample)[0][0] * sample[1][0][:, np.newaxis]).sum(0)
        return np.asarray(mean / np.linalg.norm(mean))

    def judge(made: list[Network]) -> dict[str, float]:
        cosines = [float(embedding(plain, one) @ embedding(made[0], one)) for one in asked]
        return {"least cosine": min(cosines), "mean cosine": float(np.mean(cosines))}

    return Case([Part(module, encoded(samples))], judge)


def resnet18() -> Case:
    from models import nets

    module, _ = nets.vision("resnet18", 96)
    rng = np.random.default_rng(0)
    images = [rng.standard_normal((1, 3, 96, 96)).astype(np.float32) for _ in range(40)]
    part = Part(module, [(image,) for image in images[:32]])
    plain = in_torch(part)

    def judge(made: list[Network]) -> dict[str, float]:
        want, got = (np.stack([network(image)[0] for image in images[32:]]) for network in (plain, made[0]))
        return {"SNR dB": float(10 * np.log10((want**2).sum() / ((want - got) ** 2).sum()))}

    return Case([part], judge)


CASES = {"digits": digits, "mtcnn": mtcnn, "faces": faces, "minilm": minilm, "resnet18": resnet18}


def peers() -> dict[str, Callable[[Part], Network]]:
    """By name, ours first."""
    out: dict[str, Callable[[Part], Network]] = {f"hetnn {name}": by_hetnn(name) for name in ("mse", "minmax")}
    out["hetnn int16x8"] = by_hetnn("minmax", scheme="int16x8")
    out["hetnn minmax, plain"] = by_hetnn("minmax", equalize=False, correct_bias=False, adapt_rounding=False)
    if importlib.util.find_spec("onnxruntime"):
        out["onnxruntime"] = by_onnxruntime()
        out["onnxruntime by filter"] = by_onnxruntime(per_channel=True)
    if importlib.util.find_spec("torchao"):
        out["torchao PT2E"] = by_torchao
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    document: dict[str, Any] = {}
    for name in args.cases.split(","):
        case = CASES[name]()
        rows = document[name] = {"float": {**case.judge([in_torch(part) for part in case.parts]), "s": 0.0}}
        for peer, make in peers().items():
            began = time.perf_counter()
            try:
                made = [make(part) for part in case.parts]
                took_s = time.perf_counter() - began
                rows[peer] = {**case.judge(made), "s": took_s}
            except Exception as error:  # what a peer cannot do is its answer
                rows[peer] = {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:80]}"}
        print(f"{name}, {', '.join(str(len(part.samples)) for part in case.parts)} samples")
        for peer, row in rows.items():
            cells = [f"{key} {value:.4f}" if isinstance(value, float) else str(value) for key, value in row.items()]
            print(f"  {peer:22} {'   '.join(cells)}", flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
