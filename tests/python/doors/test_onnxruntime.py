"""Programs written for ONNX Runtime, with an import line of their own and with hetnn's."""

from __future__ import annotations

import importlib
import queue
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn.onnxruntime as door
from inside.trace_format import read_trace

onnx = pytest.importorskip("onnx")
helper, FLOAT = onnx.helper, onnx.TensorProto.FLOAT


@contextmanager
def behind(door_or_none: Any, package: str) -> Iterator[Any]:
    """The package, imported anew: with hetnn as `onnxruntime`, or with that itself."""
    kept = {name: module for name, module in sys.modules.items() if name == package or name.startswith(f"{package}.")}
    theirs = sys.modules.get("onnxruntime")
    for name in kept:
        del sys.modules[name]
    if door_or_none is not None:
        sys.modules["onnxruntime"] = door_or_none
    try:
        yield importlib.import_module(package)
    finally:
        sys.modules.pop("onnxruntime", None)
        for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
            del sys.modules[name]
        sys.modules.update(kept)
        if theirs is not None:
            sys.modules["onnxruntime"] = theirs


@pytest.fixture
def path(tmp_path: Path) -> str:
    """y = relu(x w + b), z = x - 1 of f32[n,3]; `b` is an input with a value."""
    weights = np.arange(6, dtype=np.float32).reshape(3, 2) - 3
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "w", "b"], ["g"]),
            helper.make_node("Relu", ["g"], ["y"]),
            helper.make_node("Sub", ["x", "one"], ["z"]),
        ],
        "small",
        [helper.make_tensor_value_info("x", FLOAT, ["n", 3]), helper.make_tensor_value_info("b", FLOAT, [2])],
        [helper.make_tensor_value_info("y", FLOAT, ["n", 2]), helper.make_tensor_value_info("z", FLOAT, ["n", 3])],
        [
            onnx.numpy_helper.from_array(weights, "w"),
            onnx.numpy_helper.from_array(np.ones(2, np.float32), "b"),
            onnx.numpy_helper.from_array(np.ones((), np.float32), "one"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10, producer_name="tests")
    helper.set_model_props(model, {"labels": "a,b"})
    onnx.save(model, tmp_path / "small.onnx")
    return str(tmp_path / "small.onnx")


X = np.array([[1, 2, 3], [-1, 0, 4]], np.float32)


def sessions(path: str) -> list[Any]:
    """hetnn's, and ONNX Runtime's where it is installed."""
    made = [door.InferenceSession(path, providers=["CPUExecutionProvider"])]
    try:
        import onnxruntime
    except ImportError:
        return made
    return [*made, onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])]


def test_a_session_answers_as_onnx_runtimes(path: str) -> None:
    answers = []
    for session in sessions(path):
        ports = [[(a.name, a.shape, a.type) for a in args] for args in (session.get_inputs(), session.get_outputs())]
        meta = session.get_modelmeta()
        about = (meta.producer_name, meta.graph_name, meta.custom_metadata_map, session.get_providers())
        results = [
            *session.run(None, {"x": X}),
            *session.run(["z", "y"], {"x": X.tolist()}),
            *session.run(["z"], {"x": X}),
        ]
        answers.append((ports, about, [(one.dtype, one.tolist()) for one in results]))
    assert all(answer == answers[0] for answer in answers)
    assert answers[0][0][0] == [("x", ["n", 3], "tensor(float)")]
    assert answers[0][1] == ("tests", "small", {"labels": "a,b"}, ["CPUExecutionProvider"])


def test_providers_are_targets_and_threads_are_the_sessions(path: str, tmp_path: Path) -> None:
    options = door.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = door.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.add_free_dimension_override_by_name("n", 2)
    session = door.InferenceSession(path, options, providers=["cpu+relu-only", "CPUExecutionProvider"])
    assert session.get_providers() == ["cpu+relu-only", "CPUExecutionProvider"]
    assert session.executable.threads == 1
    assert session.executable.target["name"] == "cpu+relu-only"
    assert not session.executable.is_dynamic
    y, z = session.run(None, {"x": X})
    np.testing.assert_allclose(y, np.maximum(X @ (np.arange(6).reshape(3, 2) - 3) + 1, 0), rtol=1e-6)
    session.executable.save(tmp_path / "small.hetnn")
    loaded = door.InferenceSession(tmp_path / "small.hetnn")
    np.testing.assert_array_equal(loaded.run(["y"], {"x": X})[0], y)
    np.testing.assert_array_equal(z, X - 1)
    with pytest.warns(UserWarning, match="Specified provider 'CUDAExecutionProvider' is not in available"):
        assert door.InferenceSession(path, providers=["CUDAExecutionProvider"]).get_providers() == [
            "CPUExecutionProvider"
        ]


