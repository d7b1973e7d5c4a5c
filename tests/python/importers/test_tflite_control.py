"""TFLite's variables, branches and loops, beside LiteRT; and sparse constants, worked by hand."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import hetnn
from hetnn.importers import import_model
from hetnn.importers.tflite.sparse import Level, densified
from importers.tflite_files import Array, Graph, Quant, Told, constant, model_bytes, reference

ANY = Told([1])


def check(graphs: list[Graph], runs: list[list[Array]]) -> None:
    data = model_bytes(graphs)
    executable = hetnn.compile(data)
    for inputs, wanted in zip(runs, reference(data, runs), strict=True):
        found = executable(*inputs)
        for mine, theirs in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
            assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def runs_of(shape: list[int], count: int, dtype: Any = np.float32) -> list[list[Array]]:
    rng = np.random.default_rng(1)
    return [[(rng.standard_normal(shape) * 40).astype(dtype)] for _ in range(count)]


def window(dtype: str, quant: Quant | None = None) -> list[Graph]:
    """The last three inputs, one behind the other, kept in a variable."""
    first = np.array([[1], [2], [3]]).astype({"f32": np.float32, "i8": np.int8}[dtype])
    handle = {"": "VarHandleOptions", "SharedName": "past"}
    begin = Graph("begin")
    (place,) = begin.op("VAR_HANDLE", [], [Told([], "RESOURCE")], handle)
    begin.op("ASSIGN_VARIABLE", [place, begin.tensor(constant(first, dtype, quant))], [])
    graph = Graph()
    x = graph.input(Told([1, 1], dtype, quant=quant))
    graph.op("CALL_ONCE", [], [], {"": "CallOnceOptions", "InitSubgraphIndex": 1})
    (place,) = graph.op("VAR_HANDLE", [], [Told([], "RESOURCE")], handle)
    (past,) = graph.op("READ_VARIABLE", [place], [Told([3, 1], dtype, quant=quant)])
    whole = Told([4, 1], dtype, quant=quant)
    (joined,) = graph.op("CONCATENATION", [past, x], [whole], {"": "ConcatenationOptions", "Axis": 0})
    numbers = [graph.tensor(constant(row, "i32")) for row in ([1, 0], [4, 1], [1, 1])]
    (rest,) = graph.op("STRIDED_SLICE", [joined, *numbers], [Told([3, 1], dtype, quant=quant)])
    graph.op("ASSIGN_VARIABLE", [place, rest], [])
    graph.outputs = [joined]
    return [graph, begin]


def test_a_variable_is_kept_from_run_to_run() -> None:
    check(window("f32"), runs_of([1, 1], 6))


def test_a_variable_of_integers_is_kept_from_run_to_run() -> None:
    check(window("i8", Quant(0.5, 3)), runs_of([1, 1], 6, np.int8))


def test_a_variable_is_no_input() -> None:
    executable = hetnn.compile(model_bytes(window("f32")))
    assert [port.name for port in executable.inputs] == ["tensor0"]


def test_what_reads_a_variable_that_has_no_value() -> None:
    graph = Graph()
    (place,) = graph.op("VAR_HANDLE", [], [Told([], "RESOURCE")], {"": "VarHandleOptions", "SharedName": "past"})
    graph.outputs = graph.op("READ_VARIABLE", [place], [Told([3])])
    with pytest.raises(hetnn.InvalidModel, match="the variable 'past' is read, but nothing gives it a value first"):
        import_model(model_bytes([graph]))


def unary(name: str, dtype: str = "f32") -> Graph:
    graph = Graph(name)
    x = graph.input(Told([2, 3], dtype))
    graph.outputs = graph.op(name, [x], [Told([2, 3], dtype)])
    return graph


def branch(condition: Told) -> list[Graph]:
    graph = Graph()
    place = graph.tensor(condition) if condition.data is not None else graph.input(condition)
    x = graph.input(Told([2, 3]))
    told = {"": "IfOptions", "ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2}
    graph.outputs = graph.op("IF", [place, x], [Told([2, 3])], told)
    return [graph, unary("EXP"), unary("NEG")]


def test_a_branch_by_a_value() -> None:
    ((x,),) = runs_of([2, 3], 1)
    check(branch(Told([1], "bool")), [[np.array([held]), x / 40] for held in (True, False)])


@pytest.mark.parametrize("held", [True, False])
def test_a_branch_that_is_known_is_the_only_one(held: bool) -> None:
    graphs = branch(constant(np.array([held])))
    assert ("exp(" in import_model(model_bytes(graphs)).graph.print()) is held
    check(graphs, [[x / 40 for x in run] for run in runs_of([2, 3], 1)])


def loop(condition: str) -> list[Graph]:
    """x = x + x as long as a count from 0 is below 3, or x's first number is."""
    goes, body, graph = Graph("goes"), Graph("body"), Graph()
    for part in (goes, body):
        part.input(Told([], "i32"))
        part.input(Told([2]))
    if condition == "count":
        goes.outputs = goes.op("LESS", [0, goes.tensor(constant(np.int32(3)))], [Told([], "bool")])
    else:
        (most,) = goes.op("REDUCE_MAX", [1, goes.tensor(constant([0], "i32"))], [Told([])], {"": "ReducerOptions"})
        goes.outputs = goes.op("LESS", [most, goes.tensor(constant(np.float32(100)))], [Told([], "bool")])
    (count,) = body.op("ADD", [0, body.tensor(constant(np.int32(1)))], [Told([], "i32")], {"": "AddOptions"})
    (twice,) = body.op("ADD", [1, 1], [Told([2])], {"": "AddOptions"})
    body.outputs = [count, twice]
    start = graph.tensor(constant(np.int32(0)))
    x = graph.input(Told([2]))
    told = {"": "WhileOptions", "CondSubgraphIndex": 1, "BodySubgraphIndex": 2}
    graph.outputs = graph.op("WHILE", [start, x], [Told([], "i32"), Told([2])], told)
    return [graph, goes, body]


