"""Executables as engines for batch work use them: any number of rows, and pickles that name a file."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hetnn

FIXED = (
    "graph @f {stage = imported} (%a: f32[4,3], %b: f32[4,3]) -> (%sum, %product) {\n"
    "  %sum = add(%a, %b) : f32[4,3]\n  %product = mul(%a, %b) : f32[4,3]\n}\n"
)
OPEN = "graph @o {stage = imported, symbols = [n: 1..8 = 4]} (%x: f32[n,2]) -> (%y) {\n  %y = relu(%x) : f32[n,2]\n}\n"
STATE = "graph @s {stage = imported} (%x: f32[2], %t: f32[2]) -> (%y) {\n  %y = add(%x, %t) : f32[2]\n}\n"


@pytest.mark.parametrize("rows", [0, 1, 4, 5, 11])
def test_fixed_batches_are_cut_and_padded(rows: int) -> None:
    rng = np.random.default_rng(rows)
    a, b = rng.standard_normal((2, rows, 3)).astype(np.float32)
    exe = hetnn.compile(FIXED)
    found = exe.on_batches({"a": "left"})({"left": a, "b": b, "other": np.arange(rows)})
    assert [*found] == ["sum", "product"]
    np.testing.assert_array_equal(found["sum"], a + b)
    np.testing.assert_array_equal(found["product"], a * b)
    predicted = exe.make_predict_fn()(a, b)
    np.testing.assert_array_equal(predicted["product"], a * b)


def test_open_batches_are_bounded() -> None:
    x = np.random.default_rng(0).standard_normal((21, 2)).astype(np.float32)
    exe = hetnn.compile(OPEN)
    np.testing.assert_array_equal(exe.on_batches(batch=8)(x), np.maximum(x, 0))
    np.testing.assert_array_equal(exe.make_predict_fn()(x[:8]), np.maximum(x[:8], 0))
    with pytest.raises(hetnn.InvalidModel, match=r"must be in \[1, 8\]; got 21"):
        exe.on_batches()(x)


def test_what_cannot_be_cut_is_said() -> None:
    exe = hetnn.compile(FIXED)
    x = np.zeros((2, 3), np.float32)
    cases = [
        (lambda: exe.on_batches({"c": "x"}), "which are a, b; got 'c'"),
        (lambda: exe.on_batches(batch=5), "batch must be 4; found 5"),
        (lambda: exe.on_batches()({"a": x}), "no column 'b' for the input 'b'; it has a"),
        (lambda: exe.on_batches()({"a": x, "b": x[:1]}), "as many rows; got 1, 2"),
        (lambda: exe.on_batches()({"a": x, "b": np.float32(1)}), "as many rows"),
        (lambda: hetnn.compile(STATE, states={"t": "y"}).on_batches(), "keeps 't' from run to run"),
    ]
    for call, words in cases:
        with pytest.raises(hetnn.InvalidModel, match=words):
            call()


def test_a_copy_of_what_lies_there_no_more_carries_it(tmp_path: Path) -> None:
    path = tmp_path / "fixed.hetnn"
    hetnn.compile(FIXED).save(path)
    kept = pickle.dumps(hetnn.load(path))
    first = pickle.loads(kept)
    hetnn.compile(OPEN).save(path)  # another model in its place
    again = pickle.loads(kept)
    assert again._engine is first._engine
    copied = pickle.dumps(again)
    assert len(copied) > 1000
    x = np.ones((4, 3), np.float32)
    np.testing.assert_array_equal(pickle.loads(copied)(x, x)[0], 2 * x)


def test_a_pickle_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "fixed.hetnn"
    hetnn.compile(FIXED).save(path)
    exe = hetnn.load(path)
    kept = pickle.dumps(exe)
    assert len(kept) < 1000
    one, other = pickle.loads(kept), pickle.loads(pickle.dumps(exe.on_batches()))
    assert one._engine is other._executable._engine
    x = np.ones((4, 3), np.float32)
    np.testing.assert_array_equal(one(x, x)[0], 2 * x)
    assert len(pickle.dumps(one)) < 1000

    code = "import pickle, sys, numpy; x = numpy.ones((4, 3), 'f4'); "
    code += "print(pickle.loads(bytes.fromhex(sys.argv[1]))(x, x)[0].sum())"
    said = subprocess.run([sys.executable, "-c", code, kept.hex()], capture_output=True, text=True, check=True).stdout
    assert said == "24.0\n"

    hetnn.executable._opened.clear()  # what a process has opened it keeps
    shutil.move(path, tmp_path / "moved.hetnn")
    with pytest.raises(hetnn.InvalidModel, match=r"fixed\.hetnn"):
        pickle.loads(kept)
    assert len(pickle.dumps(exe)) > 1000  # the image, where the path is not
    hetnn.compile(OPEN).save(path)
    with pytest.raises(hetnn.InvalidModel, match="is not the file any more"):
        pickle.loads(kept)
    x = np.full((4, 3), 3, np.float32)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(exe))(x, x)[0], 2 * x)


def test_copies_with_states_or_bounds_share_no_engine(tmp_path: Path) -> None:
    path = tmp_path / "state.hetnn"
    hetnn.compile(STATE, states={"t": "y"}).save(path)
    kept = pickle.dumps(hetnn.load(path))
    one, other = pickle.loads(kept), pickle.loads(kept)
    assert one.states == other.states == ["t"]
    assert one._engine is not other._engine
    bounded = pickle.loads(pickle.dumps(hetnn.load(path, max_concurrent_runs=1)))
    assert bounded._limits == (1, False)


def test_a_size_that_nothing_has_needs_no_value() -> None:
    text = OPEN.replace("[n: 1..8 = 4]", "[n: 1..8 = 4, m: 1..9 = 2]")
    (y,) = hetnn.compile(text).run([np.ones((3, 2), np.float32)])
    assert y.shape == (3, 2)
