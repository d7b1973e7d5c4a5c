"""Finds the face on a photo with MTCNN, its three networks compiled by hetnn for a CPU and an NPU without PReLU.

    python -m mtcnn.demo [--output FOLDER] [--target TARGET] [--device NAME=HOST:PORT --token-file F]

With --device, subgraphs of a device of the target run at a `hetnn device serve` elsewhere.

Prints for each network where its nodes run, without and with the rewriting of PReLU, and how far its results are from
torch's; writes face.png and plan.svg. Ends with exit code 0 only when the face is where the published detector sees it.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from skimage import data

import hetnn
from hetnn.report.picture import as_svg
from hetnn.report.text import count
from mtcnn import cascade, networks

# What the published detector finds on the photo.
BOX = (181.05, 62.16, 267.75, 172.05)
PROBABILITY = 0.9999977
BOX_TOLERANCE = 0.5  # pixels
PROBABILITY_TOLERANCE = 1e-3


class Elsewhere:
    """A network of which a device's subgraphs run at a device server. That has no compiler: it is given code for each
    size of the input."""

    def __init__(self, module: torch.nn.Module, args: argparse.Namespace) -> None:
        self.module, self.target, self.output = module, args.target, args.output
        self.device, _, at = args.device.partition("=")
        self.place = {"at": at, "token_file": args.token_file}
        self.by_shape: dict[tuple[int, ...], hetnn.Executable] = {}
        self.last_times: list[dict[str, Any]] = []

    def __call__(self, x: cascade.Array) -> Sequence[Any]:
        if x.shape not in self.by_shape:
            self.by_shape[x.shape] = self.compiled(x)
        executable = self.by_shape[x.shape]
        outputs: Sequence[Any] = executable(x)
        self.last_times = executable.last_times
        return outputs

    def compiled(self, x: cascade.Array) -> hetnn.Executable:
        """For the sizes of x, and loaded with the place of the device."""
        exported = torch.export.export(self.module, (torch.from_numpy(x),), strict=False)
        executable = hetnn.compile(exported, self.target, strategy="topological", rewrite="always")
        executable.save(self.output / "elsewhere.hetnn")
        return hetnn.load(self.output / "elsewhere.hetnn", devices={self.device: self.place}, copy=True)


class CompiledNetwork:
    """An executable as the cascade wants it, with torch run beside it."""

    def __init__(
        self, executable: hetnn.Executable, runs: hetnn.Executable | Elsewhere, module: torch.nn.Module
    ) -> None:
        self.executable, self.runs = executable, runs
        self.module = module
        self.calls = 0
        self.difference = 0.0
        self.npu_us = 0.0
        self.places: set[str] = set()  # where subgraphs ran
        devices = executable.target["devices"]
        clocks = {row["name"]: (row.get("spec") or {}).get("clock_hz") for row in devices}
        self.cycles_per_us = {name: hz / 1e6 for name, hz in clocks.items() if hz}

    def __call__(self, x: cascade.Array) -> Sequence[Any]:
        outputs: Sequence[Any] = self.runs(x)
        with torch.no_grad():
            expected = self.module(torch.from_numpy(x))
        for output, reference in zip(outputs, expected, strict=True):
            if output.size:
                self.difference = max(self.difference, float(np.abs(output - reference.numpy()).max()))
        self.calls += 1
        times = self.runs.last_times
        self.npu_us += sum(row["cycles"] / self.cycles_per_us.get(row["device"], 1) for row in times)
        self.places |= {row["at"] for row in times}
        return outputs


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("out"), help="folder for face.png and plan.svg")
    parser.add_argument("--target", default="cpu+relu-only", help="what to compile for")
    parser.add_argument("--device", metavar="NAME=HOST:PORT", help="a device of the target that is elsewhere")
    parser.add_argument("--token-file", help="of the device server's token")
    args = parser.parse_args(argv)
    args.output.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore", "`isinstance.treespec, LeafSpec", FutureWarning)  # torch.export's own

    photo: NDArray[np.uint8] = data.astronaut()  # type: ignore[no-untyped-call]
    modules = networks.load_networks()
    compiled, plans = {}, {}
    for (name, exported), module in zip(networks.export_networks().items(), modules, strict=True):
        began = time.perf_counter()
        plain = hetnn.plan(exported, args.target, strategy="topological", rewrite="off")
        rewritten = hetnn.plan(exported, args.target, strategy="topological", rewrite="always")
        executable = hetnn.compile(exported, args.target, strategy="topological", rewrite="always")
        runs = executable if args.device is None else Elsewhere(module, args)
        compiled[name] = CompiledNetwork(executable, runs, module)
        plans[name] = (plain, rewritten)
        print(f"{name}: compiled in {time.perf_counter() - began:.1f} s", file=sys.stderr)

    began = time.perf_counter()
    faces = cascade.detect(photo, *compiled.values())
    print(f"cascade: {time.perf_counter() - began:.1f} s", file=sys.stderr)

    for name, network in compiled.items():
        print_network(name, network, *plans[name])
    draw_faces(photo, faces, args.output / "face.png")
    report = compiled["P-Net"].executable.report(format="dict")
    (args.output / "plan.svg").write_text(as_svg(report, "P-Net, its PReLUs rewritten"), encoding="utf-8")
    print(f"wrote {args.output / 'face.png'} and {args.output / 'plan.svg'}")
    return judge(faces)


def print_network(name: str, network: CompiledNetwork, plain: Any, rewritten: Any) -> None:
    """The table of one network: what runs where, without and with the rewriting of PReLU."""
    print(f"{name}: {network.calls} runs, largest difference from torch {network.difference:.2g}")
    for title, plan in (("without rewrite", plain), ("with rewrite", rewritten)):
        report = plan.report(format="dict")
        nodes = ", ".join(f"{count(nodes, 'node')} on {device}" for device, nodes in report["nodes_on"].items())
        subgraphs = count(len(report["subgraphs"]), "subgraph")
        print(f"  {title:15}  {nodes}; {subgraphs}; {report['crossing_bytes']:,.0f} bytes cross")
    if network.npu_us:
        print(f"  simulated NPU time of these runs: {network.npu_us / 1e3:.2f} ms")
    print(f"  subgraphs ran at {', '.join(sorted(network.places))}")


def draw_faces(photo: NDArray[np.uint8], faces: cascade.Faces, path: Path) -> None:
    """Writes the photo with each face's box and landmarks."""
    image = Image.fromarray(photo)
    pen = ImageDraw.Draw(image)
    for box, landmarks in zip(faces.boxes, faces.landmarks, strict=True):
        pen.rectangle([float(edge) for edge in box], outline=(255, 196, 0), width=3)
        for x, y in landmarks:
            pen.ellipse([x - 3, y - 3, x + 3, y + 3], fill=(0, 220, 120))
    image.save(path)


def judge(faces: cascade.Faces) -> int:
    """0 when there is one face and it is the published one, else 1; says which."""
    if len(faces) != 1:
        print(f"found {len(faces)} faces; expected one")
        return 1
    box, probability = faces.boxes[0], float(faces.probabilities[0])
    points = " ".join(f"[{x:.1f},{y:.1f}]" for x, y in faces.landmarks[0])
    print(f"face [{', '.join(f'{edge:.2f}' for edge in box)}], probability {probability:.7f}, landmarks {points}")
    off = float(np.abs(box - np.array(BOX)).max())
    doubt = abs(probability - PROBABILITY)
    held = off <= BOX_TOLERANCE and doubt <= PROBABILITY_TOLERANCE
    print(f"{'as' if held else 'not as'} published: box within {off:.3f} pixels, probability within {doubt:.1e}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
