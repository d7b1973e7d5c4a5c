"""A short, seeded part of `make fuzz`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

import pytest

from fuzz.fuzz_calls import fuzz as fuzz_calls
from fuzz.fuzz_executables import fuzz as fuzz_executables
from fuzz.fuzz_executables import make_bases
from fuzz.fuzz_inputs import fuzz
from fuzz.fuzz_models import fuzz as fuzz_models
from fuzz.fuzz_networks import fuzz as fuzz_torch_networks
from fuzz.fuzz_onnx import fuzz as fuzz_onnx
from fuzz.fuzz_schedules import fuzz as fuzz_schedules
from fuzz.fuzz_tflite import fuzz as fuzz_tflite
from fuzz.fuzz_tflite_layers import TYPES_OF
from fuzz.fuzz_tflite_layers import sweep as sweep_layers
from fuzz.fuzz_tflite_networks import fuzz as fuzz_networks
from fuzz.fuzz_tosa import KINDS, ONCE, compare
from fuzz.sweep_onnx import sweep


def test_damaged_inputs_raise_errors_of_our_own() -> None:
    tried, accepted = fuzz(seconds=3, seed=1)
    assert tried > 50
    assert accepted < tried


def test_random_calls_are_refused_or_computed_alike_by_kernels_and_meanings() -> None:
    assert fuzz_calls(2500, first=7_000_000) == []


def test_random_models_give_what_they_mean_on_every_device() -> None:
    counts, findings = fuzz_models(models=250, seed=6)
    assert not findings
    assert counts["agree"] > 50
    assert sum(count for told, count in counts.items() if "runtime" in told) > 15
    assert sum(count for told, count in counts.items() if "torch" in told) > 15


def test_random_networks_of_torch_are_eager_torch_s_on_every_device() -> None:
    families = ["images", "moving", "odd", "indexing", "transformer", "states", "special", "training", "quantized"]
    counts, findings = fuzz_torch_networks(families, models=1, seed=12)
    assert not findings
    assert counts["equal"] > 5


def test_altered_onnx_models_are_refused_or_run() -> None:
    counts, findings = fuzz_onnx(models=300, seconds=30, seed=5)
    assert not findings
    assert counts["refused"] > 20
    assert counts["ran"] > 5


def test_altered_tflite_files_are_refused_or_run() -> None:
    counts, findings = fuzz_tflite(models=300, seconds=30, seed=5)
    assert not findings
    assert counts["refused"] > 20
    assert counts["ran"] > 20


def test_random_tflite_layers_of_integers_give_litert_s() -> None:
    kinds = ["CONV_2D", "ADD", "MUL", "AVERAGE_POOL_2D", "MEAN", "PRELU", "SOFTMAX", "TANH", "MAXIMUM"]
    rows = sweep_layers(4, seed=7, kinds={name: TYPES_OF[name] for name in kinds})
    assert {called: row.first for called, row in rows.items() if row.first} == {}
    assert sum(row.counts["equal"] for row in rows.values()) > 90


def test_sums_of_bytes_without_a_sign_round_as_litert_s() -> None:
    """The second of them is near enough to a half that f32 parts sums of turned bytes from those of the file's own."""
    rows = sweep_layers(3, seed=488, kinds={"SUM": ["u8"]})
    assert rows["SUM u8"].counts == {"equal": 3}, rows


@pytest.mark.parametrize(("kinds", "single"), [(KINDS, False), (ONCE, True)], ids=["as-written", "rounded-once"])
def test_random_layers_of_integers_give_those_of_tosa_s_reference_model(
    kinds: dict[str, Sequence[str]], single: bool
) -> None:
    rows = sweep_layers(3, seed=11, kinds=kinds, by=partial(compare, single=single))
    assert {called: row.first for called, row in rows.items() if row.first} == {}
    counts = sum((row.counts for row in rows.values()), Counter())
    assert counts["equal"] > 3 * counts["untaken"]


def test_random_tflite_networks_give_litert_s_integers_on_an_npu() -> None:
    counts, findings = fuzz_networks(models=120, seed=5)
    assert not findings
    assert counts["equal"] > 100


def test_altered_schedules_are_refused_by_name_or_compute_the_same() -> None:
    counts, findings = fuzz_schedules(models=250, seed=5)
    assert not findings
    assert counts["refused"] > 50
    assert counts["the-same"] > 30


def test_extreme_sizes_and_numbers_of_onnx_models_are_refused_or_run() -> None:
    counts, findings = sweep(part=(11, 300))
    assert not findings
    assert counts["refused"] > 100
    assert counts["ran"] > 100


def test_executables_altered_inside_are_refused_or_run() -> None:
    counts, findings = fuzz_executables(files=400, seconds=12, seed=1, bases=make_bases())
    assert not findings
    assert counts["refused"] > 20
    assert counts["ran"] > 5
