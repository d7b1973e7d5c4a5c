// gru: a layer of gated recurrent units over a sequence of any length.
#include "hetnn/ops/recurrent/recurrent.h"

namespace hetnn::ops {
namespace {

constexpr int kGates = 3;

void meaning(const Evaluation& e) {
  visit_wide_reals(e.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    const View& x = e.input(0);
    const int64_t batch = x.shape[1], units = e.input(1).shape[1];
    const T* given = x.values<T>().data();
    const T* bias = e.has(3) ? e.input(3).values<T>().data() : nullptr;
    run_steps<T>(e, kGates, [&](const T* sums, int64_t t, int64_t b, int64_t j, T before) {
      const T* own = given + (t * batch + b) * kGates * units + j;
      const T update = sigmoid(own[0] + sums[0]), reset = sigmoid(own[units] + sums[1]);
      const T fresh = std::tanh(own[2 * units] + reset * (bias ? sums[2] + bias[j] : sums[2]));
      return fresh + update * (before - fresh);
    });
  });
}

}  // namespace

OpDef define_gru() {
  return {.name = "gru",
          .doc =
              "Gated recurrent units: of every step z, r = sigmoid(x[t] + weight h), n = tanh(x[t] + r (weight h + "
              "bias)) and h = n + z (h - n).",
          .inputs = {{"x", "[T,B,3H]: what the inputs give z, r and n, with all other biases"},
                     {"weight", "[3H,H], of z, r and n"},
                     {"h", "[B,H]"},
                     {"bias", "[H], of the product of n", true}},
          .attrs = {{"reverse", AttrKind::boolean, false, "whether the last step comes first"}},
          .outputs = {"y", "last_h"},
          .traits = static_cast<uint32_t>(Trait::wide),
          .onnx = {"GRU"},
          .infer = [](const Call& call) { return infer_recurrent(call, kGates, 1); },
          .meaning = meaning,
          .work = recurrent_work,
          .tolerance = 1e-5,
          .samples = {"gru(f32[n,2,9], f32[9,3], f32[2,3], f32[3])",
                      "gru(f32[5,1,27], f32[27,9], f32[1,9], _) {reverse = true}"}};
}

}  // namespace hetnn::ops
