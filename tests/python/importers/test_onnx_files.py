"""What ONNX files of other exporters have: functions of one name, sizes without a name, names of every script."""

from __future__ import annotations

import gc
import re
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, parser

import hetnn
from hetnn import _core
from hetnn.importers.onnx.graph import import_onnx
from importers.onnx_models import f32, model_of

FLOAT = onnx.TensorProto.FLOAT


def file_of(nodes: list[Any], inputs: list[Any], outputs: list[str], **given: Any) -> onnx.ModelProto:
    """A model whose outputs' shapes are not declared."""
    opsets = [helper.make_opsetid(domain, version) for domain, version in given.pop("opsets", {"": 18}).items()]
    made = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs]
    functions = given.pop("functions", [])
    graph = helper.make_graph(nodes, "g", inputs, made, **given)
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)


def value(name: str, *shape: Any) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, shape)


def call(overload: str, given: str, made: str) -> onnx.NodeProto:
    return helper.make_node("Layer", [given], [made], domain="own", overload=overload)


def layer(overload: str, *nodes: onnx.NodeProto) -> onnx.FunctionProto:
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    return helper.make_function("own", "Layer", ["v"], ["o"], nodes, opsets, overload=overload)


# Functions


def test_functions_of_one_name_are_told_apart_by_their_overload() -> None:
    functions = [
        layer("", helper.make_node("Relu", ["v"], ["o"])),
        layer("one", helper.make_node("Neg", ["v"], ["o"])),
        layer("both", call("", "v", "a"), call("one", "a", "o")),
    ]
    nodes = [call("", "x", "a"), call("one", "x", "b"), call("both", "x", "c")]
    opsets = {"": 18, "own": 1}
    model = file_of(nodes, [value("x", "n", 3)], ["a", "b", "c"], functions=functions, opsets=opsets)
    x = f32(2, 3)
    for given, wanted in zip(hetnn.compile(model)(x), [np.maximum(x, 0), -x, -np.maximum(x, 0)], strict=True):
        np.testing.assert_array_equal(given, wanted)


def test_an_overload_that_is_not_there_is_told() -> None:
    functions = [layer("one", helper.make_node("Relu", ["v"], ["o"]))]
    model = file_of([call("two", "x", "a")], [value("x", 3)], ["a"], functions=functions, opsets={"": 18, "own": 1})
    with pytest.raises(hetnn.InvalidModel, match=r"'a': own.Layer: the model has no function .* the overload 'two'"):
        hetnn.compile(model)


def test_what_a_function_is_told_it_tells_the_functions_that_it_calls() -> None:
    """By its own attribute of another name, which may be absent, as inner ones are then."""

    def told(node: onnx.NodeProto, name: str, outer: str) -> onnx.NodeProto:
        node.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=outer, type=onnx.AttributeProto.FLOAT))
        return node

    def function(name: str, node: onnx.NodeProto, attribute: str) -> onnx.FunctionProto:
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
        return helper.make_function("own", name, ["v"], ["o"], [node], opsets, [attribute])

    inner = told(helper.make_node("LeakyRelu", ["v"], ["o"]), "alpha", "slope")
    outer = told(helper.make_node("Inner", ["v"], ["o"], domain="own"), "slope", "steepness")
    functions = [function("Inner", inner, "slope"), function("Outer", outer, "steepness")]
    nodes = [
        helper.make_node("Outer", ["x"], ["a"], domain="own", steepness=0.25),
        helper.make_node("Outer", ["x"], ["b"], domain="own"),
    ]
    model = file_of(nodes, [value("x", "n")], ["a", "b"], functions=functions, opsets={"": 18, "own": 1})
    x = f32(7)
    for given, slope in zip(hetnn.compile(model)(x), [0.25, 0.01], strict=True):
        np.testing.assert_allclose(given, np.where(x > 0, x, x * np.float32(slope)))


# Sizes


