"""ONNX operators of classical machine learning."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.onnx.rules.call import MOST_NUMBERS, ONNX, Array, Call

_ML = "ai.onnx.ml."


@ONNX.rule(f"{_ML}ArrayFeatureExtractor")
def _pick_features(call: Call) -> Any:
    x, places = call.values()
    count = 1 if not places.shape else places.shape[-1]
    picked = call.create("gather", [x, call.reshape(places, [count])], axis=len(x.shape) - 1)
    return picked if len(x.shape) > 1 else call.reshape(picked, [1, count])


@ONNX.rule(f"{_ML}Binarizer")
def _binarize(call: Call) -> Any:
    x = call[0]
    return call.cast(call.create("gt", [x, call.like(float(call.attr("threshold")), x)]), x.dtype)


# Conditions of nodes by number, of a feature x and the node's value.
_COMPARED = {0: "le", 1: "lt", 2: "ge", 3: "gt", 4: "eq", 5: "ne"}
_MEMBER = 6


@ONNX.rule(f"{_ML}TreeEnsemble")
def _trees(call: Call) -> Any:
    """Every condition of every tree at once; a leaf is reached where all conditions on the way to it hold."""
    if call.attr("post_transform") or call.attr("aggregate_function") not in (0, 1):
        raise Unsupported("a TreeEnsemble with a transform behind it, or least or greatest leaves")
    x = call[0]
    features = np.array(call.attr("nodes_featureids"))
    holds = call.cast(_conditions(call, x, features), x.dtype)  # [batch, nodes]
    ways, weights = _leaves(call, len(features))
    # Along the way to a leaf, conditions that must hold count 1, others -1: the sum is largest for the leaf reached.
    met = call.create("matmul", [holds, call.constant(ways, x.dtype)])
    reached = call.create("eq", [met, call.constant((ways > 0).sum(axis=0), x.dtype)])
    sums = call.create("matmul", [call.cast(reached, x.dtype), call.constant(weights, x.dtype)])
    if call.attr("aggregate_function") == 1:
        return sums
    return call.create("div", [sums, call.like(len(call.attr("tree_roots")), sums)])


def _conditions(call: Call, x: Any, features: Array) -> Any:
    modes = np.array(call.tensor_attr("nodes_modes"))
    splits = np.array(call.tensor_attr("nodes_splits"))
    picked = call.create("gather", [x, call.constant(features, "i64")], axis=1)
    sets: list[Array] = []
    if (modes == _MEMBER).any():  # their values end with NaN each
        members = np.array(call.tensor_attr("membership_values"))
        ends = np.flatnonzero(np.isnan(members))
        asking = int((modes == _MEMBER).sum())
        if len(ends) != asking:
            raise InvalidModel(f"a TreeEnsemble with {asking} nodes of mode {_MEMBER} and {len(ends)} sets of members")
        sets = [part[~np.isnan(part)] for part in np.split(members, ends + 1)]
    columns = []
    for k, mode in enumerate(modes.tolist()):
        column = call.create("slice", [picked], axis=1, start=k, end=k + 1)
        if mode == _MEMBER:
            values = call.constant(sets.pop(0).reshape(1, -1), x.dtype)
            held = call.create("any", [call.create("eq", [column, values])], axes=[1], keepdim=True)
        elif mode in _COMPARED:
            held = call.create(_COMPARED[mode], [column, call.constant(splits[k], x.dtype)])
        else:
            raise InvalidModel(f"a TreeEnsemble with a node of mode {mode}")
        tracks = call.attr("nodes_missing_value_tracks_true")
        if tracks and tracks[k]:
            held = call.create("logical_or", [held, call.create("ne", [column, column])])
        columns.append(held)
    return columns[0] if len(columns) == 1 else call.create("concat", columns, axis=1)


def _leaves(call: Call, nodes: int) -> tuple[Array, Array]:
    """[nodes, leaves]: 1 where a condition must hold, -1 where it must not; and [leaves, targets] of weights."""
    ids = {side: call.attr(f"nodes_{side}nodeids") for side in ("true", "false")}
    ends = {side: call.attr(f"nodes_{side}leafs") for side in ("true", "false")}
    targets, amounts = call.attr("leaf_targetids"), call.tensor_attr("leaf_weights")
    width = call.attr("n_targets")
    if width is None or not call.attr("tree_roots"):
        raise InvalidModel("a TreeEnsemble without n_targets or tree_roots")
    if width * len(targets) > MOST_NUMBERS:
        raise Unsupported(f"a TreeEnsemble of {len(targets)} leaves for {width} targets")
    for called, places, most in (
        *((f"nodes_{side}nodeids", ids[side], max(nodes, len(targets))) for side in ids),
        ("leaf_targetids", targets, width),
    ):
        if any(not 0 <= place < most for place in places):
            raise InvalidModel(f"a TreeEnsemble with a place outside [0,{most}) in {called}")
    ways: list[Array] = []
    weights: list[Array] = []
    todo = [(root, np.zeros(nodes)) for root in call.attr("tree_roots")]
    while todo:
        node, way = todo.pop()
        if not 0 <= node < nodes or way[node]:
            raise InvalidModel(f"a TreeEnsemble whose node {node} is none, or lies behind itself")
        for side, held in (("true", 1), ("false", -1)):
            behind = way.copy()
            behind[node] = held
            goal = ids[side][node]
            if not ends[side][node]:
                todo.append((goal, behind))
                continue
            if goal >= len(targets):
                raise InvalidModel(f"a TreeEnsemble with {len(targets)} leaves that points to leaf {goal}")
            weight = np.zeros(width)
            weight[targets[goal]] = amounts[goal]
            ways.append(behind)
            weights.append(weight)
    return np.stack(ways, axis=1), np.stack(weights)
