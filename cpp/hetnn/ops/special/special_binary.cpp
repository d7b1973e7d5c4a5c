// special_binary: functions of two reals that few models have, by name.
#include <cmath>

#include "hetnn/ops/nest.h"
#include "hetnn/ops/special/functions.h"

namespace hetnn::ops {
namespace {

struct Row {
  std::string_view name, torch;
  double (*function)(double, double);
  std::string_view scalars[2] = {"x_scalar", "n_scalar"};  // overloads with a number for a or b
  float (*single)(float, float) = nullptr;  // where results of f32 show the rounding of every step, as in torch
};

constexpr Row kRows[] = {
    {"zeta", "special_zeta", special::zeta, {"self_scalar", "other_scalar"}},
    {"igamma", "igamma", special::igamma, {}},
    {"igammac", "igammac", special::igammac, {}},
    {"polygamma", "", special::polygamma, {}, special::polygamma_f32},
    {"chebyshev_polynomial_t", "special_chebyshev_polynomial_t", special::chebyshev_t},
    {"chebyshev_polynomial_u", "special_chebyshev_polynomial_u", special::chebyshev_u},
    {"chebyshev_polynomial_v", "special_chebyshev_polynomial_v", special::chebyshev_v},
    {"chebyshev_polynomial_w", "special_chebyshev_polynomial_w", special::chebyshev_w},
    {"shifted_chebyshev_polynomial_t", "special_shifted_chebyshev_polynomial_t",
     [](double x, double n) { return special::chebyshev_t(2 * x - 1, n); }},
    {"shifted_chebyshev_polynomial_u", "special_shifted_chebyshev_polynomial_u",
     [](double x, double n) { return special::chebyshev_u(2 * x - 1, n); }},
    {"shifted_chebyshev_polynomial_v", "special_shifted_chebyshev_polynomial_v",
     [](double x, double n) { return special::chebyshev_v(2 * x - 1, n); }},
    {"shifted_chebyshev_polynomial_w", "special_shifted_chebyshev_polynomial_w",
     [](double x, double n) { return special::chebyshev_w(2 * x - 1, n); }},
    {"hermite_polynomial_h", "special_hermite_polynomial_h", special::hermite_h},
    {"hermite_polynomial_he",
     "special_hermite_polynomial_he",
     special::hermite_he,
     {"x_scalar", "n_scalar"},
     special::hermite_he_f32},
    {"laguerre_polynomial_l", "special_laguerre_polynomial_l", special::laguerre_l},
    {"legendre_polynomial_p", "special_legendre_polynomial_p", special::legendre_p},
};

const Row& row_of(const Call& call) { return special::row_of<Row>(call, kRows, "special_binary_c3"); }

std::vector<Type> infer(const Call& call) {
  row_of(call);
  if (!is_real(call.input(0)))
    fail(call, "special_binary_c4", text("its inputs must be real; got ", to_string(call.input(0)), ". Cast them."));
  return broadcast_inputs(call);
}

void meaning(const Evaluation& e) {
  const Row& row = row_of(e.call);
  map_reals<2>(e, [f = special::Binary{row.function, row.single}](auto a, auto b) { return f.of(a, b); });
}

// What stands in the table lives as long as the process.
std::vector<TorchName> names() {
  static const std::vector<std::string> strings = [] {
    std::vector<std::string> out;
    for (const Row& row : kRows) {
      if (row.torch.empty()) continue;
      out.push_back("a b function=" + std::string(row.name));
      const std::string overload = "aten." + std::string(row.torch) + ".";
      out.push_back(overload + "default");
      for (const std::string_view scalar : row.scalars) {
        if (!scalar.empty()) out.push_back(overload + std::string(scalar));
      }
    }
    return out;
  }();
  std::vector<TorchName> out;
  std::string_view arguments;
  for (const std::string& entry : strings) {
    if (entry.starts_with("a b ")) {
      arguments = entry;
    } else {
      out.push_back({entry, arguments});
    }
  }
  return out;
}

}  // namespace

std::optional<special::Binary> special::binary_named(std::string_view name) {
  const auto* at = std::ranges::find(kRows, name, &Row::name);
  if (at == std::end(kRows)) return std::nullopt;
  return Binary{at->function, at->single};
}

OpDef define_special_binary() {
  return {.name = "special_binary",
          .doc =
              "A function of every pair of elements, by name, computed in "
              "double: zeta(s, q), igamma(a, x), igammac(a, "
              "x), polygamma(n, x), and the polynomials of x of degree n "
              "chebyshev_polynomial_{t,u,v,w}, "
              "shifted_chebyshev_polynomial_{t,u,v,w}, "
              "hermite_polynomial_{h,he}, laguerre_polynomial_l, "
              "legendre_polynomial_p.",
          .inputs = {{"a", "any shape"}, {"b", "broadcasts with a"}},
          .attrs = {{"function", AttrKind::string, std::nullopt, "its name"}},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = names(),
          .infer = infer,
          .meaning = meaning,
          .tolerance = 1e-6,
          .samples = {"special_binary(f32[2,3], f32[1] {3}) {function = legendre_polynomial_p}",
                      "special_binary(f32[n,1], f32[4]) {function = chebyshev_polynomial_t}",
                      "special_binary(f32[1] {1}, f32[4]) {function = polygamma}"}};
}

}  // namespace hetnn::ops
