"""Every network of the CPU's bench on OpenVINO's CPU: `make test-long`. Three of them are in `test_vendors.py`."""

from __future__ import annotations

import pytest

from backends.vendor_networks import BENCH, assert_equals_eager


@pytest.mark.long
@pytest.mark.parametrize("name", BENCH.MAIN)
def test_networks_of_the_bench_equal_eager(name: str) -> None:
    assert_equals_eager(name, "cpu+openvino-cpu")
