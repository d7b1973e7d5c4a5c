"""Node by node: what hetnn says that an Ethos-U takes is what Vela takes."""

from __future__ import annotations

import numpy as np
import pytest

import hetnn
from backends.integer_networks import Net
from backends.integer_nodes import cases
from hetnn.backends.ethos_u import EthosU, vela
from hetnn.backends.ethos_u.constraints import ROWS
from hetnn.exporters.tosa.model import Export

# Of four axes and more Vela takes some orders of more elements than it says; hetnn goes by what it says.
CAREFUL = "ethos_turned_axis"


def taken(data: bytes, accelerator: vela.Accelerator) -> bool:
    """Whether Vela compiles a file; in this process, which is quicker than in one of its own."""
    from ethosu import regor

    system = vela._system(accelerator) + vela._own_systems().read_text()
    options = vela._options(accelerator, "Raw")
    try:
        regor.compile(accelerator.family, data, "TOSA", system, options=options, verbose=False)
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize(
    ("variant", "dtype"),
    [
        ("u55-256", "i8"),
        ("u55-256", "i16"),
        ("u85-256", "i8"),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (("u65-256", "i8"), ("u65-256", "i16"), ("u85-256", "i16"))
        ),
    ],
)
def test_every_node_that_it_takes_vela_takes_and_no_other(variant: str, dtype: str) -> None:
    device = EthosU("ethos", {"variant": variant})
    asked = apart = 0
    broken: set[str] = set()
    for name, make in cases(dtype):
        graph = make()
        reasons = list(device.supports(graph))
        labels = {reason if isinstance(reason, str) else reason.label for reason in reasons}
        if "no_tosa_form" in labels:
            assert len(labels) == 1
            continue
        asked, broken = asked + 1, broken | labels
        there = taken(Export(graph, device.accelerator.chains).data(), device.accelerator)
        if labels == {CAREFUL} and there:
            apart += 1
            continue
        assert there == (not labels), f"{name}: Vela {'takes' if there else 'refuses'} it; hetnn says {reasons}"
    assert asked > 180
    assert apart <= 2
    assert broken == {row.label for row in ROWS if device.accelerator.family in row.families}


def test_a_heavy_filter_is_refused_when_it_is_compiled() -> None:
    """It depends on the weights' values, which alike nodes do not share."""
    n = Net(0)
    x = n.conv(n.start([1, 3, 3, 8000]), 2, 3)
    weights = n.graph.tensors[1]
    heavy = np.full(weights.shape, 120, np.int8).tobytes()
    object.__setattr__(weights, "data", heavy)
    data = n.finish(x)
    exe = hetnn.compile(data, "cpu+ethos-u55-256", strategy="take-all")
    told = exe.report("dict")
    assert "a filter's weights add up to 8640000, of at most 8323072" in exe.report("json")
    assert {row["device"] for row in told["graph"] if row["op"] == "conv2d"} == {"cpu"}