def test_bound_inputs_and_outputs(path: str) -> None:
    session = door.InferenceSession(path)
    want = session.run(None, {"x": X})
    binding = session.io_binding()
    y, z = np.zeros((2, 2), np.float32), door.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    binding.bind_input("x", "cpu", 0, np.float32, X.shape, X.ctypes.data)
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    binding.bind_ortvalue_output("z", z)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(y, want[0])
    np.testing.assert_array_equal(z.numpy(), want[1])
    assert [value.data_type() for value in binding.get_outputs()] == ["tensor(float)"] * 2
    binding.clear_binding_outputs()
    binding.bind_cpu_input("x", X)
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], want[1])
    (again,) = session.run_with_ort_values(["y"], {"x": door.OrtValue.ortvalue_from_numpy(X)})
    np.testing.assert_array_equal(again.numpy(), want[0])


def test_errors_are_of_onnx_runtimes_kinds_and_texts(path: str, tmp_path: Path) -> None:
    (tmp_path / "none.onnx").write_bytes(b"\xff\xff no model")
    calls: list[tuple[str, str, Any]] = [
        ("NoSuchFile", r"Load model from .*missing\.onnx failed", lambda s: type(s)(str(tmp_path / "missing.onnx"))),
        ("InvalidProtobuf", r"INVALID_PROTOBUF", lambda s: type(s)(str(tmp_path / "none.onnx"))),
        ("ValueError", r"Required inputs \(\['x'\]\) are missing from input feed", lambda s: s.run(None, {})),
        ("InvalidArgument", r"INVALID_ARGUMENT", lambda s: s.run(None, {"x": X, "u": X})),
        ("InvalidArgument", r"INVALID_ARGUMENT|Output", lambda s: s.run(["u"], {"x": X})),
        (
            "InvalidArgument",
            r"Unexpected input data type. Actual: \(tensor\(double\)\) , expected: \(tensor\(float\)\)",
            lambda s: s.run(None, {"x": X.astype(np.float64)}),
        ),
        ("InvalidArgument", r"Invalid rank for input: x", lambda s: s.run(None, {"x": X[0]})),
        ("InvalidArgument", r"INVALID_ARGUMENT", lambda s: s.run(None, {"x": X[:, :2]})),
    ]
    for session in sessions(path):
        ours = type(session).__module__.startswith("hetnn")
        for kind, text, call in calls:
            with pytest.raises(Exception, match=text if ours else None) as caught:
                call(session)
            assert type(caught.value).__name__ == kind or not ours
    assert issubclass(door.capi.onnxruntime_pybind11_state.InvalidArgument, ValueError)


def test_a_model_that_cannot_be_taken_is_of_the_kind_that_it_is_there(tmp_path: Path) -> None:
    def saved(name: str, node: Any) -> str:
        ports = [[helper.make_tensor_value_info(one, FLOAT, [2])] for one in ("x", "y")]
        model = helper.make_model(helper.make_graph([node], "g", *ports), ir_version=10)
        model.opset_import.add(domain="org.nobody", version=1)
        onnx.save(model, tmp_path / name)
        return str(tmp_path / name)

    dangling = saved("dangling.onnx", helper.make_node("Relu", ["nowhere"], ["y"]))
    with pytest.raises(door.InvalidGraph, match=r"\[ONNXRuntimeError\] : 10 : INVALID_GRAPH : .*nowhere"):
        door.InferenceSession(dangling)
    unknown = saved("unknown.onnx", helper.make_node("Frobnicate", ["x"], ["y"], domain="org.nobody"))
    with pytest.raises(door.NotImplemented, match=r"\[ONNXRuntimeError\] : 9 : NOT_IMPLEMENTED : (?s:.)*Frobnicate"):
        door.InferenceSession(unknown)


