// group_norm: normalization over groups of channels.
#include <cmath>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  const int64_t groups = fixed_integer(call, "groups");
  if (x.rank() < 2 || !is_real(x) || groups < 1 || mod(x.shape[1], groups) != Dim(0)) {
    fail(
        call, "group_norm_c1",
        text("x must be real, [N,C,...] with C a multiple of groups; got ", to_string(x), " and groups ", groups, "."));
  }
  check_parameters(call, 1, 3, {x.shape[1]}, "group_norm_c2");
  return {x};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const int64_t channels = x.shape[1], of_group = channels / fixed_integer(e.call, "groups");
  if (x.elems() == 0) return;
  const int64_t pixels = x.elems() / (x.shape[0] * channels), count = of_group * pixels;
  const double eps = e.call.real("eps");
  visit_wide_reals(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto entry = [&](size_t input, int64_t channel, double absent) {
      return e.has(input) ? static_cast<double>(e.input(input).values<T>()[static_cast<size_t>(channel)]) : absent;
    };
    const T* from = x.values<T>().data();
    T* to = y.values<T>();
    for (int64_t first = 0; first < x.elems(); first += count) {
      double mean = 0, square = 0;
      for (int64_t k = 0; k < count; ++k) mean += static_cast<double>(from[first + k]) / static_cast<double>(count);
      for (int64_t k = 0; k < count; ++k) {
        const double away = static_cast<double>(from[first + k]) - mean;
        square += away * away / static_cast<double>(count);
      }
      const double deviation = std::sqrt(square + eps);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t channel = (first + k) / pixels % channels;
        const double normal = (static_cast<double>(from[first + k]) - mean) / deviation;
        // Absent: what changes nothing, the sign of zero included.
        to[first + k] = static_cast<T>(normal * entry(1, channel, 1) + entry(2, channel, -0.0));
      }
    }
  });
}

}  // namespace

OpDef define_group_norm() {
  return {.name = "group_norm",
          .doc =
              "Normalization of every image over groups of channels: y = (x - mean) / sqrt(variance + eps) * weight + "
              "bias; as many groups as channels is instance norm.",
          .inputs = {{"x", "[N,C,...]"}, {"weight", "[C]", true}, {"bias", "[C]", true}},
          .attrs = {{"groups", AttrKind::integer, std::nullopt, "how many groups the channels are in"},
                    {"eps", AttrKind::real, 1e-5, "added to the variance"}},
          .traits = static_cast<uint32_t>(Trait::wide),
          .infer = infer,
          .meaning = meaning,
          .work = [](const Call& call) { return Work{.macs = 0, .flops = elements(call.output().shape) * 6}; },
          .keeps_batch = keeps_batch_of_first,
          .tolerance = 1e-5,
          .samples = {"group_norm(f32[2,6,3,4], f32[6], f32[6]) {groups = 3}",
                      "group_norm(f32[2,4,h], _, _) {groups = 4}", "group_norm(f32[3,4], f32[4], _) {groups = 2}"}};
}

}  // namespace hetnn::ops
