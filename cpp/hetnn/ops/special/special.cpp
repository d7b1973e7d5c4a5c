// special: functions of one real that few models have, by name.
#include <cmath>

#include "hetnn/ops/nest.h"
#include "hetnn/ops/special/functions.h"

namespace hetnn::ops {
namespace {

struct Row {
  std::string_view name, torch;
  double (*function)(double);
  float (*single)(float) = nullptr;
};

constexpr Row kRows[] = {
    {"lgamma", "aten.lgamma.default", special::lgamma, special::lgamma},
    {"digamma", "aten.digamma.default", special::digamma, special::digamma},
    {"erfinv", "aten.erfinv.default", special::erfinv, special::erfinv},
    {"erfcx", "aten.special_erfcx.default", special::erfcx, special::erfcx},
    {"ndtri", "aten.special_ndtri.default", special::ndtri, special::ndtri},
    {"airy_ai", "aten.special_airy_ai.default", special::airy_ai},
    {"bessel_j0", "aten.special_bessel_j0.default", special::bessel_j0},
    {"bessel_j1", "aten.special_bessel_j1.default", special::bessel_j1},
    {"bessel_y0", "aten.special_bessel_y0.default", special::bessel_y0},
    {"bessel_y1", "aten.special_bessel_y1.default", special::bessel_y1},
    {"i0", "aten.i0.default", special::modified_bessel_i0, special::modified_bessel_i0},
    {"i1", "aten.special_i1.default", special::modified_bessel_i1, special::modified_bessel_i1},
    {"i0e", "aten.special_i0e.default", special::scaled_modified_bessel_i0, special::scaled_modified_bessel_i0},
    {"i1e", "aten.special_i1e.default", special::scaled_modified_bessel_i1, special::scaled_modified_bessel_i1},
    {"modified_bessel_i0", "aten.special_modified_bessel_i0.default", special::modified_bessel_i0,
     special::modified_bessel_i0},
    {"modified_bessel_i1", "aten.special_modified_bessel_i1.default", special::modified_bessel_i1,
     special::modified_bessel_i1},
    {"modified_bessel_k0", "aten.special_modified_bessel_k0.default", special::modified_bessel_k0},
    {"modified_bessel_k1", "aten.special_modified_bessel_k1.default", special::modified_bessel_k1},
    {"scaled_modified_bessel_k0", "aten.special_scaled_modified_bessel_k0.default", special::scaled_modified_bessel_k0},
    {"scaled_modified_bessel_k1", "aten.special_scaled_modified_bessel_k1.default", special::scaled_modified_bessel_k1},
    {"spherical_bessel_j0", "aten.special_spherical_bessel_j0.default", special::spherical_bessel_j0},
};

const Row& row_of(const Call& call) { return special::row_of<Row>(call, kRows, "special_c2"); }

std::vector<Type> infer(const Call& call) {
  row_of(call);
  if (!is_real(call.input(0)))
    fail(call, "special_c1", text("its input must be real; got ", to_string(call.input(0)), ". Cast it."));
  return same_as_input(call);
}

void meaning(const Evaluation& e) {
  const Row& row = row_of(e.call);
  map_reals<1>(e, [f = special::Unary{row.function, row.single}](auto x) { return f.of(x); });
}

// What stands in the table lives as long as the process.
std::vector<TorchName> names() {
  static const std::vector<std::string> arguments = [] {
    std::vector<std::string> out;
    for (const Row& row : kRows) out.push_back("x function=" + std::string(row.name));
    return out;
  }();
  std::vector<TorchName> out;
  for (size_t k = 0; k < std::size(kRows); ++k) out.push_back({kRows[k].torch, arguments[k]});
  return out;
}

}  // namespace

std::optional<special::Unary> special::unary_named(std::string_view name) {
  const auto* at = std::ranges::find(kRows, name, &Row::name);
  if (at == std::end(kRows)) return std::nullopt;
  return Unary{at->function, at->single};
}

OpDef define_special() {
  return {
      .name = "special",
      .doc =
          "A function of every element, by name, computed in double: lgamma, digamma, erfinv, erfcx, ndtri, airy_ai, "
          "bessel_j0, bessel_j1, bessel_y0, bessel_y1, i0, i1, i0e, i1e, modified_bessel_{i0,i1,k0,k1}, "
          "scaled_modified_bessel_{k0,k1}, spherical_bessel_j0.",
      .inputs = {{"x", "any shape"}},
      .attrs = {{"function", AttrKind::string, std::nullopt, "its name"}},
      .traits = static_cast<uint32_t>(Trait::elementwise),
      .torch = names(),
      .infer = infer,
      .meaning = meaning,
      .tolerance = 1e-6,
      .samples = {"special(f32[2,3,5]) {function = lgamma}", "special(f32[n,4]) {function = erfinv}",
                  "special(f32[2,3]) {function = bessel_j0}"}};
}

}  // namespace hetnn::ops
