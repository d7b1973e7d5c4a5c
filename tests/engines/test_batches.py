"""Executables as what Ray Data, Dask and Spark call: the answers are those of the direct call."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn

ROWS = 103
NETWORK = """
graph @net {stage = imported} (%x: f32[8,4]) -> (%y) {
  %r = relu(%x) : f32[8,4]
  %y = add(%r, %x) : f32[8,4]
}
"""
X = np.random.default_rng(0).standard_normal((ROWS, 4)).astype(np.float32)
WANT = np.maximum(X, 0) + X


@pytest.fixture(scope="module")
def executable(tmp_path_factory: pytest.TempPathFactory) -> hetnn.Executable:
    path = tmp_path_factory.mktemp("network") / "net.hetnn"
    hetnn.compile(NETWORK).save(path)
    return hetnn.load(path, threads=1)


@pytest.fixture(scope="module", autouse=True)
def _found_by_workers() -> None:
    """Processes of engines import the package from where this one did."""
    folder = str(Path(hetnn.__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    found = pytest.importorskip("ray")
    found.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield found
    found.shutdown()


def test_ray_data(ray: Any, executable: hetnn.Executable) -> None:
    rows = ray.data.from_numpy(X)
    found = rows.map_batches(executable.on_batches({"x": "data"}), batch_size=20).take_all()
    got = np.stack([row["y"] for row in found])
    order = np.lexsort(got.T), np.lexsort(WANT.T)
    np.testing.assert_array_equal(got[order[0]], WANT[order[1]])


def test_ray_tasks_share_what_is_open(ray: Any, executable: hetnn.Executable) -> None:
    @ray.remote
    def run(network: hetnn.Executable, x: np.ndarray) -> tuple[int, np.ndarray]:
        return id(network._engine), network.run([x])[0]

    answers = ray.get([run.remote(executable, X[:8]) for _ in range(12)])
    assert len({engine for engine, _ in answers}) <= 4  # processes, not tasks
    for _, y in answers:
        np.testing.assert_array_equal(y, WANT[:8])


def test_dask(executable: hetnn.Executable) -> None:
    array = pytest.importorskip("dask.array")
    even = array.from_array(X[:96], chunks=(8, 4)).map_blocks(executable, dtype=np.float32)
    np.testing.assert_array_equal(even.compute(), WANT[:96])
    uneven = array.from_array(X, chunks=(30, 4)).map_blocks(executable.on_batches(), dtype=np.float32)
    np.testing.assert_array_equal(uneven.compute(scheduler="processes"), WANT)


def test_spark(executable: hetnn.Executable) -> None:
    pytest.importorskip("pyspark")
    from pyspark.ml.functions import predict_batch_udf
    from pyspark.sql import SparkSession
    from pyspark.sql.types import ArrayType, FloatType

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        rows = session.createDataFrame([(k, row.tolist()) for k, row in enumerate(X)], "k int, x array<float>")
        run = predict_batch_udf(
            executable.make_predict_fn, return_type=ArrayType(FloatType()), batch_size=20, input_tensor_shapes=[[4]]
        )
        found = rows.select("k", run("x").alias("y")).orderBy("k").collect()
        np.testing.assert_array_equal(np.array([row.y for row in found], np.float32), WANT)
    finally:
        session.stop()
