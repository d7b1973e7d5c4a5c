// loop: calls repeated as long as a condition holds.
#include "hetnn/ops/control/loop.h"

#include <algorithm>
#include <span>
#include <sstream>

#include "hetnn/base/convert.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::ops {
namespace {

// More rounds than that have no end.
constexpr int64_t kMostRounds = 1 << 20;
// What the body gives before the values: whether there is another round.
constexpr size_t kBodyOutputs = 1;

// Whether a carried value may change its shape from round to round.
bool changes(const Body& body, size_t carried) {
  return body.taken.contains(static_cast<int64_t>(kBeforeValues + carried));
}

// Of the body; what changes has the sizes that it begins with.
std::vector<Type> types_of_inputs(const Call& call) {
  std::vector<Type> out = {{DType::i64, {}}, {DType::boolean, {}}};
  for (size_t k = kBeforeValues; k < call.inputs.size(); ++k) {
    if (!call.has(k)) fail(call, "loop_c8", text("value ", k - kBeforeValues, " is absent; the body reads them all."));
    out.push_back(call.input(k));
  }
  return out;
}

// What the attribute `stacks` says of a round's values, each as f32:2: one bool, those carried, those stacked.
std::vector<Type> declared_types(const Call& call, const std::vector<Type>& given, size_t carried) {
  std::vector<Type> out = {{DType::boolean, {}}};
  out.insert(out.end(), given.begin() + kBeforeValues, given.begin() + static_cast<ptrdiff_t>(kBeforeValues + carried));
  std::istringstream words(call.string("stacks"));
  for (std::string word; words >> word;) {
    const size_t colon = std::min(word.find(':'), word.size());
    const std::optional<DType> dtype = dtype_from_name(word.substr(0, colon));
    const size_t rank = colon + 2 == word.size() ? static_cast<size_t>(word.back() - '0') : 10;
    if (!dtype || rank > 9) fail(call, "loop_c9", text("stacks must hold words as f32:2; got '", word, "'."));
    out.push_back({*dtype, Shape(rank, Dim::symbol("_"))});
  }
  return out;
}

bool same_kind(const Type& a, const Type& b) { return a.dtype == b.dtype && a.rank() == b.rank(); }

// Where it is said what a body gives, one that does not fit the sizes of a run may still run no round.
std::vector<Type> types_of_body(const Call& call, const std::vector<Type>& given, size_t carried) {
  const Body body = read_body(call, "body");
  if (call.string("stacks").empty()) return infer_body(call, body, taken_types(call, body, given));
  std::vector<Type> declared = declared_types(call, given, carried), made;
  try {
    made = infer_body(call, body, taken_types(call, body, given));
  } catch (const InvalidModel&) {
    return declared;
  }
  const auto stacked = [&](const std::vector<Type>& types) {
    return std::span(types).subspan(std::min(types.size(), kBodyOutputs + carried));
  };
  if (!std::ranges::equal(stacked(made), stacked(declared), same_kind)) {
    fail(call, "loop_c9", text("its body does not give what stacks says, '", call.string("stacks"), "'."));
  }
  return made;
}

std::vector<Type> infer(const Call& call) {
  const size_t carried = carried_values(call);
  const std::vector<Type> given = types_of_inputs(call);
  for (size_t k = 0; k < kBeforeValues; ++k) {
    if (call.has(k) && (call.input(k).dtype != given[k].dtype || elements(call.input(k).shape) != Dim(1))) {
      fail(call, "loop_c2",
           text("'", call.op->inputs[k].name, "' must be one ", dtype_name(given[k].dtype), "; got ",
                to_string(call.input(k)), "."));
    }
  }
  const Body body = read_body(call, "body");
  const std::vector<Type> made = types_of_body(call, given, carried);
  if (made.size() < carried + kBodyOutputs || made[0].dtype != DType::boolean || elements(made[0].shape) != Dim(1)) {
    fail(call, "loop_c3", text("its body must give one bool, then the ", carried, " values that are carried."));
  }
  const std::vector<Dim>& sizes = call.integers("sizes");
  auto size = sizes.begin();
  const auto next = [&](size_t rank) {
    if (static_cast<int64_t>(rank) > sizes.end() - size)
      fail(call, "loop_c5", "sizes must hold those of every value that is stacked or changes its shape.");
    size += static_cast<int64_t>(rank);
    return Shape(size - static_cast<int64_t>(rank), size);
  };
  std::vector<Type> out;
  for (size_t k = 0; k < carried; ++k) {
    const Type &before = given[kBeforeValues + k], &behind = made[kBodyOutputs + k];
    if (!same_kind(before, behind)) {
      fail(call, "loop_c4",
           text("a carried value must keep its type; got ", to_string(before), " and ", to_string(behind), "."));
    }
    out.push_back(before);
    if (changes(body, k)) out.back().shape = next(before.shape.size());
  }
  const size_t first = kBodyOutputs + carried;
  const std::vector<bool> appended = appended_values(call, made.size() - first);
  for (size_t k = first; k < made.size(); ++k) {
    Shape shape = next(made[k].shape.size());
    if (!appended[k - first]) {
      shape.insert(shape.begin(), call.integer("count"));
    } else if (shape.empty()) {
      fail(call, "loop_c10", text("it appends what is stacked as number ", k - first, ", which has no axis."));
    }
    out.push_back({made[k].dtype, std::move(shape)});
  }
  return out;
}

void meaning(const Evaluation& e) {
  const bool compiled = e.host.compiled && fixed_integer(e.call, "program") >= 0;
  const Body body = compiled ? read_taken(e.call, "body") : read_body(e.call, "body");
  const size_t carried = carried_values(e.call);
  const int64_t trips = e.input(0).values<int64_t>()[0];
  bool going = !e.has(1) || e.input(1).values<bool>()[0];
  std::vector<Tensor> values(kBeforeValues + carried);  // that earlier rounds made
  std::vector<View> given(kBeforeValues);
  for (size_t k = kBeforeValues; k < e.inputs.size(); ++k) given.push_back(e.inputs[k]);
  std::vector<std::vector<Tensor>> rounds(e.call.outputs.size() - carried);  // of every stacked value
  const std::vector<bool> appended = appended_values(e.call, rounds.size());
  const std::unique_ptr<RunningBody> running =
      compiled ? e.host.compiled->open(e.call) : run_by_meanings(e.call, body, e.host);
  int64_t count = 0;
  for (; going && count < trips; ++count) {
    if (count == kMostRounds) fail(e.call, "loop_c6", text("it has more than ", kMostRounds, " rounds. Does it end?"));
    if (e.host.stop) e.host.stop->check();
    given[0] = values[0] = Tensor::scalar(count);
    given[1] = values[1] = Tensor::scalar(going);
    std::vector<Tensor> made = running->run(given);
    going = made[0].values<bool>()[0];
    for (size_t k = 0; k < carried; ++k) {
      View& before = given[kBeforeValues + k];
      Tensor& now = made[kBodyOutputs + k];
      if (!changes(body, k) && !std::ranges::equal(before.shape, now.shape())) {
        fail(e.call, "loop_c4",
             text("a carried value must keep its shape; that of value ", k, " changes in round ", count, "."));
      }
      before = values[kBeforeValues + k] = std::move(now);
    }
    for (size_t k = 0; k < rounds.size(); ++k) {
      const Type& type = e.call.output(carried + k);
      Tensor& now = made[kBodyOutputs + carried + k];
      if (now.dtype() != type.dtype || now.shape().size() + (appended[k] ? 0 : 1) != type.shape.size())
        fail(e.call, "loop_c9", text("its body does not give what stacks says, '", e.call.string("stacks"), "'."));
      // What adds nothing may have any other sizes, as a branch that was not taken.
      if (appended[k] && !rounds[k].empty() && now.shape()[0] == 0) continue;
      if (appended[k] && !rounds[k].empty() && rounds[k][0].shape()[0] == 0) rounds[k].clear();
      rounds[k].push_back(std::move(now));
    }
  }
  std::vector<std::vector<int64_t>> shapes;
  std::vector<int64_t> sizes;
  for (size_t k = 0; k < carried; ++k) {
    const std::span<const int64_t> shape = given[kBeforeValues + k].shape;
    if (changes(body, k)) sizes.insert(sizes.end(), shape.begin(), shape.end());
  }
  for (size_t k = 0; k < rounds.size(); ++k) {
    std::vector<int64_t> shape;
    if (!rounds[k].empty()) {
      shape = rounds[k][0].shape();
    } else {
      const Shape& declared = e.call.output(carried + k).shape;
      for (size_t axis = appended[k] ? 0 : 1; axis < declared.size(); ++axis) {
        shape.push_back(declared[axis].is_static() ? declared[axis].value() : 0);
      }
    }
    if (appended[k]) {
      shape[0] = 0;
      for (const Tensor& round : rounds[k]) shape[0] += round.shape()[0];
    }
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    if (!appended[k]) shape.insert(shape.begin(), count);
    shapes.push_back(std::move(shape));
  }
  define(e, "count", count);
  define(e, "sizes", sizes);
  for (size_t k = 0; k < carried; ++k) {
    const View& value = given[kBeforeValues + k];
    std::byte* const to = e.output(k, {value.shape.begin(), value.shape.end()}).data;
    std::copy_n(value.data, value.elems() * dtype_bytes(value.dtype), to);
  }
  for (size_t k = 0; k < rounds.size(); ++k) {
    std::byte* to = e.output(carried + k, shapes[k]).data;
    for (const Tensor& round : rounds[k]) {
      const size_t same = appended[k] ? 1 : 0;  // the first axis that is
      if (!std::ranges::equal(std::span(round.shape()).subspan(same), std::span(rounds[k][0].shape()).subspan(same))) {
        fail(e.call, "loop_c7", "rounds of a stacked value must have one shape.");
      }
      to = std::copy_n(round.data(), round.bytes(), to);
    }
  }
}

}  // namespace