def test_a_loop_of_known_rounds() -> None:
    check(loop("count"), runs_of([2], 1))


def test_a_loop_as_long_as_values_say() -> None:
    check(loop("value"), [[np.array([first, 1], np.float32)] for first in (1, 60, 200)])


def lstm(plain: bool, time_major: bool) -> list[Graph]:
    rng = np.random.default_rng(4)
    graph = Graph()
    features, units = 3, 4
    x = graph.input(Told([5, 2, features] if time_major else [2, 5, features]))

    def weights(*shape: int) -> int:
        return graph.tensor(constant((rng.standard_normal(shape) * 0.5).astype(np.float32)))

    inputs = [x, *(weights(units, features) for _ in range(4)), *(weights(units, units) for _ in range(4))]
    inputs += [-1, -1, -1] if plain else [weights(units) for _ in range(3)]
    inputs += [weights(units) for _ in range(4)]
    inputs += [-1, -1]
    inputs += [graph.tensor(Told([2, units], is_variable=True, name=name)) for name in ("h", "c")]
    inputs += [-1] * 4
    told = {"": "UnidirectionalSequenceLSTMOptions", "FusedActivationFunction": 4, "TimeMajor": time_major}
    told |= {} if plain else {"CellClip": 0.4}
    graph.outputs = graph.op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [ANY], told)
    return [graph]


