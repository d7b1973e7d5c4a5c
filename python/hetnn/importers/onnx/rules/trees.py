"""ONNX ensembles of decision trees: the tables of three operators as those of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hetnn.errors import InvalidModel
from hetnn.importers.onnx.rules.call import ONNX, Call
from hetnn.importers.onnx.rules.voting import TRANSFORMS, Votes, class_labels, classified, in_rows, transformed
from hetnn.importers.onnx.values import Array

_ML = "ai.onnx.ml."
# When a row goes left, by mode in the order of their numbers, as bits: its feature is less than the split, equal to it,
# greater, neither.
_LESS, _EQUAL, _GREATER, _NEITHER = 1, 2, 4, 8
_MODES = {
    "BRANCH_LEQ": _LESS | _EQUAL,
    "BRANCH_LT": _LESS,
    "BRANCH_GTE": _EQUAL | _GREATER,
    "BRANCH_GT": _GREATER,
    "BRANCH_EQ": _EQUAL,
    "BRANCH_NEQ": _LESS | _GREATER | _NEITHER,
}
_WHEN = np.array(list(_MODES.values()), np.int32)
# Numbers of what is no comparison: that of a set in one operator, of a leaf in the others.
_MEMBER = _LEAF = len(_WHEN)
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")  # by number


@dataclass(frozen=True)
class _Forest:
    """Tables as tree_ensemble has them: what `left` and `right` say below 0 are leaves."""

    features: Array
    when: Array
    splits: Array
    left: Array
    right: Array
    roots: Array
    leaves: int


@dataclass(frozen=True)
class _Weights:
    """Those of leaf 0, then those of leaf 1 and so on."""

    numbers: Array
    columns: Array
    leaf_of: Array

    def at(self, places: Array) -> _Weights:
        return _Weights(self.numbers[places], self.columns[places], self.leaf_of[places])


def _refuse_outside(called: str, places: Array, end: int) -> None:
    """InvalidModel for places outside [0, end)."""
    outside = places[(places < 0) | (places >= end)]
    if len(outside):
        raise InvalidModel(f"{called} is {outside[0]}, where [0,{end}) is. The model is damaged: export it again")


def _joined(call: Call, x: Any, forest: _Forest, weights: _Weights, width: int, aggregate: str) -> tuple[Any, Any]:
    """What the leaves of every row join to, [N,width], and where there are any."""
    if width < 1:
        raise InvalidModel(f"{call.node.op_type} gives {width} numbers a row. Export the model again")
    if aggregate not in _AGGREGATES:
        raise InvalidModel(f"aggregate_function must be one of {', '.join(_AGGREGATES)}; got {aggregate!r}")
    features = x.shape[1]
    _refuse_outside("the feature of a node", forest.features, features if isinstance(features, int) else 1 << 31)
    _refuse_outside("a target or class of a leaf", weights.columns, width)
    nodes = np.stack([forest.features, forest.when, forest.left, forest.right], axis=1)
    counts = np.bincount(weights.leaf_of, minlength=forest.leaves)
    splits, numbers = (
        call.constant(table, "f64" if table.dtype == np.float64 else "f32")
        for table in (forest.splits, weights.numbers)
    )
    inputs = [
        call.cast(x, splits.dtype),
        call.constant(nodes, "i32"),
        splits,
        call.constant(forest.roots, "i32"),
        numbers,
        call.constant(weights.columns, "i32") if width > 1 else None,
        None if (counts == 1).all() else call.constant(np.cumsum(counts), "i32"),
    ]
    y, voted = call.create_all("tree_ensemble", inputs, {"width": width, "aggregate": aggregate.lower()})
    return y, voted


def _when(modes: Array, splits: Array, tracked: Array) -> tuple[Array, Array]:
    """When rows go left, and what they are compared with: of no number, every feature is neither."""
    when = _WHEN[modes]
    lost = np.isnan(splits)
    when = np.where(lost & (when & _NEITHER != 0), _LESS | _EQUAL | _GREATER | _NEITHER, np.where(lost, 0, when))
    return when | np.where(tracked, _NEITHER, 0), np.where(lost, splits.dtype.type(0), splits)


def _tracked(call: Call, count: int) -> Array:
    """Of each node whether a missing feature goes left; those behind the end of the table do not."""
    found = np.asarray(call.attr("nodes_missing_value_tracks_true") or [], bool)[:count]
    return np.pad(found, (0, count - len(found)))


def _ordered(forest: _Forest) -> _Forest:
    """Every node before those that it leads to. InvalidModel for one that leads to itself."""
    left, right = forest.left, forest.right
    own = np.arange(len(left))
    if all(((child < 0) | (child > own)).all() for child in (left, right)):
        return forest
    sides = left.tolist(), right.tolist()
    under_way, listed = 1, 2
    state = bytearray(len(left))
    order: list[int] = []
    for root in forest.roots[forest.roots >= 0].tolist():
        todo = [root]
        while todo:
            node = todo.pop()
            if node < 0:  # all behind it is listed
                order.append(~node)
                state[~node] = listed
            elif not state[node]:
                state[node] = under_way
                todo.append(~node)
                for child in (sides[1][node], sides[0][node]):
                    if child >= 0 and state[child] == under_way:
                        raise InvalidModel(f"a tree whose node {child} lies behind itself. Export the model again")
                    if child >= 0 and not state[child]:
                        todo.append(child)
    kept = np.array(order[::-1], np.int64)
    place = np.zeros(len(left), np.int64)
    place[kept] = np.arange(len(kept))

    def moved(goals: Array) -> Array:
        return np.where(goals < 0, goals, place[np.maximum(goals, 0)])

    return _Forest(
        forest.features[kept],
        forest.when[kept],
        forest.splits[kept],
        moved(left[kept]),
        moved(right[kept]),
        moved(forest.roots),
        forest.leaves,
    )


# TreeEnsemble


def _integers(call: Call, name: str) -> Array:
    found = call.attr(name)
    if found is None:
        raise InvalidModel(f"{call.node.op_type} needs the attribute {name}, which is absent. Export the model again")
    return np.asarray(found, np.int64)


def _same_lengths(call: Call, tables: dict[str, Array]) -> None:
    lengths = {name: len(table) for name, table in tables.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InvalidModel(f"{call.node.op_type} with tables of unlike lengths: {said}. Export the model again")


@ONNX.rule(f"{_ML}TreeEnsemble")
def _trees(call: Call) -> Any:
    x, kind = in_rows(call), call[0].dtype
    names = ["featureids", "truenodeids", "falsenodeids", "trueleafs", "falseleafs"]
    tables = {f"nodes_{name}": _integers(call, f"nodes_{name}") for name in names}
    for name in ("nodes_modes", "nodes_splits"):
        tables[name] = call.tensor_attr(name).reshape(-1)
    _same_lengths(call, tables)
    of_leaves = {"leaf_targetids": _integers(call, "leaf_targetids"), "leaf_weights": call.tensor_attr("leaf_weights")}
    _same_lengths(call, of_leaves)
    features, true, false, true_leaf, false_leaf, modes, splits = tables.values()
    columns, numbers = of_leaves.values()
    roots, leaves = _integers(call, "tree_roots"), len(columns)
    if len(roots) == 0:
        raise InvalidModel("a TreeEnsemble without n_targets or tree_roots. Export the model again")
    _refuse_outside("a root", roots, len(features))
    children = []
    for called, goals, is_leaf in (("true", true, true_leaf != 0), ("false", false, false_leaf != 0)):
        _refuse_outside(f"the {called} branch of a node, a leaf,", goals[is_leaf], leaves)
        _refuse_outside(f"the {called} branch of a node", goals[~is_leaf], len(features))
        children.append(np.where(is_leaf, ~goals, goals))
    modes = modes.astype(np.int64)
    _refuse_outside("the mode of a node", modes, _MEMBER + 1)
    asked = modes == _MEMBER
    when, splits = _when(
        np.where(asked, list(_MODES).index("BRANCH_EQ"), modes),
        np.where(asked, splits.dtype.type(0), splits),
        _tracked(call, len(modes)),
    )
    forest = _Forest(features, when, splits, children[0], children[1], roots, leaves)
    if asked.any() or call.attr("membership_values") is not None:
        forest = _asking_one_by_one(forest, asked, call.tensor_attr("membership_values").reshape(-1))
    forest = _ordered(forest)
    if kind != "f64":
        forest = _in_f32(forest)
        numbers = numbers.astype(np.float32)
    aggregate, transform = int(call.attr("aggregate_function", 1)), int(call.attr("post_transform", 0))
    if not (0 <= aggregate < len(_AGGREGATES) and 0 <= transform < len(TRANSFORMS)):
        raise InvalidModel(f"TreeEnsemble with aggregate_function {aggregate} and post_transform {transform}")
    weights = _Weights(numbers, columns, np.arange(leaves))
    targets = call.attr("n_targets")
    if targets is None:
        raise InvalidModel("TreeEnsemble without n_targets. Export the model again")
    y, _ = _joined(call, x, forest, weights, int(targets), _AGGREGATES[aggregate])
    return call.cast(transformed(call, y, TRANSFORMS[transform]), kind)


def _in_f32(forest: _Forest) -> _Forest:
    return _Forest(**{**vars(forest), "splits": forest.splits.astype(np.float32)})


def _asking_one_by_one(forest: _Forest, asked: Array, members: Array) -> _Forest:
    """A node that asks about a set as a chain of nodes that ask about one member each."""
    ends = np.flatnonzero(np.isnan(members))
    if len(members) and not np.isnan(members[-1]):
        ends = np.append(ends, len(members))
    if len(ends) != asked.sum():
        raise InvalidModel(f"a TreeEnsemble with {asked.sum()} nodes of mode {_MEMBER} and {len(ends)} sets of members")
    begins = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)
    counts = np.ones(len(asked), np.int64)
    counts[asked] = np.maximum(ends - begins, 1)
    place = np.cumsum(counts) - counts  # of the first node of each
    node = np.repeat(np.arange(len(asked)), counts)
    nth = np.arange(len(node)) - place[node]
    is_last = nth == counts[node] - 1

    def moved(goals: Array) -> Array:
        return np.where(goals < 0, goals, place[np.maximum(goals, 0)])

    splits, when = forest.splits[node].copy(), forest.when[node].copy()
    first = np.zeros(len(asked), np.int64)
    first[asked] = begins
    own = asked[node]
    empty = np.zeros(len(asked), bool)
    empty[asked] = ends == begins
    filled = own & ~empty[node]
    splits[filled] = members[first[node] + nth][filled] if len(members) else 0
    when[empty[node]] &= _NEITHER  # no member: none is equal
    return _Forest(
        forest.features[node],
        when,
        splits,
        moved(forest.left)[node],
        np.where(is_last, moved(forest.right)[node], np.arange(len(node)) + 1),
        moved(forest.roots),
        forest.leaves,
    )


# TreeEnsembleClassifier and TreeEnsembleRegressor


class _Rows:
    """Which row of a table a tree's node is."""

    def __init__(self, trees: Array, nodes: Array) -> None:
        self._trees, tree = np.unique(trees, return_inverse=True)
        self._nodes, node = np.unique(nodes, return_inverse=True)
        self.tree_of = tree
        keys = tree * len(self._nodes) + node
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        twice = np.flatnonzero(self._keys[1:] == self._keys[:-1])
        if len(twice):
            row = self._order[twice[0]]
            raise InvalidModel(f"node {nodes[row]} of tree {trees[row]} stands twice. Export the model again")

    def find(self, trees: Array, nodes: Array, called: str) -> Array:
        """Rows; InvalidModel where there is none."""
        if not len(self._keys):
            raise InvalidModel("an ensemble without nodes. Export the model again")
        tree = np.minimum(np.searchsorted(self._trees, trees), len(self._trees) - 1)
        node = np.minimum(np.searchsorted(self._nodes, nodes), len(self._nodes) - 1)
        keys = tree * len(self._nodes) + node
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        wrong = (self._trees[tree] != trees) | (self._nodes[node] != nodes) | (self._keys[at] != keys)
        if wrong.any():
            k = int(np.argmax(wrong))
            raise InvalidModel(f"{called} is node {nodes[k]} of tree {trees[k]}, which is none. Export the model again")
        return self._order[at]


