"""Labels of networks that onnxruntime's static quantizer wrote: hetnn's beside ONNX Runtime's and those in float.

    python benchmarks/labels.py [--nets resnet18,mobilenet_v2,minilm] [--inputs 500] [--simulated 20]
                                [--rounding double] [--batches 200] [--json FILE]

`resnet18`, `mobilenet_v2`: trained here, on so many batches of 32 images [3,64,64] of digits; `minilm`: the published
weights, and sentences of Python's manual whose label is the nearest of eight chapters' mean embeddings. Activations are
u8, weights i8, scales from 32 other inputs. hetnn compiles the file for the CPU, which runs all inputs, and for
`cpu+relu-rows`, an integer NPU that rounds as its data sheet says or as named, whose simulator runs the first of them.
`as written` is ONNX Runtime without its optimizer, which computes the layers between conversions in f32: how far it is
from itself. A row a network: labels equal by pairs, signal over noise against float in dB, the NPU's share of MACs and
its subgraphs. Inputs whose labels differ from ONNX Runtime's stand below, with how far its two largest logits are
apart, in steps of its result.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray
from quantized import runtime, write_quantized

import hetnn
from hetnn.targets import load_spec

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("tests/python", "tests/python/quantize")]

Array = NDArray[Any]
Sample = list[Array]
NPU = "relu-rows"
SAMPLES = 32


def images(name: str, count: int, batches: int) -> tuple[torch.nn.Module, list[Sample]]:
    """A classifier of digits, trained on so many batches, and samples and images for it."""
    import trained

    from models import nets

    def seen(many: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        small, labels = trained.digits(many, seed)
        return torch.from_numpy(small.repeat(4, 2).repeat(4, 3).repeat(3, 1)), torch.from_numpy(labels)

    module, _ = nets.vision(name, num_classes=10)
    optimizer = torch.optim.Adam(module.parameters(), 1e-3)
    module.train()
    for seed in range(batches):
        rows, labels = seen(32, 100 + seed)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(module(rows), labels).backward()
        optimizer.step()
    return module.eval(), [[row[None].numpy()] for row in seen(SAMPLES + count, 2)[0]]


def fit(last: Any, features: torch.Tensor, labels: Array, classes: int) -> None:
    """Makes a linear layer that of least squares between features and labels."""
    mean = features.mean(0)
    centred = (features - mean).double()
    goal = torch.nn.functional.one_hot(torch.from_numpy(labels), classes).double() - 1 / classes
    gram = centred.T @ centred
    gram += 0.1 * gram.diagonal().mean() * torch.eye(len(gram), dtype=torch.float64)
    weight = torch.linalg.solve(gram, centred.T @ goal).T.float()
    with torch.no_grad():
        last.weight.copy_(weight)
        last.bias.copy_(1 / classes - weight @ mean)


class Chapters(torch.nn.Module):
    """Which chapter's mean embedding is nearest to that of a sentence."""

    def __init__(self, encoder: torch.nn.Module, wide: int, classes: int) -> None:
        super().__init__()
        self.encoder, self.last = encoder, torch.nn.Linear(wide, classes)

    def embedding(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        hidden = self.encoder(ids, mask)
        own = mask.unsqueeze(-1).to(hidden.dtype)
        return (hidden * own).sum(1) / own.sum(1)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.last(self.embedding(ids, mask))
        return out


def sentences(count: int) -> tuple[list[str], Array]:
    """Of the longest chapters of Python's manual, in turns, and of which each is."""
    from pydoc_data.topics import topics

    def of(chapter: str) -> list[str]:
        found = re.findall(r"(?<=[.] )[A-Z][^.:*|\[\]]{40,200}[.]", " ".join(topics[chapter].split()))
        return list(dict.fromkeys(found))

    chapters = sorted(map(of, topics), key=len)[-8:]
    rows = [(text, k) for turn in zip(*chapters, strict=False) for k, text in enumerate(turn)]
    rows += [(text, k) for k, chapter in enumerate(chapters) for text in chapter]
    texts = dict(rows)
    if len(texts) < count:
        raise ValueError(f"Python's manual has {len(texts)} sentences; {count} are needed")
    return list(texts)[:count], np.array(list(texts.values()))[:count]


def minilm(_: str, count: int, __: int) -> tuple[torch.nn.Module, list[Sample]]:
    from models import nets

    tokens, chapters = 32, 8
    texts, labels = sentences(SAMPLES + count)
    ids, mask = (part[:-1, :tokens] for part in nets.tokenize([*texts, " ".join(["long"] * 100)]))
    module = Chapters(nets.Encoder(nets.minilm_folder()), 384, chapters).eval()
    with torch.no_grad():
        rows = torch.cat([module.embedding(*pair) for pair in zip(ids.split(32), mask.split(32), strict=True)])
    fit(module.last, rows, labels, chapters)
    return module, [[ids[k : k + 1].numpy(), mask[k : k + 1].numpy()] for k in range(len(texts))]


NETS: dict[str, Callable[[str, int, int], tuple[torch.nn.Module, list[Sample]]]] = {
    "resnet18": images,
    "mobilenet_v2": images,
    "minilm": minilm,
}


def signal_db(want: Array, got: Array) -> float:
    return float(10 * np.log10((want**2).sum() / max(((want - got) ** 2).sum(), 1e-30)))


def on_npu(executable: hetnn.Executable) -> dict[str, Any]:
    report = executable.report(format="dict")
    macs = report["macs_on"]
    own = {device: count for device, count in macs.items() if device != "cpu"}
    parts = [part for part in report["subgraphs"] if part["device"] in own]
    return {"share": sum(own.values()) / max(sum(macs.values()), 1), "subgraphs": len(parts)}


def target_of(rounding: str | None) -> Any:
    spec = load_spec(NPU)
    if rounding:
        spec["numerics"]["rounding"] = rounding
    devices = [{"name": "cpu", "kind": "cpu"}, {"name": NPU, "kind": "npu", "spec": spec}]
    return {"name": f"cpu+{NPU}", "devices": devices}


def measure(net: str, inputs: int, simulated: int, threads: int, target: Any, batches: int) -> dict[str, Any]:
    module, every = NETS[net](net, inputs, batches)
    samples, rest = every[:SAMPLES], every[SAMPLES:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_quantized(module, samples, folder, per_channel=net != "minilm")
        session = runtime(folder / "i8.onnx", threads)
        names = [port.name for port in session.get_inputs()]
        as_written = onnxruntime.SessionOptions()
        as_written.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        as_written.intra_op_num_threads = threads
        plain = onnxruntime.InferenceSession(folder / "i8.onnx", as_written, providers=["CPUExecutionProvider"])
        npu, cpu = (hetnn.compile(folder / "i8.onnx", target, threads=threads) for target in (target, "cpu"))

    def of(run: Callable[[Sample], Any], given: Sequence[Sample]) -> Array:
        return np.stack([np.asarray(run(sample)).reshape(-1) for sample in given])

    with torch.no_grad():
        found = {
            "float": of(lambda sample: module(*map(torch.from_numpy, sample)), rest),
            "onnxruntime": of(lambda sample: session.run(None, dict(zip(names, sample, strict=True)))[0], rest),
            "as written": of(lambda sample: plain.run(None, dict(zip(names, sample, strict=True)))[0], rest),
            "hetnn": of(lambda sample: cpu(*sample), rest),
        }
    began = time.perf_counter()
    simulator = of(lambda sample: npu(*sample), rest[:simulated])
    took_s = (time.perf_counter() - began) / max(simulated, 1)
    labels = {who: logits.argmax(1) for who, logits in found.items()}
    values = np.unique(found["onnxruntime"])
    step = float(np.diff(values).min())
    two = np.sort(found["onnxruntime"], 1)[:, -2:]
    apart = np.flatnonzero(labels["hetnn"] != labels["onnxruntime"])
    return {
        "net": net,
        "inputs": inputs,
        "classes": len(np.unique(labels["float"])),
        "equal": {
            f"{a}, {b}": int((labels[a] == labels[b]).sum())
            for a, b in (
                ("hetnn", "onnxruntime"),
                ("as written", "onnxruntime"),
                ("hetnn", "as written"),
                ("hetnn", "float"),
                ("onnxruntime", "float"),
            )
        },
        "db": {who: signal_db(found["float"], found[who]) for who in ("hetnn", "onnxruntime", "as written")},
        "logits_equal": {
            who: int((found[who] == found["onnxruntime"]).all(1).sum()) for who in ("hetnn", "as written")
        },
        "npu": {
            **on_npu(npu),
            "inputs": simulated,
            "s": took_s,
            "equal": {who: int((simulator.argmax(1) == labels[who][:simulated]).sum()) for who in labels},
            "logits_equal": int((simulator == found["hetnn"][:simulated]).all(1).sum()),
            "db": signal_db(found["float"][:simulated], simulator),
            "onnxruntime_db": signal_db(found["float"][:simulated], found["onnxruntime"][:simulated]),
        },
        "apart": [{"input": int(k), "steps": round(float(two[k, 1] - two[k, 0]) / step)} for k in apart],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--inputs", type=int, default=500)
    parser.add_argument("--simulated", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--rounding", choices=["double", "single", "half_even_fp32"])
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for net in args.nets.split(","):
        row = measure(net, args.inputs, args.simulated, args.threads, target_of(args.rounding), args.batches)
        rows.append(row)
        equal = "  ".join(f"{pair} {count}" for pair, count in row["equal"].items())
        print(f"{net}: labels equal of {row['inputs']}, in {row['classes']} classes: {equal}")
        print("  dB: " + "  ".join(f"{who} {db:.2f}" for who, db in row["db"].items()))
        npu = row["npu"]
        print(f"  {NPU}: {npu['share']:.2%} of MACs in {npu['subgraphs']} subgraphs")
        as_others = ", ".join(f"{who}'s {count}" for who, count in npu["equal"].items())
        print(f"  {npu['inputs']} simulated, {npu['s']:.2f} s each: labels as {as_others}; ", end="")
        print(
            f"results as the CPU's {npu['logits_equal']}; dB {npu['db']:.2f}, onnxruntime {npu['onnxruntime_db']:.2f}"
        )
        told = ", ".join(f"{each['input']} ({each['steps']} steps)" for each in row["apart"])
        same = ", ".join(f"{who} {count}" for who, count in row["logits_equal"].items())
        print(f"  apart from onnxruntime: {told or 'none'}; all logits as its own: {same}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