def test_providers_are_set_later_runs_are_asynchronous_and_profiles_are_traces(path: str, tmp_path: Path) -> None:
    options = door.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "run_")
    session = door.InferenceSession(path, options)
    want = session.run(None, {"x": X})
    session.set_providers(["CPUExecutionProvider"])
    session.set_providers(["cpu+relu-only"])
    assert session.get_providers() == ["cpu+relu-only", "CPUExecutionProvider"]
    told: queue.Queue[tuple[Any, Any, str]] = queue.Queue()
    session.run_async(["y"], {"x": X}, lambda *answer: told.put(answer), 7)
    (y,), data, error = told.get(timeout=60)
    np.testing.assert_allclose(y, want[0], rtol=1e-6)
    assert (data, error) == (7, "")
    session.run_async(["u"], {"x": X}, lambda *answer: told.put(answer), None)
    assert "Invalid output name: u" in told.get(timeout=60)[2]
    trace = session.end_profiling()
    assert trace.startswith(options.profile_file_prefix)
    assert any(event["ph"] == "X" for event in read_trace(Path(trace)))
    assert session.end_profiling() == ""
    session.executable.save(tmp_path / "small.hetnn")
    with pytest.raises(door.Fail, match=r"compiled for 'cpu\+relu-only', not for 'cpu'"):
        door.InferenceSession(tmp_path / "small.hetnn").set_providers(["CPUExecutionProvider"])
    value = door.OrtValue.ortvalue_from_numpy(X)
    assert (value.data_ptr(), value.tensor_size_in_bytes()) == (X.ctypes.data, X.nbytes)
    assert (value.has_value(), value.is_tensor_sequence(), value.is_sparse_tensor()) == (True, False, False)


def test_magika_runs_behind_the_door() -> None:
    pytest.importorskip("magika")
    texts = [b"def f(x):\n    return x + 1\n\nimport os\n" * 20, b"#include <stdio.h>\nint main() { return 0; }\n" * 20]
    found = []
    for module in (None, door):
        with behind(module, "magika") as package:
            results = [package.Magika().identify_bytes(text) for text in texts]
            found.append([(str(one.output.label), one.score) for one in results])
    assert [label for label, _ in found[1]] == [label for label, _ in found[0]] == ["python", "c"]
    assert [score for _, score in found[1]] == pytest.approx([score for _, score in found[0]], abs=1e-4)


def test_silero_vad_runs_behind_the_door() -> None:
    pytest.importorskip("silero_vad")
    import torch

    torch.manual_seed(0)
    sound = torch.sin(torch.arange(512 * 6) * 0.05) * torch.rand(512 * 6)
    found = []
    for module in (None, door):
        with behind(module, "silero_vad") as package:
            model = package.load_silero_vad(onnx=True)
            found.append([model(chunk, 16000).item() for chunk in sound.split(512)])
    assert found[1] == pytest.approx(found[0], abs=1e-4)


@pytest.mark.slow
def test_rapidocr_runs_behind_the_door() -> None:
    """Three networks of real weights: where text is, which way up, what it says."""
    pytest.importorskip("rapidocr")
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (420, 90), "white")
    font = ImageFont.load_default(size=32)
    ImageDraw.Draw(image).text((20, 25), "hetnn runs 2048 models", fill="black", font=font)
    found = []
    for module in (None, door):
        with behind(module, "rapidocr") as package:
            found.append(package.RapidOCR()(np.asarray(image)))
    assert " ".join(found[1].txts) == " ".join(found[0].txts) == "hetnn runs 2048 models"
    assert found[1].scores == pytest.approx(found[0].scores, abs=1e-3)
    np.testing.assert_allclose(found[1].boxes, found[0].boxes, atol=1)


@pytest.mark.slow
def test_a_pipeline_of_a_tokenizer_runs_behind_the_door(tmp_path: Path) -> None:
    """Sentences become vectors: the tokenizer of the model, its network, and a mean over what is no padding."""
    import onnxruntime
    import torch
    from tokenizers import Tokenizer

    import hetnn
    from models import nets

    module, inputs = nets.minilm_real()
    path, tokens = tmp_path / "minilm.onnx", torch.export.Dim("tokens", min=2, max=512)
    hetnn.export(module, path, args=inputs, dynamic_shapes={"ids": {1: tokens}, "mask": {1: tokens}})
    tokenizer = Tokenizer.from_file(str(nets.minilm_folder() / "tokenizer.json"))
    tokenizer.enable_padding()
    sentences = ["A cat sits on the mat.", "A kitten rests on a rug.", "Interest rates rose again this quarter."]

    def vectors(runtime: Any) -> np.ndarray:
        session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        out = []
        for sentence in sentences:
            encoded = tokenizer.encode(sentence)
            ids, mask = (np.array([row], np.int64) for row in (encoded.ids, encoded.attention_mask))
            (states,) = session.run(
                None, dict(zip([arg.name for arg in session.get_inputs()], (ids, mask), strict=True))
            )
            mean = (states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
            out.append(mean[0] / np.linalg.norm(mean[0]))
        return np.array(out)

    ours, theirs = vectors(door), vectors(onnxruntime)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert ours[0] @ ours[1] > 0.4 > ours[0] @ ours[2]
