"""Reports as people read them: no double negatives, plurals right, counts whole, nothing said twice."""

from __future__ import annotations

import json
import re
from typing import Any

import torch
from torch import nn

import hetnn
from hetnn.report.text import as_text


class Net(nn.Module):
    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(4, 4, 3, padding=1) for _ in range(blocks))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.nn.functional.relu6(torch.erf(torch.erf(torch.erf(layer(x)))))
        return x


def report_of(blocks: int) -> dict[str, Any]:
    program = torch.export.export(Net(blocks).eval(), (torch.randn(1, 4, 8, 8),), strict=False)
    plan = hetnn.plan(program, "cpu+relu-only", rewrite="always", strategy="topological")
    found: dict[str, Any] = json.loads(plan.to_json())
    return found


def test_counts_are_whole() -> None:
    report = report_of(2)
    counts = [report["crossing_bytes"], *report["macs_on"].values(), report["rewriting"]["bytes_avoided"]]
    counts += [row["bytes"] for row in report["crossings"]] + [row["macs"] for row in report["subgraphs"]]
    counts += [row["bytes_avoided"] for row in report["rewrites"]]
    assert [type(count) for count in counts] == [int] * len(counts)


def test_fallbacks_of_one_subgraph_and_one_reason_are_one_line() -> None:
    text = as_text(report_of(2))
    assert len(re.findall(r"^  3 erf nodes on cpu in subgraph \d+: ", text, re.MULTILINE)) == 2
    assert text.count("erf_missing: ") == 2
    assert "at test_reports.py:" in text


def test_times_that_no_device_predicts_are_left_out() -> None:
    report = report_of(1)
    row = {"into": "a", "nodes": ["a", "b"], "bytes_before": 9, "bytes_after": 5}
    times = {"predicted_us_before": 2.5, "predicted_us_after": 1.5}
    report["fusions"] = [{**row, **times}, *({**row, **times, key: None} for key in times)]
    text = as_text(report)
    assert text.count("a + b: 9 → 5 bytes\n") == 2
    assert text.count("a + b: 9 → 5 bytes, 2.5 → 1.5 us\n") == 1


def test_what_is_lost_is_not_fewer() -> None:
    report = report_of(1)
    report["rewriting"] = {**report["rewriting"], "bytes_avoided": -20, "launches_avoided": 1}
    report["rewrites"][0].update(bytes_avoided=-1)
    text = as_text(report)
    assert "rewritten: 20 bytes more between devices and 1 launch fewer, " in text
    assert "1 byte more between devices" in text
    assert not re.search(r"-\d+ \w+ fewer", text)


def test_plurals_are_right_and_a_rule_is_named_once() -> None:
    report = report_of(1)
    text = as_text(report)
    assert not re.search(r"\b1 (nodes|bytes|launches|groups)\b", text)
    (row,) = report["rewrites"]
    assert row["form"] == row["rule"] == "clamp_from_zero"  # erf bounds what relu6 reads
    assert text.count("clamp_from_zero") == 1