@pytest.mark.parametrize("unnamed", [-1, -7, "?", "*", "None", "-1", "", None])
def test_sizes_without_a_name_have_nothing_to_do_with_one_another(unnamed: Any) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["z"], ["b"])]
    model = file_of(nodes, [value("x", unnamed, 3, unnamed), value("z", unnamed)], ["a", "b"])
    model.graph.output[0].CopyFrom(value("a", unnamed, unnamed, unnamed))
    exe = hetnn.compile(model)
    assert [port.shape for port in exe.inputs] == [("x_0", 3, "x_2"), ("z_0",)]
    for sizes in ((2, 5, 4), (1, 1, 7)):
        x, z = f32(sizes[0], 3, sizes[1]), f32(sizes[2])
        a, b = exe(x, z)
        np.testing.assert_array_equal(a, np.maximum(x, 0))
        np.testing.assert_array_equal(b, -z)
    fixed = hetnn.compile(model, fix={"x_0": 2, "z": z})
    assert [port.shape for port in fixed.inputs] == [(2, 3, "x_2")]


def test_a_size_that_is_named_as_hetnn_names_another() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["z"], ["b"])]
    exe = hetnn.compile(file_of(nodes, [value("x", -1), value("z", "x_0")], ["a", "b"]))
    x, z = f32(2), f32(3)
    np.testing.assert_array_equal(exe(x, z)[1], -z)


@pytest.mark.parametrize("unnamed", [-1, "?"])
def test_a_loop_whose_state_has_an_unnamed_size(unnamed: Any) -> None:
    text = """agraph (int64 n, bool go, float[k] x) => (float[k] y) {
      y = Loop(n, go, x) <body = body (int64 i, bool g, float[k] s) => (bool h, float[k] t) {
        h = Identity(g) t = Concat <axis = 0> (s, s)
      }>
    }"""
    model = model_of(text)
    body = model.graph.node[0].attribute[0].g
    body.output[1].CopyFrom(value("t", unnamed))
    x = f32(3)
    given = hetnn.compile(model)(np.int64(2), np.bool_(True), x)
    np.testing.assert_array_equal(given, np.tile(x, 4))


# Names

NAMES = ["入力", "input:0", "a b/c", 'a"b\\c\n<d>&%s{0}', "it's", " v", "a-b", "constant"]


def model_of_names() -> onnx.ModelProto:
    """((入力 + input:0) * a b/c - ...) and its relu, with a size, nodes and outputs that are named alike."""
    nodes, before = [helper.make_node("Identity", [NAMES[0]], ["前:0"])], "前:0"
    for k, name in enumerate(NAMES[1:]):
        op = "Mul" if k % 2 else "Add"
        nodes.append(helper.make_node(op, [before, name], [f"→ {k}"], name=f'ノード "{k}"'))
        before = f"→ {k}"
    nodes += [
        helper.make_node("MatMul", [before, "重み:0"], ["出力:0"]),
        helper.make_node("Relu", ["出力:0"], ["出力 2"]),
    ]
    weight = onnx.numpy_helper.from_array(np.eye(4, dtype=np.float32), "重み:0")
    unnamed = onnx.numpy_helper.from_array(np.ones(4, np.float32), "")
    inputs = [value(name, "バッチ", 4) for name in NAMES]
    return file_of(nodes, inputs, ["出力:0", "出力 2"], initializer=[unnamed, weight])


def outputs_of_names(given: dict[str, Any]) -> list[Any]:
    found, *others = given.values()
    for k, other in enumerate(others):
        found = found * other if k % 2 else found + other
    return [found, np.maximum(found, 0)]


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
def test_names_are_the_models_own(target: str, tmp_path: Any) -> None:
    exe = hetnn.compile(model_of_names(), target)
    exe.save(tmp_path / "names.hetnn")
    given = {name: f32(3, 4) for name in NAMES}
    for one in (exe, hetnn.load(tmp_path / "names.hetnn")):
        assert [port.name for port in one.inputs] == NAMES
        assert [port.name for port in one.outputs] == ["出力:0", "出力 2"]
        assert one.inputs[0].shape == ("バッチ", 4)
        for mine, wanted in zip(one(**given), outputs_of_names(given), strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=1e-5)
    assert 'ノード "0"' in exe.report()
    with pytest.raises(hetnn.InvalidModel, match="input 'input:0' must be"):
        exe(*[f32(2, 4), f32(3, 4), *[f32(2, 4)] * 6])


