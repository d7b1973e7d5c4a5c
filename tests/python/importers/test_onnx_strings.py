"""ONNX tensors of strings: in, out, computed with and moved; saved, and refused where they are none."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import hetnn
from importers.onnx_models import f32, model_of

Array = np.ndarray[Any, Any]


def texts(*values: str) -> Array:
    return np.array(values, object)


def compiled(text: str, opset: int = 21, target: str = "cpu") -> hetnn.Executable:
    return hetnn.compile(model_of(text, opset), target)


def test_every_kind_of_array_of_texts_goes_in_and_objects_come_out(tmp_path: Path) -> None:
    exe = compiled("agraph (string[n] x, string[1] y) => (string[n] z) { z = StringConcat(x, y) }")
    exe.save(tmp_path / "t.hetnn")
    wanted = ["aß!", "!", "日本!"]
    for run in (exe, hetnn.load(tmp_path / "t.hetnn"), pickle.loads(pickle.dumps(exe))):
        for x in (["aß", "", "日本"], np.array(["aß", "", "日本"]), texts("aß", "", "日本")):
            z = run(x, texts("!"))
            assert z.dtype == object
            assert z.tolist() == wanted
    assert exe(texts(), texts("!")).tolist() == []
    assert [(port.name, port.dtype) for port in exe.outputs] == [("z.bytes", "u8"), ("z.spans", "i64")]


def test_what_holds_no_texts_is_refused() -> None:
    exe = compiled("agraph (string[n] x) => (string[n] z) { z = Identity(x) }")
    with pytest.raises(hetnn.InvalidModel, match="input 'x' must be an array of texts; got float32"):
        exe(f32(3))
    with pytest.raises(hetnn.InvalidModel, match="input 'x' must hold texts"):
        exe(np.array(["a", 1], object))
    with pytest.raises(hetnn.InvalidModel, match="input 'x' must hold texts"):
        exe(texts("\ud800"))


@pytest.mark.parametrize("span", [-1, 5, (4 << 32) + 1, (1 << 62), (5 << 32)])
def test_spans_outside_the_bytes_end_the_run(span: int) -> None:
    data, spans = np.zeros(4, np.uint8), np.array([span], np.int64)
    for body in ("z = StringConcat(x, x)", "z, n = StringSplit(x)"):
        exe = compiled(f"agraph (string[n] x) => (string[k] z) {{ {body} }}")
        with pytest.raises(hetnn.InvalidModel, match="a span must lie within the 4 bytes"):
            exe.run([data, spans])
    same = compiled("agraph (string[n] x) => (string[n] z) { y = Identity(x)\n z = Identity(y) }")
    with pytest.raises(hetnn.InvalidModel, match="the model gives a text at"):
        same._arguments.returned([], same.run([data, spans]))


def test_constants_of_texts_in_initializers_and_nodes() -> None:
    graph = model_of(
        """agraph (int64[n] i) => (string[n] y, string[2] z, string s) {
          y = Gather(words, i)
          z = Constant<value_strings = ["ä", ""]>()
          s = Constant<value_string = "one">()
        }"""
    )
    graph.graph.initializer.append(helper.make_tensor("words", TensorProto.STRING, [3], [b"a", b"", "ü".encode()]))
    y, z, s = hetnn.compile(graph)(np.array([2, 0, 1, -1]))
    assert (y.tolist(), z.tolist(), s.item(), s.shape) == (["ü", "a", "", "ü"], ["ä", ""], "one", ())
    graph.graph.initializer[0].string_data.pop()
    with pytest.raises(hetnn.InvalidModel, match=r"'words' of strings has the shape \[3\], but 2 strings"):
        hetnn.compile(graph)


def test_texts_are_moved_like_numbers() -> None:
    exe = compiled(
        """agraph (string[2,n] x, string[1,m] y, bool[2,1] c) => (string[k] a, string[2,j] b, int64[2] s,
                                                              string[n,2] t) {
          two = Constant<value_ints = [2, 1]>()
          wide = Tile(y, two)
          b = Concat<axis = 1>(x, wide, x)
          flat = Constant<value_ints = [-1]>()
          a = Reshape(b, flat)
          s = Shape(x)
          t0 = Transpose(x)
          t = Identity(t0)
        }"""
    )
    x, y = np.array([["a", "bb"], ["", "ccc"]]), np.array([["y"]])
    a, b, s, t = exe(x, y, np.array([[True], [False]]))
    wanted = np.concatenate([x, np.tile(y, (2, 1)), x], axis=1)
    assert b.tolist() == wanted.tolist()
    assert a.tolist() == wanted.reshape(-1).tolist()
    assert (s.tolist(), t.tolist()) == ([2, 2], x.T.tolist())


def test_branches_loops_and_choices_carry_texts() -> None:
    exe = compiled(
        """agraph (bool c, int64 n, string[2] x, string[2] y) => (string[2] z, string[2] w) {
          z = If(c) <then_branch = t () => (string[2] a) { a = Identity(x) },
                     else_branch = e () => (string[2] b) { b = Identity(y) }>
          w = Loop(n, , x) <body = r (int64 i, bool g, string[2] v) => (bool h, string[2] u) {
            h = Identity(g)
            u = StringConcat(v, y)
          }>
        }"""
    )
    x, y = texts("a", "b"), texts("-", "+")
    for choice in (True, False):
        z, w = exe(np.array(choice), np.array(2), x, y)
        assert (z.tolist(), w.tolist()) == ((x if choice else y).tolist(), ["a--", "b++"])


def test_an_accelerator_leaves_texts_to_the_cpu_and_says_why() -> None:
    exe = compiled("agraph (string[2] x, string[2] y) => (bool[2] z) { z = Equal(x, y) }", target="cpu+relu-only")
    assert exe(texts("a", "b"), texts("a", "c")).tolist() == [True, False]
    (row,) = exe.report("dict")["not_on_preferred"]
    assert (row["op"], row["device"]) == ("text_equal", "cpu")
    assert row["reasons"]


def test_operators_that_take_no_texts_name_themselves() -> None:
    with pytest.raises(hetnn.Unsupported, match="Relu"):
        compiled("agraph (string[2] x) => (float[2] z) { z = Relu(x) }")


def split(x: Array, attrs: str) -> list[Any]:
    exe = compiled(f"agraph (string[n] x) => (string[n,k] y, int64[n] c) {{ y, c = StringSplit{attrs}(x) }}")
    y, counts = exe(x)
    return [row[:count] for row, count in zip(y.tolist(), counts.tolist(), strict=True)]


def test_splits_are_those_of_python() -> None:
    x = texts("  a b  c ", "", "a,b,,c", "x\u3000y ", ",")
    assert split(x, "") == [each.split() for each in x]
    assert split(x, "<maxsplit = 1>") == [each.split(None, 1) for each in x]
    assert split(x, '<delimiter = ",">') == [each.split(",") for each in x]
    assert split(x, '<delimiter = ",", maxsplit = 1>') == [each.split(",", 1) for each in x]


def test_normalizing_takes_stop_words_out_and_changes_case() -> None:
    def run(attrs: str, *values: str) -> Any:
        return compiled(f"agraph (string[n] x) => (string[k] y) {{ y = StringNormalizer<{attrs}>(x) }}")(
            texts(*values)
        ).tolist()

    assert run('case_change_action = "UPPER"', "straße", "öл", "ÿ") == ["STRASSE".replace("SS", "ß"), "ÖЛ", "Ÿ"]
    assert run('case_change_action = "LOWER", stopwords = ["A"]', "a", "B", "A") == ["b"]
    assert run('is_case_sensitive = 1, stopwords = ["A"]', "a", "B", "A") == ["a", "B"]
    assert run('stopwords = ["a"]', "a", "A") == [""]


@pytest.mark.parametrize(
    ("attrs", "x", "wanted"),
    [
        ('keys_strings = ["a", "b"], values_int64s = [5, 7]', texts("b", "a", "z"), [7, 5, -1]),
        (
            'keys_int64s = [1, 2], values_strings = ["x", "y"], default_string = "?"',
            np.array([2, 9, 1]),
            ["y", "?", "x"],
        ),
        ("keys_int64s = [1, 2], values_floats = [0.5, 1.5], default_float = -2.0", np.array([2, 9, 1]), [1.5, -2, 0.5]),
        ('keys_strings = ["a"], values_strings = ["b"]', texts("a", "b", ""), ["b", "_Unused", "_Unused"]),
    ],
)
def test_labels(attrs: str, x: Array, wanted: list[Any]) -> None:
    kinds = ["string" if "keys_s" in attrs else "int64"]
    kinds.append("string" if "values_s" in attrs else "float" if "values_f" in attrs else "int64")
    text = f"agraph ({kinds[0]}[n] x) => ({kinds[1]}[n] y) {{ y = ai.onnx.ml.LabelEncoder<{attrs}>(x) }}"
    model = model_of(text)
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 4))
    assert hetnn.compile(model)(x).tolist() == wanted


def test_a_key_that_is_no_number_is_found() -> None:
    node = helper.make_node(
        "LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_floats=[1.0, float("nan")], values_int64s=[3, 4]
    )
    ports = [helper.make_tensor_value_info(n, t, [3]) for n, t in (("x", TensorProto.FLOAT), ("y", TensorProto.INT64))]
    model = helper.make_model(
        helper.make_graph([node], "g", ports[:1], ports[1:]), opset_imports=[helper.make_opsetid("ai.onnx.ml", 4)]
    )
    assert hetnn.compile(model)(np.array([np.nan, 1, 2], np.float32)).tolist() == [4, 3, -1]


# Patterns

PATTERNS = [
    "a*",
    "(a|b)+c?",
    "[^a-c]{2,3}",
    r"\w+@\w+\.(com|org)",
    r"(\W|^)[\w.\-]{0,3}(\W|$)",
    r"\bab\b.*",
    r"x{0,2}(?:y|z){2}",
    "(a*)*b",
    r"[\d\-_]+|\S\s?",
    "",
    "日.|[à-ü]+",
    "(?P<name>a)(b|)",
]


def matches(pattern: str, x: Array) -> Array:
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
    ports = [
        helper.make_tensor_value_info(n, t, ["n"]) for n, t in (("x", TensorProto.STRING), ("y", TensorProto.BOOL))
    ]
    graph = helper.make_graph([node], "g", ports[:1], ports[1:])
    found: Array = hetnn.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))(x)
    return found


@pytest.mark.parametrize("pattern", PATTERNS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_patterns_match_what_pythons_do(pattern: str, data: st.DataObject) -> None:
    own = re.compile(pattern, re.ASCII)
    some = st.lists(
        st.one_of(st.text("abcxyz@._- 09日äü\n", max_size=8), st.from_regex(own, fullmatch=True)), max_size=12
    )
    x = data.draw(some)
    # A `$` of RE2 is the very end, one of Python also before a last newline; `\s` of RE2 is no vertical tab.
    x = [each for each in x if "\n" not in each and "\v" not in each]
    assert matches(pattern, np.array(x, object)).tolist() == [own.fullmatch(each) is not None for each in x]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(a", r"a '\(' is not closed"),
        ("a)", r"a '\)' closes nothing"),
        ("[a", r"a '\[' is not closed"),
        ("*a", r"there is nothing that '\*' repeats"),
        ("a{2000}", "it repeats 2000"),
        ("((a{1000}){1000}){1000}", "it takes more than 5000 steps"),
        ("(" * 200 + ")" * 200, "groups lie more than 100 deep"),
        ("[b-a]", "a range ends before it begins"),
        ("\\", r"it ends in a '\\'"),
        ("(?=a)", r"a group that begins with '\(\?=a' is not known"),
        (r"\pN", r"'\\p' is not known"),
    ],
)
def test_patterns_that_are_none_say_why(pattern: str, message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=message):
        matches(pattern, texts("a"))


def test_a_pattern_that_backtracking_would_not_end() -> None:
    assert not matches("(a*)*(a*)*(a|aa)+b", texts("a" * 3000)).item()


POOL = """pool_strings = ["the", "cat", "the", "cat", "cat", "sat"], ngram_counts = [0, 2],
  ngram_indexes = [3, 0, 1, 2], min_gram_length = 1, max_gram_length = 2, max_skip_count = 1"""


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("rows", [1, 2])
def test_counts_of_n_grams_of_texts(mode: str, rows: int) -> None:
    """As ONNX' reference counts those of the same words as numbers; a word that is not in the pool is none."""
    words = ["the", "cat", "sat", "on", "the", "cat", "cat"] * rows
    numbers = [["the", "cat", "sat", "on"].index(word) for word in words]
    shape = [7] if rows == 1 else [rows, 7]
    weights = "weights = [0.5, 2.0, 3.0, 5.0]"
    size = ",".join(map(str, shape))

    def text(pool: str, kind: str) -> str:
        return f'agraph ({kind}[{size}] x) => (y) {{ y = TfIdfVectorizer <mode = "{mode}", {weights}, {pool}> (x) }}'

    counted = POOL.replace("pool_strings", "pool_int64s")
    for k, word in enumerate(["the", "cat", "sat"]):
        counted = counted.replace(f'"{word}"', str(k))
    wanted = ReferenceEvaluator(model_of(text(counted, "int64"))).run(None, {"x": np.array(numbers).reshape(shape)})
    given = np.array(words, object).reshape(shape)
    np.testing.assert_allclose(compiled(text(POOL, "string"))(given), wanted[0], rtol=1e-6)
    np.testing.assert_allclose(compiled(text(counted, "int64"))(np.array(numbers).reshape(shape)), wanted[0], rtol=1e-6)