bool is_loop(const Call& call) {
  static const OpDef& loop = OpTable::global().get("loop");
  return call.op == &loop;
}

size_t carried_values(const Call& loop) {
  const int64_t carried = fixed_integer(loop, "carried");
  const size_t values = std::max(loop.inputs.size(), kBeforeValues) - kBeforeValues;  // absent ones may be left out
  if (carried < 0 || carried > static_cast<int64_t>(values)) {
    fail(loop, "loop_c1", text("carried must be a part of its ", values, " values; got ", carried, "."));
  }
  return static_cast<size_t>(carried);
}

std::vector<bool> appended_values(const Call& loop, size_t stacked) {
  std::vector<bool> out(stacked);
  for (const Dim& number : loop.integers("appended")) {
    if (!number.is_static() || number.value() < 0 || number.value() >= static_cast<int64_t>(stacked)) {
      fail(loop, "loop_c10",
           text("appended must hold numbers of the ", stacked, " values that are stacked; got ",
                to_string(loop.integers("appended")), "."));
    }
    out[static_cast<size_t>(number.value())] = true;
  }
  return out;
}

std::vector<Type> body_inputs(const Call& loop, const Body& body) {
  return taken_types(loop, body, types_of_inputs(loop));
}

OpDef define_loop() {
  return {
      .name = "loop",
      .doc =
          "Calls repeated as long as a condition holds, at most so many times: values that a round hands to the "
          "next, and values of every round stacked along a new first axis.",
      .inputs = {{"trips", "one i64: the most rounds"},
                 {"going", "one bool: whether there is a first round; absent: there is", true},
                 {"values", "those that are carried, then what the body reads besides", true, true}},
      .attrs =
          {{"body", AttrKind::string, std::nullopt,
            "its calls: of the round's number, whether it goes on, and the values; they give whether there is "
            "another round, what is carried, and what is stacked"},
           {"carried", AttrKind::integer, Dim(0), "how many values are carried"},
           found_size("count", "the number of rounds"),
           found_sizes("sizes",
                       "those of every carried value that changes its shape, and of a round of every stacked one, "
                       "in order"),
           {"outer", AttrKind::integers, std::vector<Dim>{}, "sizes of the graph around it, which the body reads"},
           {"stacks", AttrKind::string, std::string(),
            "element type and rank of a round of every stacked value, as f32:2; where it says them, a body that "
            "does not fit the sizes of a run ends only a run that has a round"},
           {"appended", AttrKind::integers, std::vector<Dim>{},
            "numbers of stacked values whose rounds are put behind one another along their own first axis, in place "
            "of a new one; `sizes` then holds the whole's"},
           {"program", AttrKind::integer, Dim(-1),
            "the number of the program that the body was compiled into; -1: its calls run by their meanings"}},
      .outputs = {"carried", "stacked"},
      .traits = static_cast<uint32_t>(Trait::control),
      .infer = infer,
      .meaning = meaning,
      .tolerance = 0,
      .samples = {
          "loop(i64[] {3}, _, f32[2]) {body = \"add 2 2 {} | lt 0 0 {} | logical_not 4 {} | give 5 3 2\", carried = 1, "
          "count = rounds, sizes = [2]}",
          "loop(i64[] {3}, _, f32[n], f32[m]) {body = \"take 2 k | concat 2 3 {axis=0} | expand 0 {shape=[outer0]} | "
          "give 1 4 5\", carried = 1, count = rounds, sizes = [a,b], outer = [m]}",
          "loop(i64[] {0}, _, f32[2]) {body = \"add 2 2 {} | give 1 3\", carried = 1, count = 0, sizes = []}",
          "loop(i64[] {0}, _, f32[n], f32[m]) {body = \"concat 2 3 {axis=0} | give 1 4\", carried = 0, count = rounds, "
          "sizes = [a], stacks = \"f32:1\"}",
          "loop(i64[] {3}, _, f32[2]) {body = \"take 2 u | concat 2 2 {axis=0} | give 1 3 3\", carried = 1, count = c, "
          "sizes = [a,b], appended = [0]}"}};
}

}  // namespace hetnn::ops