def test_ir_text_keeps_names() -> None:
    graph = import_onnx(model_of_names()).graph
    text = graph.print()
    assert _core.Graph.parse(text).print() == text
    exe = hetnn.compile(text)
    assert [port.name for port in exe.inputs] == NAMES
    given = {name: f32(2, 4) for name in NAMES}
    np.testing.assert_allclose(exe(**given)[0], outputs_of_names(given)[0], rtol=1e-5)


def test_a_node_is_pinned_by_its_name() -> None:
    exe = hetnn.compile(model_of_names(), "cpu+relu-only", pin={'ノード "0"': "cpu"})
    assert 'ノード "0"' in str(exe.report("dict"))


def test_sizes_of_every_script_meet() -> None:
    text = """agraph (float[a,n] x, float[a,m] z) => (float[k,l] y) {
      c = Concat <axis = 1> (x, z)  s = Shape(c)  f = Reshape(c, minus)  y = Reshape(f, s)
    }"""
    model = model_of(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.int64([-1]), "minus"))
    for axis, (one, other) in enumerate([("数", "数"), ("宽 度", "höhe")]):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = one
        model.graph.input[1].type.tensor_type.shape.dim[axis].dim_param = other
    exe = hetnn.compile(model)
    assert [port.shape for port in exe.inputs] == [("数", "宽_度"), ("数", "höhe")]
    x, z = f32(2, 3), f32(2, 5)
    np.testing.assert_array_equal(exe(x, z), np.concatenate([x, z], 1))
    assert hetnn.compile(model, fix={"宽 度": 3}).inputs[0].shape == ("数", 3)


# Attributes


