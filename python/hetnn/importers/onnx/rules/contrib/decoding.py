"""What ONNX Runtime has around decoders: tokens that are guessed ahead, and the way of words through sounds."""

from __future__ import annotations

from typing import Any

from hetnn.errors import InvalidModel
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import maximum
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.pieces import part
from hetnn.importers.onnx.rules.declare import contrib


@contrib("DynamicTimeWarping", "input")
def _time_warping(call: Call) -> Any:
    shape = call.shape(0, 2, 3)
    x = with_sizes(call, call[0], [1, None, None]) if len(shape) == 3 else call[0]
    path = call.create("cheapest_path", [call.reshape(x, shape[-2:])], length=call.found_size())
    return call.cast(path, "i32")


@contrib(
    "BifurcationDetector",
    "src_tokens cur_tokens prev_suffix_match_idx pred_tokens?",
    min_ngram_size=1,
    max_ngram_size=3,
)
def _bifurcation(call: Call) -> list[Any]:
    """The tokens so far with those guessed that the source has too, and one more; and where the source goes on behind
    their last ones, -1 where that is not one place."""
    least, most = (int(call.attr(f"{name}_ngram_size")) for name in ("min", "max"))
    if not 1 <= least <= most:
        raise InvalidModel(f"BifurcationDetector of runs of {least} to {most} tokens")
    (length,), (count,) = call.shape(0, 1), call.shape(1, 1)
    source, tokens = call[0], call[1]
    if call.given(3):
        begin = call.size(2, "prev_suffix_match_idx")
        behind = maximum(length - begin, 0)
        guessed = with_sizes(call, call[3], [behind + 1])
        first = call.reshape(call.whole(begin), [])
        rest = call.create(
            "gather", [source, call.create("add", [call.create("arange", [], end=behind), first])], axis=0
        )
        same = call.create("eq", [part(call, guessed, 0, behind), rest])
        right = call.create("sum", [call.create("cumprod", [call.cast(same, "i64")], axis=0)], axes=[0])
        kept = call.found_size()
        call.create("read_size", [right], sizes=[kept])
        tokens = call.create("concat", [tokens, part(call, guessed, 0, kept + 1)], axis=0)
        count = count + kept + 1

    def at(op: str, *values: Any) -> Any:
        return call.create(op, [call.constant(x, "i64") if isinstance(x, int) else x for x in values])

    # With one element before them, so that there is always one to compare.
    tokens = call.create("concat", [call.constant([0], "i64"), tokens], axis=0)
    whole, size = (call.reshape(call.whole(n), []) for n in (count, length))
    place, goes = call.constant(-1, "i64"), call.constant(True, "bool")
    for run in range(least, most + 1):
        ends = at("add", at("sub", whole, run - 1), call.create("arange", [], end=run))
        last = call.create("gather", [tokens, at("maximum", ends, 0)], axis=0)
        windows = call.create("as_strided", [source], shape=[maximum(length - run + 1, 0), run], strides=[1, 1])
        hits = call.create("all", [at("eq", windows, last)], axes=[1])
        before = call.create("cumprod", [call.cast(call.create("logical_not", [hits]), "i64")], axis=0)
        after = at("add", call.create("sum", [before], axes=[0]), run)
        times = call.create("sum", [call.cast(hits, "i64")], axes=[0])
        goes = call.folded("logical_and", [goes, at("ge", whole, run), at("gt", times, 0)])
        inside = at("lt", after, size)
        several = call.create("logical_and", [inside, at("gt", times, 1)])
        place = call.create("where", [goes, at("where", several, -1, after), place])
        goes = call.create("logical_and", [goes, inside])
    return [part(call, tokens, 1, count + 1), call.reshape(place, list(call[2].shape))]
