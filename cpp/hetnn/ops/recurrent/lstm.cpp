// lstm: a layer with long short-term memory over a sequence of any length.
#include <algorithm>

#include "hetnn/ops/recurrent/recurrent.h"

namespace hetnn::ops {
namespace {

constexpr int kGates = 4;

void meaning(const Evaluation& e) {
  visit_wide_reals(e.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    const View& x = e.input(0);
    const int64_t batch = x.shape[1], units = e.input(1).shape[1];
    const T* given = x.values<T>().data();
    T* cell = e.output(2).template values<T>();
    std::ranges::copy(e.input(3).values<T>(), cell);
    run_steps<T>(e, kGates, [&](const T* sums, int64_t t, int64_t b, int64_t j, T) {
      const T* own = given + (t * batch + b) * kGates * units + j;
      const auto gate = [&](int64_t g) { return own[g * units] + sums[g]; };
      T& kept = cell[b * units + j];
      kept = sigmoid(gate(2)) * kept + sigmoid(gate(0)) * std::tanh(gate(3));
      return sigmoid(gate(1)) * std::tanh(kept);
    });
  });
}

}  // namespace

OpDef define_lstm() {
  return {
      .name = "lstm",
      .doc =
          "Long short-term memory: of every step i, o, f, g = x[t] + weight h, c = sigmoid(f) c + sigmoid(i) tanh(g) "
          "and h = sigmoid(o) tanh(c).",
      .inputs = {{"x", "[T,B,4H]: what the inputs give the gates i, o, f and g, with all biases"},
                 {"weight", "[4H,H], of the gates in that order"},
                 {"h", "[B,H]"},
                 {"c", "[B,H]"}},
      .attrs = {{"reverse", AttrKind::boolean, false, "whether the last step comes first"}},
      .outputs = {"y", "last_h", "last_c"},
      .traits = static_cast<uint32_t>(Trait::wide),
      .onnx = {"LSTM"},
      .infer = [](const Call& call) { return infer_recurrent(call, kGates, 2); },
      .meaning = meaning,
      .work = recurrent_work,
      .tolerance = 1e-5,
      .samples = {"lstm(f32[n,2,12], f32[12,3], f32[2,3], f32[2,3])",
                  "lstm(f32[5,1,36], f32[36,9], f32[1,9], f32[1,9]) {reverse = true}"}};
}

}  // namespace hetnn::ops