def in_a_function(node: str) -> onnx.ModelProto:
    """A function of one node of x and an attribute, which its caller gives: the checker of ONNX does not look at it."""
    return parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 13, "own" : 1]>
    agraph (float[a,b,c,d] x) => (float[e,f,g,h] y) {{ y = own.one <block = 2> (x) }}
    <domain: "own", opset_import: ["" : 13]> one <block> (x) => (y) {{ y = {node} }}""")


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_become_depth_in_the_order_that_the_mode_says(mode: str) -> None:
    there = in_a_function(f'SpaceToDepth <blocksize: int = @block, mode = "{mode}"> (x)')
    x = f32(2, 3, 4, 6)
    y = hetnn.compile(there)(x)
    image = x.reshape(2, 3, 2, 2, 3, 2)
    order = [0, 3, 5, 1, 2, 4] if mode == "DCR" else [0, 1, 3, 5, 2, 4]
    np.testing.assert_array_equal(y, image.transpose(order).reshape(2, 12, 2, 3))
    back = model_of(
        f'agraph (float[2,12,2,3] y) => (float[2,3,4,6] x) {{ x = DepthToSpace <blocksize = 2, mode = "{mode}"> (y) }}'
    )
    np.testing.assert_array_equal(hetnn.compile(back)(y), x)


@pytest.mark.parametrize(
    "node",
    ["Relu <slope: int = @block> (x)", "Softmax <axis = 1, slope: int = @block> (x)", "Size <slope: int = @block> (x)"],
)
def test_an_attribute_that_no_rule_reads_is_refused_by_its_name(node: str) -> None:
    with pytest.raises(hetnn.Unsupported, match="the attribute slope, of which hetnn knows no meaning; got 2"):
        hetnn.compile(in_a_function(node))


def test_attributes_that_decide_nothing_are_taken() -> None:
    text = """agraph (float[1,3,8,8] x, float[4,3,3,3] w) => (float[1,4,4,4] y, float[3] s) {
      c = Conv <kernel_shape = [3,3], auto_pad = "SAME_UPPER"> (x, w)
      d = Dropout <ratio = 0.4> (c)
      y = MaxPool <kernel_shape = [2,2], strides = [2,2], storage_order = 1> (d)
      f = Reshape (x, minus)
      s, i = TopK <sorted = 0> (f, three)
    }"""
    model = model_of(text, 11)
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.int64([number]), name) for name, number in [("minus", -1), ("three", 3)]
    )
    x, w = f32(1, 3, 8, 8), f32(4, 3, 3, 3)
    np.testing.assert_array_equal(hetnn.compile(model)(x, w)[1], np.sort(x.reshape(-1))[::-1][:3])


def test_a_kernel_is_as_large_as_the_weights() -> None:
    text = (
        "agraph (float[1,3,8,8] x, float[4,3,3,3] w) => (float[1,4,a,b] y) { y = Conv <kernel_shape = [1,3]> (x, w) }"
    )
    with pytest.raises(hetnn.InvalidModel, match=r"kernel_shape \[1, 3\] for weights \[4, 3, 3, 3\]"):
        hetnn.compile(model_of(text))


def test_an_operator_set_that_the_package_does_not_know_yet() -> None:
    newest = onnx.defs.onnx_opset_version()
    model = file_of(
        [helper.make_node("Relu", ["x"], ["y"], slope=2.0)], [value("x", 3)], ["y"], opsets={"": newest + 1}
    )
    with pytest.raises(hetnn.Unsupported, match=f"slope.*knows operator sets up to {newest}. Install a newer one"):
        hetnn.compile(model)


# Order and versions


def test_nodes_are_put_in_order() -> None:
    text = """agraph (float[n] x, bool go) => (float[n] y) {
      y = Add(b, d)
      b = If(no) <then_branch = t () => (float[n] b) { b = Neg(c)  c = Add(a, x) },
                  else_branch = e () => (float[n] h) { h = Abs(g)  g = Sub(a, x) }>
      no = Not(go)
      a = own.twice(x)
      d = Relu(a)
    }
    <domain: "own", opset_import: ["" : 18]> twice (v) => (w) { w = Neg(u)  u = Add(t, v)  t = Neg(s)  s = Relu(v) }"""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18, "own" : 1]>\n{text}')
    x, exe = f32(5), hetnn.compile(model)
    a = -(x - np.maximum(x, 0))
    for go in (True, False):
        wanted = (np.abs(a - x) if go else -(a + x)) + np.maximum(a, 0)
        np.testing.assert_allclose(exe(x, np.bool_(go)), wanted, rtol=1e-6)


def test_a_chain_that_is_written_backwards() -> None:
    nodes = [helper.make_node("Neg", [f"v{k}"], [f"v{k + 1}"]) for k in range(3000)]
    parts = [helper.make_node("Concat", [f"v{k}" for k in range(0, 3000, 2)], ["y"], axis=0)]
    x = f32(1)
    exe = hetnn.compile(file_of([*parts, *nodes[::-1]], [value("v0", 1)], ["y"]))
    np.testing.assert_array_equal(exe(x), np.repeat(x, 1500))


def test_a_circle_in_a_body_is_named() -> None:
    text = """agraph (float[2] x, bool go) => (float[2] y) {
      y = If(go) <then_branch = t () => (float[2] a) { a = Add(c, x)  b = Neg(a)  c = Relu(b) },
                  else_branch = e () => (float[2] d) { d = Abs(x) }>
    }"""
    with pytest.raises(
        hetnn.InvalidModel,
        match="the nodes 'If/then/a', 'If/then/c', 'If/then/b' read one another's results in a circle",
    ):
        hetnn.compile(model_of(text))


@pytest.mark.parametrize(
    ("node", "reference"),
    [
        (
            "LayerNormalization <axis = 1> (x, s, s)",
            lambda x, s: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True) * s + s,
        ),
        ("HardSwish (x)", lambda x, _: x * np.clip(x / 6 + 0.5, 0, 1)),
        ("Mish (x)", lambda x, _: x * np.tanh(np.log1p(np.exp(x)))),
        ("Where (m, x, s)", lambda x, s: np.where(x < s, x, s)),
    ],
)
def test_operators_of_a_newer_set_than_the_file_names(node: str, reference: Any) -> None:
    text = f"agraph (float[n,4] x, float[4] s) => (float[n,4] y) {{ m = Less(x, s)  y = {node} }}"
    x, s = f32(3, 4), f32(4)
    np.testing.assert_allclose(hetnn.compile(model_of(text, 8))(x, s), reference(x, s), rtol=1e-3, atol=1e-4)


# Transposed convolutions to a size


@pytest.mark.parametrize(
    "window",
    [
        'auto_pad = "SAME_UPPER", strides = [2, 1, 2], kernel_shape = [3, 2, 4]',
        'auto_pad = "SAME_LOWER", strides = [2, 3, 1], kernel_shape = [3, 4, 2]',
        "output_shape = [9, 10, 8], strides = [2, 2, 2], kernel_shape = [5, 3, 4], dilations = [1, 2, 1]",
        "output_shape = [6, 12, 8], strides = [1, 3, 2], kernel_shape = [4, 3, 3], output_padding = [0, 1, 0]",
    ],
)
def test_transposed_convolutions_of_open_sizes_have_the_size_that_is_asked_for(window: str) -> None:
    kernel = [int(k) for k in re.findall(r"kernel_shape = \[(.*?)\]", window)[0].split(",")]
    inputs = f"float[n,2,d,h,w] x, float[2,3,{','.join(map(str, kernel))}] k, float[3] b"
    model = model_of(f"agraph ({inputs}) => (float[n,3,e,f,g] y) {{ y = ConvTranspose <{window}> (x, k, b) }}")
    exe, other = hetnn.compile(model), onnxruntime.InferenceSession(model.SerializeToString())
    for sizes in ((2, 5, 4, 6), (1, 3, 7, 4)):
        given = {"x": f32(sizes[0], 2, *sizes[1:]), "k": f32(2, 3, *kernel), "b": f32(3)}
        np.testing.assert_allclose(exe(**given), other.run(None, given)[0], rtol=1e-4, atol=1e-4)


# Names that inputs share


SHARED = """agraph (float[batch,sequence,4] a, float[batch,sequence,4] b) => (float[batch,sequence,4] y) {
  m = ReduceMean <axes = [1], keepdims = 1> (a)  y = Add (b, m)
}"""


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
def test_sizes_of_one_name_may_differ_where_no_node_needs_them_equal(target: str, tmp_path: Any) -> None:
    exe = hetnn.compile(model_of(SHARED, 13), target)
    a, b, longer = f32(2, 3, 4), f32(2, 3, 4), f32(2, 7, 4)
    np.testing.assert_allclose(exe(a, b), b + a.mean(1, keepdims=True), rtol=1e-5, atol=1e-6)
    with pytest.warns(RuntimeWarning, match="inputs differ in sequence, which the model gives one name"):
        np.testing.assert_allclose(exe(longer, b), b + longer.mean(1, keepdims=True), rtol=1e-5, atol=1e-6)
    out = np.zeros_like(longer)
    exe.run([b, longer], [out])
    np.testing.assert_allclose(out, longer + b.mean(1, keepdims=True), rtol=1e-5, atol=1e-6)
    with pytest.raises(hetnn.InvalidModel, match="batch is 3 elsewhere"):
        exe(f32(3, 2, 4), b)
    with pytest.raises(hetnn.InvalidModel, match="'b' must be"):
        exe(a, f32(2, 3, 5))
    exe.save(tmp_path / "one.hetnn")
    with pytest.raises(hetnn.InvalidModel, match="sequence is 7 elsewhere"):
        hetnn.load(tmp_path / "one.hetnn")(longer, b)


def test_the_standards_domain_has_two_names() -> None:
    model = model_of("agraph (float[n] x) => (float[n] y) { y = Relu(x) }")
    model.graph.node[0].domain = "ai.onnx"
    x = f32(3)
    np.testing.assert_array_equal(hetnn.compile(model)(x), np.maximum(x, 0))


def test_nothing_is_collected_while_a_model_is_imported() -> None:
    nodes = [helper.make_node("Relu", [f"v{k}"], [f"v{k + 1}"]) for k in range(2000)]
    model = file_of(nodes, [value("v0", 2)], ["v2000"])
    told: list[str] = []

    def collected(phase: str, _: object) -> None:
        told.append(phase)

    gc.callbacks.append(collected)
    try:
        import_onnx(model)
        assert told, "a model of so many nodes is enough to be asked to collect"
        told.clear()
        hetnn.importers.import_model(model)
        assert not told
    finally:
        gc.callbacks.remove(collected)
    assert gc.isenabled()


def test_collecting_that_was_off_stays_off_after_importing() -> None:
    gc.disable()
    try:
        with pytest.raises(hetnn.InvalidModel):
            hetnn.importers.import_model(b"no model")
        assert not gc.isenabled()
    finally:
        gc.enable()