def _reals(call: Call, name: str) -> Array:
    """Numbers of an attribute, or of its second form that holds f64; none where it is absent."""
    if call.attr(f"{name}_as_tensor") is not None:
        return call.tensor_attr(f"{name}_as_tensor").reshape(-1)
    return np.asarray(call.attr(name) or [], np.float32)


def _listed(call: Call, weights: str) -> tuple[_Forest, _Weights, Array]:
    """Tables of nodes that are inner ones or leaves, and of their weights; also the tree that each leaf is of."""
    ints = {f"nodes_{key}": _integers(call, f"nodes_{key}") for key in ("treeids", "nodeids", "featureids")}
    ints |= {f"nodes_{key}nodeids": _integers(call, f"nodes_{key}nodeids") for key in ("true", "false")}
    splits, modes = _reals(call, "nodes_values"), _mode_numbers(call)
    _same_lengths(call, {**ints, "nodes_values": splits, "nodes_modes": modes})
    trees, nodes, features, true, false = ints.values()
    rows = _Rows(trees, nodes)
    is_leaf = modes == _LEAF
    inner = np.flatnonzero(~is_leaf)
    # Of each row its number among inner nodes or, below 0, leaves.
    number = np.where(is_leaf, ~(np.cumsum(is_leaf) - 1), np.cumsum(~is_leaf) - 1)
    left, right = (
        number[rows.find(trees[inner], side[inner], f"the {called} branch of a node")]
        for called, side in (("true", true), ("false", false))
    )
    when, splits = _when(modes[inner], splits[inner], _tracked(call, len(modes))[inner])
    starts = np.flatnonzero(np.diff(trees, prepend=trees[:1] - 1))
    forest = _Forest(features[inner], when, splits, left, right, number[starts], int(is_leaf.sum()))

    held = {f"{weights}_{key}": _integers(call, f"{weights}_{key}") for key in ("treeids", "nodeids", "ids")}
    numbers = _reals(call, f"{weights}_weights")
    _same_lengths(call, {**held, f"{weights}_weights": numbers})
    of_trees, of_nodes, columns = held.values()
    leaf = ~number[rows.find(of_trees, of_nodes, "what a weight is of")]
    order = np.argsort(leaf, kind="stable")
    order = order[leaf[order] >= 0]  # those of inner nodes count nothing
    return _ordered(forest), _Weights(numbers, columns, leaf).at(order), rows.tree_of[is_leaf]


