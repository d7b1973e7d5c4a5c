"""The three services' networks for C and C++ programs: files, inputs and the answers that Python gets."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import hetnn
from models import nets
from models.test_onnx_weights import voice
from mtcnn import networks
from services import speech

Array = np.ndarray


@dataclass
class Case:
    """A saved network, what each step of one session is given, and all that Python answers, as bytes."""

    path: Path
    steps: list[list[Array]]
    answers: bytes


def save_services(folder: Path) -> dict[str, Case]:
    """The face detector's last network, the sentence encoder, the speech detector, each for cpu+relu-only."""
    rng = np.random.default_rng(0)
    (*_, face) = networks.export_networks().values()
    module, example = nets.minilm_real()
    text = torch.export.export(module, example, strict=False)
    compiled: dict[str, tuple[hetnn.Executable, list[list[Array]]]] = {
        "faces": (
            hetnn.compile(face, "cpu+relu-only"),
            [[rng.standard_normal((8, 3, 48, 48), dtype=np.float32)]],
        ),
        "text": (hetnn.compile(text, "cpu+relu-only"), [[value.numpy() for value in example]]),
        "speech": (
            hetnn.compile(speech.published(), "cpu+relu-only", fix=speech.FRAME, states={"state": "stateN"}),
            [[frame] for frame in speech.frames(voice(12))],
        ),
    }
    out = {}
    for name, (executable, steps) in compiled.items():
        path = folder / f"{name}.hetnn"
        for step in steps[:1]:  # accelerators have code for the sizes that were met
            executable.run(step)
        executable.save(path)
        loaded = hetnn.load(path)
        session = loaded.session()
        answers = [np.ascontiguousarray(y) for step in steps for y in loaded.run(step, session=session)]
        out[name] = Case(path, steps, b"".join(y.tobytes() for y in answers))
    return out


def libraries(program: Path) -> list[Path]:
    """What the loader takes with a program."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    words = [word for line in said.splitlines() for word in line.split() if word.startswith("/")]
    return [Path(word) for word in dict.fromkeys(words)]


def answer_where_there_is_no_python(program: Path, case: Case, folder: Path) -> bytes:
    """What a program answers in a root folder of its own, with the libraries that it needs and nothing else."""
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    for file in [program, case.path, *libraries(program)]:
        target = root / str(file).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    inputs = []
    for k in range(len(case.steps[0])):
        (root / f"{k}.raw").write_bytes(b"".join(np.ascontiguousarray(step[k]).tobytes() for step in case.steps))
        inputs.append(f"{','.join(map(str, case.steps[0][k].shape))}:/{k}.raw")
    command: Sequence[str] = [str(program), str(case.path), str(len(case.steps)), "/answers.raw", *inputs]
    isolated = ["chroot", str(root)] if os.geteuid() == 0 else ["unshare", "-r", "chroot", str(root)]
    done = subprocess.run([*isolated, *command], capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stderr
    return (root / "answers.raw").read_bytes()