@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("plain", [True, False])
def test_an_lstm_keeps_its_states(plain: bool, time_major: bool) -> None:
    data = model_bytes(lstm(plain, time_major))
    assert ("= lstm(" in import_model(data).graph.print()) is plain
    runs = [[x / 40] for (x,) in runs_of([5, 2, 3] if time_major else [2, 5, 3], 3)]
    executable = hetnn.compile(data)
    for inputs, wanted in zip(runs, reference(data, runs), strict=True):
        np.testing.assert_allclose(executable(*inputs), wanted[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["RNN", "UNIDIRECTIONAL_SEQUENCE_RNN"])
def test_simple_recurrent_layers(name: str) -> None:
    rng = np.random.default_rng(4)
    graph = Graph()
    x = graph.input(Told([2, 3] if name == "RNN" else [2, 5, 3]))
    rows = [(rng.standard_normal(shape) * 0.5).astype(np.float32) for shape in ((4, 3), (4, 4), (4,))]
    places = [graph.tensor(constant(row)) for row in rows]
    state = graph.tensor(Told([2, 4], is_variable=True, name="h"))
    table = "RNNOptions" if name == "RNN" else "SequenceRNNOptions"
    graph.outputs = graph.op(name, [x, *places, state], [ANY], {"": table, "FusedActivationFunction": 4})
    check([graph], [[x / 40] for (x,) in runs_of([2, 3] if name == "RNN" else [2, 5, 3], 3)])


@pytest.mark.parametrize("rank", [1, 2])
def test_svdf(rank: int) -> None:
    rng = np.random.default_rng(4)
    graph = Graph()
    x = graph.input(Told([2, 3]))
    rows = [(rng.standard_normal(shape) * 0.5).astype(np.float32) for shape in ((4, 3), (4, 6), (4 // rank,))]
    places = [graph.tensor(constant(row)) for row in rows]
    state = graph.tensor(Told([2, 24], is_variable=True, name="past"))
    told = {"": "SVDFOptions", "Rank": rank, "FusedActivationFunction": 1}
    graph.outputs = graph.op("SVDF", [x, *places, state], [ANY], told)
    check([graph], [[x / 40] for (x,) in runs_of([2, 3], 8)])


def test_a_subgraph_that_calls_itself_is_refused() -> None:
    graph = Graph()
    x = graph.input(Told([2, 3]))
    graph.outputs = graph.op("CALL", [x], [Told([2, 3])], {"": "CallOptions", "Subgraph": 0})
    with pytest.raises(hetnn.InvalidModel, match="subgraphs lie more than 64 deep in one another"):
        import_model(model_bytes([graph]))


@pytest.mark.parametrize("name", ["IF", "WHILE"])
def test_a_branch_or_loop_that_calls_itself_is_refused(name: str) -> None:
    graph = Graph()
    holds = graph.input(Told([], "bool"))
    options = {"IF": ("ThenSubgraphIndex", "ElseSubgraphIndex"), "WHILE": ("CondSubgraphIndex", "BodySubgraphIndex")}
    graph.outputs = graph.op(
        name,
        [holds] * (1 + (name == "IF")),
        [Told([], "bool")],
        {"": f"{name.title()}Options", **dict.fromkeys(options[name], 0)},
    )
    with pytest.raises(hetnn.InvalidModel, match="subgraphs lie more than 64 deep in one another"):
        import_model(model_bytes([graph]))


def test_subgraphs_that_call_the_next_one_twice_are_refused_in_bounded_time() -> None:
    """40 of them make 2^40 operators."""
    graphs = []
    for k in range(40):
        graph = Graph(f"g{k}")
        value = graph.input(Told([2, 3]))
        for _ in range(2):
            told = {"": "CallOptions", "Subgraph": k + 1}
            (value,) = (
                graph.op("CALL", [value], [Told([2, 3])], told) if k < 39 else graph.op("ABS", [value], [Told([2, 3])])
            )
        graph.outputs = [value]
        graphs.append(graph)
    began = time.monotonic()
    with pytest.raises(hetnn.InvalidModel, match="more than"):
        import_model(model_bytes(graphs))
    assert time.monotonic() - began < 20


def test_a_subgraph_that_is_not_there_is_refused() -> None:
    graph = Graph()
    x = graph.input(Told([2, 3]))
    graph.outputs = graph.op("CALL", [x], [Told([2, 3])], {"": "CallOptions", "Subgraph": 7})
    with pytest.raises(hetnn.InvalidModel, match="the subgraph 7, of which there are 1"):
        import_model(model_bytes([graph]))


# Sparse constants


def test_rows_with_indices() -> None:
    """[[0, 5, 0], [0, 0, 0], [7, 0, 9]]: rows one by one, of each the columns that have a value."""
    columns = Level(0, np.array([0, 1, 1, 3]), np.array([1, 0, 2]))
    dense = densified(np.array([5, 7, 9]), [3, 3], [0, 1], [], [Level(3), columns], 100)
    np.testing.assert_array_equal(dense, [[0, 5, 0], [0, 0, 0], [7, 0, 9]])


def test_blocks_of_columns() -> None:
    """Of two rows the first has the columns 2 and 3, the second 0 and 1."""
    blocks = Level(0, np.array([0, 1, 2]), np.array([1, 0]))
    dense = densified(np.array([1, 2, 3, 4]), [2, 4], [0, 1, 2], [1], [Level(2), blocks, Level(2)], 100)
    np.testing.assert_array_equal(dense, [[0, 0, 1, 2], [3, 4, 0, 0]])


@pytest.mark.parametrize(
    ("levels", "order", "message"),
    [
        ([Level(3), Level(3)], [0, 1], "3 values for 9 places"),
        ([Level(3)], [0, 1], "1 levels"),
        ([Level(3), Level(1 << 40)], [0, 1], "a level of"),
        ([Level(3), Level(0, np.array([0, 1, 1, 9]), np.array([1, 0, 2]))], [0, 1], "4 ends of 3 indices"),
        ([Level(3), Level(0, np.array([0, 1, 1, 3]), np.array([1, 0, 7]))], [0, 1], "values outside"),
    ],
)
def test_what_is_no_sparse_tensor(levels: list[Level], order: list[int], message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=message):
        densified(np.array([5, 7, 9]), [3, 3], order, [], levels, 100)