def _mode_numbers(call: Call) -> Array:
    known = {mode: number for number, mode in enumerate([*_MODES, "LEAF"])}
    modes = call.attr("nodes_modes") or []
    try:
        return np.fromiter(map(known.__getitem__, modes), np.int64, len(modes))
    except KeyError as error:
        raise InvalidModel(f"nodes_modes must be of {', '.join(known)}; got {error.args[0]!r}") from error


@ONNX.rule(f"{_ML}TreeEnsembleRegressor")
def _regress(call: Call) -> Any:
    x = in_rows(call)
    forest, weights, tree_of = _listed(call, "target")
    targets = call.attr("n_targets")
    if targets is None:
        raise InvalidModel("TreeEnsembleRegressor without n_targets. Export the model again")
    if targets == 1:  # of several weights of a leaf for the only target, the first one counts
        weights = weights.at(np.unique(weights.leaf_of, return_index=True)[1])
    aggregate = call.attr("aggregate_function", "SUM")
    y, voted = _joined(call, x, *_typed(x, forest, weights), int(targets), aggregate)
    base = _reals(call, "base_values")
    if len(base):
        if len(base) != targets:
            raise InvalidModel(f"TreeEnsembleRegressor with {len(base)} base values for {targets} targets")
        begun = call.create("add", [y, call.constant(base, y.dtype)])
        whole = targets == 1 or _always(tree_of, weights, targets).all()
        y = begun if whole else call.create("where", [voted, begun, y])
    return call.cast(transformed(call, y, call.attr("post_transform", "NONE")), "f32")