def test_n_grams_that_do_not_fit_their_pool() -> None:
    text = 'agraph (string[4] x) => (y) {{ y = TfIdfVectorizer <mode = "TF", {}> (x) }}'
    for told, why in {
        POOL.replace("[0, 2]", "[0, 3]"): "3 items of the pool for 2-grams",
        POOL.replace("[3, 0, 1, 2]", "[3, 0]"): "2 columns for more n-grams",
        POOL.replace("[3, 0, 1, 2]", "[3, 0, -1, 2]"): "ngram_indexes",
        POOL.replace("[0, 2]", "[2, 0]"): "ngram_counts",
    }.items():
        with pytest.raises(hetnn.InvalidModel, match=why):
            compiled(text.format(told))


def test_sequences_of_texts() -> None:
    """Of a known length: built, grown, shortened, read, joined, and given back as lists."""
    exe = compiled("""agraph (string[2] a, string[n] b) => (s, last, length, joined) {
      first = SequenceConstruct(a, b)
      longer = SequenceInsert(first, a)
      zero = Constant <value = int64 {0}> ()
      s = SequenceErase(longer, zero)
      one = Constant <value = int64 {1}> ()
      last = SequenceAt(s, one)
      length = SequenceLength(s)
      joined = ConcatFromSequence <axis = 0> (s)
    }""")
    s, last, length, joined = exe(texts("é", ""), texts("x", "yz", "w"))
    assert [part.tolist() for part in s] == [["x", "yz", "w"], ["é", ""]]
    assert last.tolist() == ["é", ""]
    assert length == 2
    assert joined.tolist() == ["x", "yz", "w", "é", ""]


