"""Quantizing small networks: what stays right, what becomes integers, what is refused."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import hetnn
from hetnn import _core
from hetnn.quantization.quantizer import Quantized
from hetnn.target import resolve_target
from quantize import trained

Array = NDArray[Any]
CALIBRATORS = ("minmax", "percentile", "mse", "entropy")


def exported(module: torch.nn.Module, *args: Array) -> torch.export.ExportedProgram:
    return torch.export.export(module, tuple(torch.from_numpy(arg) for arg in args))


@pytest.fixture(scope="module")
def classifier() -> torch.export.ExportedProgram:
    return exported(trained.classifier(), trained.digits(200, 5)[0])


def samples(count: int = 2) -> list[Array]:
    return [trained.digits(200, 100 + k)[0] for k in range(count)]


def integer_sheet() -> dict[str, Any]:
    """relu-only, which computes i8 alone."""
    sheet = json.loads(json.dumps(resolve_target("relu-only")["devices"][1]["spec"]))
    sheet["name"] = "integers"
    for op in sheet["ops"].values():
        op["dtypes"] = ["i8"]
    return {"name": "t", "devices": [{"name": "cpu", "kind": "cpu"}, {"name": "npu", "kind": "npu", "spec": sheet}]}


@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_classifier_stays_as_right(classifier: torch.export.ExportedProgram, calibrator: str) -> None:
    quantized = hetnn.compile(hetnn.quantize(classifier, samples(), calibrator=calibrator))
    plain = hetnn.compile(classifier)
    right = {"float": 0, "int8": 0}
    for seed in range(20, 30):
        images, labels = trained.digits(200, seed)
        for name, executable in (("float", plain), ("int8", quantized)):
            right[name] += int((executable(images).argmax(1) == labels).sum())
    assert right["float"] > 0.9 * 2000
    assert right["int8"] >= right["float"] - 0.003 * 2000


def test_every_layer_is_of_integers(classifier: torch.export.ExportedProgram) -> None:
    quantized = hetnn.quantize(classifier, samples(1))
    types = {row["op"]: row["type"][:3] for row in quantized.graph.nodes()}
    assert types.pop("dequantize") == "f32"
    assert set(types.values()) == {"i8{"}
    rows = {row["op"]: row for row in quantized.graph.nodes()}
    # What only moves is at the scale of what it moves.
    assert rows["max_pool2d"]["type"].split("}")[0] == rows["reshape"]["type"].split("}")[0]


def test_on_an_npu_of_integers(classifier: torch.export.ExportedProgram) -> None:
    images, _ = trained.digits(200, 31)
    executable = hetnn.quantize(classifier, samples(1), target=integer_sheet(), strategy="take-all")
    report = executable.report("dict")
    assert report["macs_on"]["npu"] >= 0.95 * sum(report["macs_on"].values())
    assert len(report["subgraphs"]) <= 3
    assert executable.quantization is not None
    steps = np.abs(executable(images) - hetnn.compile(hetnn.quantize(classifier, samples(1)))(images))
    assert (
        steps.max() <= 3.01 * executable.quantization.values[-1].scale
    )  # one step a layer, which later layers carry on


def test_noise_is_what_running_shows(classifier: torch.export.ExportedProgram) -> None:
    given = samples(1)
    quantized = hetnn.quantize(classifier, given)
    want, got = hetnn.compile(classifier)(given[0]), hetnn.compile(quantized)(given[0])
    db = 10 * np.log10((want**2).sum() / ((want - got) ** 2).sum())
    assert quantized.report.outputs_db["linear"] == pytest.approx(db, abs=0.1)
    assert db > 30


def test_report_as_table_and_dict(classifier: torch.export.ExportedProgram) -> None:
    report = hetnn.quantize(classifier, samples(1), keep_float=["dense"]).report
    assert json.loads(json.dumps(report.as_dict()))["kept_float"] == {"linear": "as asked"}
    assert "linear stays float: as asked" in str(report)
    of_input = report.values[0]
    assert of_input.value in str(report)
    assert of_input.op == "input"
    assert of_input.low == pytest.approx((-128 - of_input.zero_point) * of_input.scale)
    assert of_input.clipped < 0.001


def test_a_picture_of_the_noise(classifier: torch.export.ExportedProgram) -> None:
    report = hetnn.quantize(classifier, samples(1)).report
    drawn = ElementTree.fromstring(report.svg())
    bars = [float(bar.get("width", "")) for bar in drawn.iter("{http://www.w3.org/2000/svg}rect")]
    decibels = [row.noise_db or 0 for row in report.values]
    assert np.corrcoef(bars, decibels)[0, 1] > 0.9999


def test_factors_where_channels_differ() -> None:
    torch.manual_seed(2)
    module = trained.Encoder().eval()
    given = [torch.randn(2, 12, 32).numpy() for _ in range(20)]
    program = exported(module, given[0])
    plain = hetnn.quantize(program, given, calibrator="minmax", equalize=False).report
    better = hetnn.quantize(program, given, calibrator="minmax").report
    (name,) = plain.outputs_db
    assert better.outputs_db[name] > plain.outputs_db[name] + 6


class Uneven(torch.nn.Module):
    """Convolutions whose channels in between differ by up to a thousand, in groups too and behind a pool."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = torch.nn.Conv2d(3, 16, 3), torch.nn.Conv2d(16, 16, 3, groups=16)
        self.three, self.four = torch.nn.Conv2d(16, 8, 1, groups=4), torch.nn.Conv2d(8, 4, 1)
        with torch.no_grad():
            for layer, following in ((self.one, self.two), (self.two, self.three), (self.three, self.four)):
                sizes = torch.logspace(-1.5, 1.5, layer.out_channels)[torch.randperm(layer.out_channels)]
                layer.weight *= sizes[:, None, None, None]
                layer.bias *= sizes
                of_columns = sizes.reshape(following.groups, 1, -1).repeat(
                    1, following.out_channels // following.groups, 1
                )
                following.weight /= of_columns.reshape(*following.weight.shape[:2], 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.two(torch.relu(self.one(x))))
        out: torch.Tensor = self.four(torch.nn.functional.max_pool2d(torch.relu(self.three(x)), 2))
        return out