def _typed(x: Any, forest: _Forest, weights: _Weights) -> tuple[_Forest, _Weights]:
    """Features in f64 are compared in f64."""
    if x.dtype == "f64":
        forest = _Forest(**{**vars(forest), "splits": forest.splits.astype(np.float64)})
    return forest, weights


def _always(tree_of: Array, weights: _Weights, width: int) -> Array:
    """Which columns every row has a weight for: those that all leaves of some tree have one for."""
    leaves = np.bincount(tree_of)
    pairs = np.unique(weights.leaf_of * width + weights.columns)
    held = np.bincount(tree_of[pairs // width] * width + pairs % width, minlength=len(leaves) * width)
    return np.asarray(((held.reshape(-1, width) == leaves[:, None]) & (leaves[:, None] > 0)).any(axis=0))


@ONNX.rule(f"{_ML}TreeEnsembleClassifier")
def _classify(call: Call) -> Any:
    x = in_rows(call)
    labels, count = class_labels(call)
    forest, weights, tree_of = _listed(call, "class")
    y, voted = _joined(call, x, *_typed(x, forest, weights), count, "SUM")
    votes = Votes(
        y,
        voted,
        always=_always(tree_of, weights, count),
        never=~np.isin(np.arange(count), weights.columns),
        base=_reals(call, "base_values"),
        positive=bool((weights.numbers >= 0).all()),
        one_class=len(np.unique(weights.columns)) == 1,
    )
    return classified(call, votes, labels, call.attr("post_transform", "NONE"))
