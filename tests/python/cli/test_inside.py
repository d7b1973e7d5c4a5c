"""The commands that look inside, and the files that they take as inputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hetnn.cli import main
from inside import nets
from inside.trace_format import read_trace

X = torch.linspace(-2, 2, 3 * 14 * 14).reshape(1, 3, 14, 14).sin()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """net.pt2, bad.pt2, whose layer1.1.conv1 is another, and x.npy."""
    folder = tmp_path_factory.mktemp("inside")
    net = nets.residual()
    torch.export.save(torch.export.export(net, (X,)), folder / "net.pt2")
    with torch.no_grad():
        net.layer1[1].conv1.weight[3] *= 1.5
    torch.export.save(torch.export.export(net, (X,)), folder / "bad.pt2")
    np.save(folder / "x.npy", X.numpy())
    return folder


def call(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> tuple[int, Any]:
    """The exit code, and the one JSON document on stdout."""
    capsys.readouterr()
    status = main([*map(str, argv), "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_inspect_says_what_a_file_takes_and_gives(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    packed = folder / "net.hetnn"
    assert main(["compile", str(folder / "net.pt2"), "--target", "cpu+relu-only", "-o", str(packed)]) == 0
    status, answer = call(capsys, "inspect", packed)
    assert status == 0
    assert answer["inputs"] == [{"name": "x", "dtype": "f32", "shape": [1, 3, 14, 14]}]
    assert [port["shape"] for port in answer["outputs"]] == [[1, 5]]
    assert answer["file_bytes"] == packed.stat().st_size
    assert sum(part["nodes"] for part in answer["subgraphs"]) == sum(answer["nodes_on"].values())
    assert "graph" not in answer
    assert main(["inspect", str(packed), "--nodes"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("input x: f32[1,3,14,14]\noutput ")
    assert "layer1.0.conv1" in text


def test_profile_and_trace(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    given = [folder / "net.pt2", "--target", "cpu+relu-only", "--inputs", folder / "x.npy"]
    status, answer = call(capsys, "profile", *given, "--top", "3", "-o", folder / "rows.csv")
    assert status == 0
    assert len(answer["rows"]) == 3
    assert answer["us_on"]["relu-only"] > 0
    assert (folder / "rows.csv").read_text().count("\n") == 4
    status, answer = call(capsys, "trace", *given, "-o", folder / "trace.json")
    assert (status, answer) == (0, {"output": str(folder / "trace.json")})
    assert read_trace(folder / "trace.json")


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
def test_compare_bisect_and_replay(capsys: pytest.CaptureFixture[str], folder: Path, target: str) -> None:
    given = ["--target", target, "--inputs", folder / "x.npy"]
    status, answer = call(capsys, "compare", folder / "net.pt2", *given)
    assert (status, answer["first"], answer["reference"]) == (0, None, "eager torch")
    beside = [folder / "bad.pt2", "--reference", folder / "net.pt2", *given]
    status, answer = call(capsys, "compare", *beside)
    assert status == 1
    assert answer["first"]["node"] == "conv2d_2"
    status, answer = call(capsys, "bisect", *beside, "-o", folder / "part.npz")
    assert (status, answer["nodes"]) == (1, ["conv2d_2"])
    status, answer = call(capsys, "replay", folder / "part.npz")
    assert (status, answer["first"]["node"]) == (1, "conv2d_2")
    status, answer = call(capsys, "bisect", folder / "net.pt2", *given, "-o", folder / "none.npz")
    assert (status, answer["nodes"]) == (0, [])


def relu(path: Path, kind: str) -> str:
    path.write_text(f"graph @g {{stage = imported}} (%x: {kind}) -> (%y) {{\n  %y = relu(%x) : {kind}\n}}\n")
    return str(path)


def ran(capsys: pytest.CaptureFixture[str], folder: Path, kind: str, *arguments: str | Path) -> np.ndarray:
    out = folder / "y.npz"
    status, answer = call(capsys, "run", relu(folder / "relu.ir", kind), *arguments, "--outputs", out)
    assert status == 0, answer
    with np.load(out) as file:
        array: np.ndarray = file["y"]
    return array


def test_images_are_prepared_as_the_command_line_says(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    image.fromarray(pixels).save(tmp_path / "x.png")
    given = ["--inputs", tmp_path / "x.png"]
    first = ran(capsys, tmp_path, "f32[1,3,4,6]", *given)
    np.testing.assert_allclose(first[0].transpose(1, 2, 0), pixels / 255, rtol=1e-6)
    last = ran(capsys, tmp_path, "f32[1,4,6,3]", *given, "--scale", "1", "--mean", "1,2,3", "--std", "2", "--bgr")
    np.testing.assert_allclose(last[0], np.maximum((pixels[:, :, ::-1] - np.array([1, 2, 3.0])) / 2, 0))
    assert ran(capsys, tmp_path, "f32[1,1,2,3]", *given).shape == (1, 1, 2, 3)
    np.testing.assert_array_equal(ran(capsys, tmp_path, "i32[3,4,6]", *given).transpose(1, 2, 0), pixels)
    status, answer = call(capsys, "run", relu(tmp_path / "odd.ir", "f32[1,7,4,6]"), *given)
    assert status == 2
    assert "it must be [1,C,H,W] or [1,H,W,C] with 1 or 3 channels" in answer["error"]["message"]


def test_sounds_are_the_mean_of_their_channels(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    samples = np.array([[100, 300], [-400, 0], [32767, 32767]], np.int16)
    with wave.open(str(tmp_path / "x.wav"), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(samples.tobytes())
    mono = samples.mean(axis=1)
    got = ran(capsys, tmp_path, "f32[1,5]", "--inputs", tmp_path / "x.wav")
    np.testing.assert_allclose(got, [[*np.maximum(mono / 32768, 0), 0, 0]], rtol=1e-6)
    got = ran(capsys, tmp_path, "i16[2]", "--inputs", tmp_path / "x.wav")
    np.testing.assert_array_equal(got, np.maximum(mono[:2], 0))
    status, answer = call(capsys, "run", relu(tmp_path / "two.ir", "f32[2,4]"), "--inputs", tmp_path / "x.wav")
    assert status == 2
    assert "a sound does not fit the input 'x' of shape [2, 4]" in answer["error"]["message"]


def test_an_array_alone_is_for_a_model_with_one_input(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "two.ir").write_text(
        "graph @g {stage = imported} (%a: f32[2], %b: f32[2]) -> (%y) {\n  %y = add(%a, %b) : f32[2]\n}\n"
    )
    np.save(tmp_path / "x.npy", np.zeros(2, np.float32))
    status, answer = call(capsys, "run", tmp_path / "two.ir", "--inputs", tmp_path / "x.npy")
    assert status == 2
    assert "is one array; the model takes a, b" in answer["error"]["message"]
    (tmp_path / "x.npy").write_bytes(b"none")
    status, answer = call(capsys, "run", relu(tmp_path / "one.ir", "f32[2]"), "--inputs", tmp_path / "x.npy")
    assert status == 2
    assert "is no .npy file" in answer["error"]["message"]


def test_shells_complete_commands_and_files(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    status, answer = call(capsys, "completion", "bash")
    assert status == 0
    for word in (
        "compile",
        "bisect",
        "--strategy",
        "_shtab_compgen_files",
        "complete -o bashdefault -F _shtab_hetnn hetnn",
    ):
        assert word in answer["script"]


def test_a_log_is_shown_where_it_is_asked_for(tmp_path: Path) -> None:
    path = relu(tmp_path / "one.ir", "f32[2]")
    code = "import hetnn, sys; hetnn.compile(sys.argv[1])"

    def told(level: str | None) -> str:
        env = {**os.environ, **({} if level is None else {"HETNN_LOG": level})}
        return subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, env=env).stderr

    assert told(None) == ""
    assert "hetnn INFO: compiled for cpu in " in told("info")
    assert "hetnn DEBUG: canonical, canonicalize: " in told("debug")
    assert "HETNN_LOG is one of debug, info, warning, error; found 'loud'" in told("loud")