def test_layers_behind_one_another_share_sizes() -> None:
    torch.manual_seed(4)
    module = Uneven().eval()
    given = [torch.randn(1, 3, 20, 20).numpy() for _ in range(8)]
    program = exported(module, given[0])
    db = {}
    for equalize in (False, True):
        quantized = hetnn.quantize(program, given, calibrator="minmax", equalize=equalize)
        (db[equalize],) = quantized.report.outputs_db.values()
        # Nothing multiplies in between.
        assert [row["op"] for row in quantized.graph.nodes()].count("mul") == 0
    assert db[True] > db[False] + 10
    assert db[True] > 30


def test_constants_without_axes() -> None:
    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two, self.three = (torch.nn.Linear(4, 4) for _ in range(3))
            self.register_buffer("factor", torch.tensor(0.3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.three((self.one(x) * self.two(x) * self.factor).reshape(-1, 4))
            return out

    torch.manual_seed(5)
    given = [torch.randn(2, 2, 4).numpy() for _ in range(4)]
    quantized = hetnn.quantize(exported(Scaled(), given[0]), given)
    assert [row["type"][:3] for row in quantized.graph.nodes() if row["op"] == "mul"] == ["i8{", "i8{"]
    assert min(quantized.report.outputs_db.values()) > 25


@pytest.mark.parametrize("scheme", ["int16x8", "int4-weights"])
def test_weights_make_good_each_others_rounding(scheme: str) -> None:
    torch.manual_seed(6)
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Conv2d(16, 8, 3)).eval()

    def smooth(seed: int) -> Array:
        noise = np.random.default_rng(seed).standard_normal((2, 3, 24, 24)).astype(np.float32)
        return np.cumsum(np.cumsum(noise, 2), 3) / 10

    program = exported(module, smooth(0))
    plain = hetnn.compile(program)
    noise = {}
    for adapt in (False, True):
        given = [smooth(seed) for seed in range(12)]
        quantized = hetnn.compile(hetnn.quantize(program, given, scheme, adapt_rounding=adapt))
        noise[adapt] = sum(float(((plain(x) - quantized(x)) ** 2).sum()) for x in map(smooth, range(50, 56)))
    assert noise[True] < 0.5 * noise[False]


def test_biases_make_good_what_weights_lost() -> None:
    rng = np.random.default_rng(3)
    linear = torch.nn.Linear(64, 16)
    given = [(rng.random((50, 64)) + 1).astype(np.float32) for _ in range(4)]
    program = exported(linear, given[0])
    lost = {}
    for correct in (False, True):
        nearest = hetnn.quantize(program, given, "int8", "minmax", correct_bias=correct, adapt_rounding=False)
        quantized = hetnn.compile(nearest)
        difference = np.mean([quantized(x) - hetnn.compile(program)(x) for x in given], axis=(0, 1))
        lost[correct] = np.abs(difference).mean()
    assert lost[True] < 0.5 * lost[False]


@pytest.mark.parametrize(
    ("keep", "operators"),
    [(["dense"], {"linear"}), (["block.pointwise", "conv2d"], {"conv2d"}), ("first.0", {"conv2d"})],
)
def test_what_is_kept_float(classifier: torch.export.ExportedProgram, keep: Any, operators: set[str]) -> None:
    quantized = hetnn.quantize(classifier, samples(1), keep_float=keep)
    assert {row["op"] for row in quantized.graph.nodes() if row["type"].startswith("f32")} >= operators
    assert quantized.report.outputs_db["linear"] > 25


SHAPES: list[tuple[str, Callable[[list[Array]], Any]]] = [
    ("arrays", lambda given: given),
    ("a generator", iter),
    ("tuples", lambda given: [(x,) for x in given]),
    ("dicts", lambda given: [{"x": x} for x in given]),
    ("tensors", lambda given: [torch.from_numpy(x) for x in given]),
]


@pytest.mark.parametrize("form", [form for _, form in SHAPES], ids=[name for name, _ in SHAPES])
def test_forms_of_samples(classifier: torch.export.ExportedProgram, form: Callable[[Iterable[Array]], Any]) -> None:
    want = hetnn.quantize(classifier, samples()).report
    assert hetnn.quantize(classifier, form(samples())).report == want


def test_samples_in_files(classifier: torch.export.ExportedProgram, tmp_path: Path) -> None:
    want = hetnn.quantize(classifier, samples()).report
    np.savez(tmp_path / "stacked.npz", x=np.stack(samples()))
    np.savez(tmp_path / "behind.npz", x=np.concatenate(samples()))
    for k, sample in enumerate(samples()):
        (tmp_path / "folder").mkdir(exist_ok=True)
        np.save(tmp_path / "folder" / f"{k}.npy", sample)
    for name in ("stacked.npz", "behind.npz", "folder"):
        assert hetnn.quantize(classifier, tmp_path / name).report == want


def refused(model: Any, given: Any, **options: Any) -> str:
    with pytest.raises(hetnn.InvalidModel) as error:
        hetnn.quantize(model, given, **options)
    return str(error.value)


def test_samples_that_are_refused(classifier: torch.export.ExportedProgram, tmp_path: Path) -> None:
    good = samples(1)[0]
    assert "there are no samples" in refused(classifier, [])
    assert "sample 1: input 'x' must be [200, 1, 16, 16]; got [200, 1, 16]" in refused(classifier, [good, good[..., 0]])
    assert "sample 0: the model takes" in refused(classifier, [{"y": good}])
    assert "sample 0: input 'x' must be float32; got float64" in refused(classifier, [good.astype(np.float64)])
    assert "NaN or infinity" in refused(classifier, [np.where(good > 1, np.nan, good)])
    assert "all samples hold the one number 0" in refused(classifier, [np.zeros_like(good)])
    assert "samples must be an iterable" in refused(classifier, 3)
    assert "there is no file or folder" in refused(classifier, tmp_path / "nothing")
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    assert "is no .npz or .npy file" in refused(classifier, tmp_path / "bad.npz")


def test_words_that_are_refused(classifier: torch.export.ExportedProgram) -> None:
    assert "there is no scheme 'int9'; there are int8" in refused(classifier, samples(1), scheme="int9")
    assert "there is no calibrator 'max'; there are minmax" in refused(classifier, samples(1), calibrator="max")
    assert "no node or module 'nothing'" in refused(classifier, samples(1), keep_float=["nothing"])


def test_models_that_are_refused(classifier: torch.export.ExportedProgram) -> None:
    quantized = hetnn.quantize(classifier, samples(1))
    assert isinstance(quantized, Quantized)
    assert "the model is quantized already" in refused(quantized, samples(1))
    text = "graph @g {stage = imported} (%x: f32[4]) -> (%y) {\n  %y = relu(%x) : f32[4]\n}\n"
    assert "no layer to compute in fewer bits" in refused(text, [np.ones(4, np.float32)])


def test_layers_that_meet_infinity_stay_float() -> None:
    class Odd(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.two(torch.exp(self.one(x) * 1e4))
            return out

    torch.manual_seed(0)
    given = [torch.randn(3, 4).numpy() for _ in range(3)]
    quantized = hetnn.quantize(exported(Odd(), given[0]), given)
    assert quantized.report.kept_float == {"linear_1": "the samples make it read or write NaN or infinity"}


@pytest.mark.parametrize(
    ("scheme", "least_db", "inside"),
    [("int16x8", 40, "i16"), ("int4", 15, "f32"), ("f16", 55, "f16"), ("bf16", 35, "bf16")],
)
def test_schemes(classifier: torch.export.ExportedProgram, scheme: str, least_db: float, inside: str) -> None:
    quantized = hetnn.quantize(classifier, samples(1), scheme)
    types = {row["op"]: row["type"].split("{")[0].split("[")[0] for row in quantized.graph.nodes()}
    linear = "block_linear" if scheme == "int4" else "linear"
    assert types["conv2d"] == types[linear] == types["add"] == inside
    given, _ = trained.digits(200, 40)
    want, got = hetnn.compile(classifier)(given), hetnn.compile(quantized)(given)
    assert got.dtype == np.float32
    assert 10 * np.log10((want**2).sum() / ((want - got) ** 2).sum()) > least_db
    assert quantized.report.outputs_db["linear"] > least_db


def test_weights_in_blocks_are_codes_with_a_scale_each(classifier: torch.export.ExportedProgram) -> None:
    plain = hetnn.quantize(classifier, samples(1), "int4-weights", keep_float=["linear"]).graph
    graph = hetnn.quantize(classifier, samples(1), "int4-weights", adapt_rounding=False, correct_bias=False).graph
    (linear,) = [row for row in graph.nodes() if row["op"] == "block_linear"]
    codes, scales = (_core.constant(graph, linear["inputs"][k]) for k in (1, 2))
    (given,) = [row for row in plain.nodes() if row["op"] == "linear"]
    weight = _core.constant(plain, given["inputs"][1])
    assert codes.dtype == np.uint8
    assert codes.shape == (10, -(-weight.shape[1] // 32), 16)
    assert scales.shape == codes.shape[:2]
    assert scales.dtype == np.float16
    numbers = np.stack([codes & 15, codes >> 4], -1).reshape(*scales.shape, 32).astype(np.float32) - 8
    reals = (numbers * scales[..., None]).reshape(10, -1)[:, : weight.shape[1]]
    assert ((reals - weight) ** 2).sum() < 0.01 * (weight**2).sum()
    for block in reals.reshape(10, -1, 32).reshape(-1, 32):
        assert len(np.unique(block)) <= 16


def test_auto_keeps_as_few_layers_as_it_takes(classifier: torch.export.ExportedProgram) -> None:
    plain = hetnn.quantize(classifier, samples(1), sensitivity=True).report
    worst = min(plain.sensitivity_db, key=lambda layer: plain.sensitivity_db[layer])
    wanted = plain.outputs_db["linear"] + 1
    auto = hetnn.quantize(classifier, samples(1), keep_float="auto", at_least_db=wanted).report
    assert auto.outputs_db["linear"] >= wanted
    assert list(auto.kept_float) == [worst]
    assert f"{wanted:g} dB asked" in auto.kept_float[worst]
    enough = hetnn.quantize(classifier, samples(1), keep_float="auto", at_least_cosine=0.99).report
    assert enough.kept_float == {}


def test_a_layer_alone_makes_less_noise_than_all(classifier: torch.export.ExportedProgram) -> None:
    report = hetnn.quantize(classifier, samples(1), sensitivity=True).report
    assert set(report.sensitivity_db) == {"conv2d", "conv2d_1", "conv2d_2", "conv2d_3", "linear"}
    assert min(report.sensitivity_db.values()) > report.outputs_db["linear"]
    assert "alone dB" in str(report)


def test_bounds_that_are_refused(classifier: torch.export.ExportedProgram) -> None:
    assert 'say what keep_float="auto" must reach' in refused(classifier, samples(1), at_least_db=30)
    with pytest.raises(hetnn.Unsupported, match="do not reach 400 dB even with every layer in float"):
        hetnn.quantize(classifier, samples(1), keep_float="auto", at_least_db=400)


def test_what_f16_does_not_hold_stays_float() -> None:
    class Large(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.two((self.one(x) * 1e6).tanh())
            return out

    torch.manual_seed(0)
    given = [torch.randn(3, 4).numpy() for _ in range(3)]
    report = hetnn.quantize(exported(Large(), given[0]), given, "f16").report
    assert set(report.kept_float.values()) == {"the samples make it read or write what f16 does not hold"}
    assert 0 < len(report.kept_float) < 4
    assert min(report.outputs_db.values()) > 40
