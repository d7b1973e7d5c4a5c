// draw: numbers drawn from a generator whose state is a value.
#include <algorithm>
#include <array>

#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

// Mersenne Twister (Matsumoto and Nishimura, 1998): 624 words, and how many of them have been used.
constexpr size_t kWords = 624, kShift = 397;

std::vector<Type> infer(const Call& call) {
  const Type& state = call.input(0);
  if (state.dtype != DType::u32 || state.shape != Shape{static_cast<int64_t>(kWords + 1)}) {
    fail(call, "draw_c1", text("state must be u32[", kWords + 1, "]; got ", to_string(state), "."));
  }
  return {{DType::f64, call.integers("shape")}, state};
}

void twist(std::array<uint32_t, kWords>& words) {
  for (size_t k = 0; k < kWords; ++k) {
    const uint32_t joined = (words[k] & 0x80000000U) | (words[(k + 1) % kWords] & 0x7fffffffU);
    words[k] = words[(k + kShift) % kWords] ^ (joined >> 1U) ^ ((joined & 1U) ? 0x9908b0dfU : 0U);
  }
}

void meaning(const Evaluation& e) {
  const auto state = e.input(0).values<uint32_t>();
  std::array<uint32_t, kWords> words;
  std::copy_n(state.begin(), kWords, words.begin());
  size_t used = std::min<size_t>(state[kWords], kWords);
  const auto next = [&] {
    if (used == kWords) {
      twist(words);
      used = 0;
    }
    uint32_t y = words[used++];
    y ^= y >> 11U;
    y ^= y << 7U & 0x9d2c5680U;
    y ^= y << 15U & 0xefc60000U;
    return y ^ y >> 18U;
  };
  const Result y = e.output(0);
  double* to = y.values<double>();
  for (int64_t k = y.elems(); k > 0; --k) {
    const uint32_t high = next() >> 5U, low = next() >> 6U;
    *to++ = (high * 67108864.0 + low) / 9007199254740992.0;
  }
  uint32_t* kept = std::copy_n(words.begin(), kWords, e.output(1).values<uint32_t>());
  *kept = static_cast<uint32_t>(used);
}

}  // namespace

OpDef define_draw() {
  return {.name = "draw",
          .doc = "Reals drawn evenly from [0, 1) with 53 bits each by a Mersenne Twister, and its state behind them.",
          .inputs = {{"state", "u32[625]: its words, and how many of them are used; 624 or more: all"}},
          .attrs = {{"shape", AttrKind::integers, std::nullopt, "how many are drawn"}},
          .outputs = {"y", "next"},
          .onnx = {{"RandomUniform"},
                   {"RandomUniformLike"},
                   {"RandomNormal"},
                   {"RandomNormalLike"},
                   {"Bernoulli"},
                   {"Multinomial"}},
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"draw(u32[625]) {shape = [2,3]}"}};
}

}  // namespace hetnn::ops