@pytest.mark.parametrize("dtype", ["float", "double", "int64", "uint64", "int8", "float16", "bool"])
def test_numbers_written_out_are_read_back(dtype: str) -> None:
    kind = np.dtype({"float": np.float32, "double": np.float64}.get(dtype, dtype))
    if kind.kind == "f":
        bits = np.random.default_rng(3).integers(0, 256, 4000, np.uint8)
        x = np.concatenate([bits.view(kind), np.array([0, -0.0, np.inf, -np.inf, np.nan, 0.1], kind)])
    elif kind.kind == "b":
        x = np.array([True, False])
    else:
        limits = np.iinfo(kind)
        x = np.array([limits.min, limits.max, 0, 1], kind)
    number = helper.np_dtype_to_tensor_dtype(kind)
    text = f"""agraph ({dtype}[n] x) => (string[n] s, {dtype}[n] y, {dtype}[n] z) {{
      s = Cast <to = 8> (x)
      y = Cast <to = {number}> (s)
      z = CastLike(s, x)
    }}"""
    exe = hetnn.compile(model_of(text, 21), denormals="keep")
    s, y, z = exe(x)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(z, x)
    if kind.kind in "iu":
        assert s.tolist() == [str(number) for number in x.tolist()]
    if kind == np.float32:
        assert s[-6:].tolist() == ["0", "-0", "INF", "-INF", "NaN", "0.1"]
        assert not any("e" in each for each in s.tolist())


def test_what_texts_spell() -> None:
    spelled = {
        "1e-5": 1e-5,
        "1E8": 1e8,
        "+3.5": 3.5,
        " -2 ": -2.0,
        "+INF": np.inf,
        "-inf": -np.inf,
        "nan": np.nan,
        "1e99": np.inf,
        "-1e-99": -0.0,
        ".5": 0.5,
    }
    exe = compiled("agraph (string[n] s) => (float[n] y) { y = Cast <to = 1> (s) }")
    np.testing.assert_array_equal(exe(texts(*spelled)), np.array([*spelled.values()], np.float32))
    whole = compiled("agraph (string[n] s) => (int64[n] y) { y = Cast <to = 7> (s) }")
    assert whole(texts("100.5", "-7", "1e3", "9223372036854775807", "-0.9")).tolist() == [100, -7, 1000, 2**63 - 1, 0]
    for run, wrong in (
        (exe, "Hello"),
        (exe, ""),
        (exe, "1.5x"),
        (exe, "+-1"),
        (whole, "9223372036854775808"),
        (whole, "INF"),
    ):
        with pytest.raises(hetnn.InvalidModel, match=re.escape(f"'{wrong}' is no number of ")):
            run(texts("1", wrong))
