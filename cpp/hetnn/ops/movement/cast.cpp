// cast: the same values in another element type.
#include "hetnn/base/convert.h"
#include "hetnn/base/stored.h"
#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

std::optional<PowerRounding> power_rounding(const std::string& name) {
  if (name == "up") return PowerRounding::up;
  if (name == "down") return PowerRounding::down;
  if (name == "nearest") return PowerRounding::nearest;
  return std::nullopt;
}

std::vector<Type> infer(const Call& call) {
  if (const std::string& rounding = call.string("round_mode"); !power_rounding(rounding)) {
    fail(call, "cast_c1", text("round_mode must be up, down or nearest; got ", rounding, "."));
  }
  return {{call.dtype("to"), call.input(0).shape}};
}

// The elements of a view as those of a stored type.
template <typename V>
void store(const Call& call, const View& x, const Result& y) {
  const bool saturate = call.flag("saturate");
  const PowerRounding rounding = *power_rounding(call.string("round_mode"));
  auto* out = reinterpret_cast<uint8_t*>(y.data);
  for (const V value : values_as<V>(x)) {
    if constexpr (std::is_same_v<V, int64_t>) {
      *out++ = stored_bits(y.dtype, value);
    } else {
      *out++ = stored_bits(y.dtype, value, saturate, rounding);
    }
  }
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  std::vector<float> numbers;
  View from = x;
  if (is_stored(x.dtype)) {
    for (int64_t k = 0; k < x.elems(); ++k) numbers.push_back(stored_value(x.dtype, static_cast<uint8_t>(x.data[k])));
    from = {DType::f32, x.shape, reinterpret_cast<const std::byte*>(numbers.data())};
  }
  if (!is_stored(y.dtype)) {
    ConvertElements(from.dtype, y.dtype)(from.data, y.data, y.elems());
  } else if (!is_float(from.dtype) && !is_stored_float(y.dtype)) {
    store<int64_t>(e.call, from, y);
  } else {
    store<double>(e.call, from, y);
  }
}

}  // namespace

OpDef define_cast() {
  return {.name = "cast",
          .doc = "The same values in another element type: reals are cut towards zero, everything but 0 is true.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"to", AttrKind::dtype, std::nullopt, "the element type of y"},
                    {"saturate", AttrKind::boolean, true,
                     "whether what is too large for a float of 8 bits becomes its greatest, else inf or NaN"},
                    {"round_mode", AttrKind::string, std::string("up"), "of f8e8m0: up, down or nearest"}},
          .traits = Trait::elementwise | Trait::conversion,
          .torch = {},
          .onnx = {{"Cast", 6, "x to saturate round_mode"}},
          .infer = infer,
          .meaning = meaning,
          .constraints = {},
          .tolerance = 0,
          .samples = {"cast(f32[2,3]) {to = i64}", "cast(bool[n]) {to = f32}", "cast(i32[4]) {to = bool}",
                      "cast(f32[2,3,4,5]) {to = f16}", "cast(f32[3,5]) {to = bf16}", "cast(f32[3,5]) {to = f8e4m3fn}",
                      "cast(u16[4]) {to = u64}"}};
}

}  // namespace hetnn::ops
