// GELU written out, in each of its orders and with each constant wrong in turn.
#include <deque>
#include <string>

#include "rule_cases.h"

namespace hetnn::passes {
namespace {

enum class Half : uint8_t { first, last, inside };

struct Spelling {
  bool tanh;
  Half half;
  std::string type = "f32[2,3]";    // of x
  std::string number = "f32[]";     // of the constants
  std::string result = "f32[2,3]";  // of x combined with them
  std::string one_half = "0.5";
  std::string cubic = "0.044715";
  bool divides = true;     // x / sqrt 2, not x (1 / sqrt 2)
  std::string scale = {};  // in place of sqrt 2, its inverse or sqrt(2/pi)
  bool quantized = false;  // i8 of scale 0.5
};

std::string constant(const std::string& name, const std::string& value, const Spelling& s) {
  const std::string attrs = s.quantized ? "}, q_scale = [0.5]} : i8{0.5}[]\n" : "}} : " + s.number + "\n";
  return "  %" + name + " = constant() {value = " + s.number + " {" + value + attrs;
}

std::string graph_of(const Spelling& s) {
  std::string out = "graph @g {stage = imported} (%x: " + s.type + ") -> (%y) {\n" + constant("h", s.one_half, s) +
                    constant("o", "1", s);
  const auto node = [&](const std::string& line) {
    out += "  " + line + (s.quantized ? " {q_scale = [0.5]}" : "") + " : " + s.result + "\n";
  };
  if (s.tanh) {
    out +=
        constant("s", s.scale.empty() ? "0.797884583" : s.scale, s) + constant("a", s.cubic, s) + constant("t", "3", s);
    node("%p = pow(%x, %t)");
    node("%k = mul(%a, %p)");
    node("%i = add(%x, %k)");
    node("%q = mul(%s, %i)");
    node("%e = tanh(%q)");
  } else {
    out += constant("s", !s.scale.empty() ? s.scale : s.divides ? "1.41421354" : "0.707106769", s);
    node(s.divides ? "%q = div(%x, %s)" : "%q = mul(%s, %x)");
    node("%e = erf(%q)");
  }
  node("%f = add(%o, %e)");
  switch (s.half) {
    case Half::first:
      node("%m = mul(%h, %x)");
      node("%y = mul(%m, %f)");
      break;
    case Half::last:
      node("%m = mul(%x, %f)");
      node("%y = mul(%m, %h)");
      break;
    case Half::inside:
      node("%m = mul(%f, %h)");
      node("%y = mul(%m, %x)");
      break;
  }
  return out + "}";
}

struct Order {
  bool tanh;
  Half half;
  std::string_view rule;
};
constexpr Order kOrders[] = {
    {false, Half::first, "gelu_from_erf_half_first"},   {false, Half::last, "gelu_from_erf_half_last"},
    {false, Half::inside, "gelu_from_erf_half_inside"}, {true, Half::first, "gelu_from_tanh_half_first"},
    {true, Half::last, "gelu_from_tanh_half_last"},     {true, Half::inside, "gelu_from_tanh_half_inside"},
};

}  // namespace

const Cases& gelu_cases() {
  static std::deque<std::string> texts;  // what the cases' views point to
  static const Cases cases = [] {
    Cases made;
    const auto text_of = [](const Spelling& spelling) -> std::string_view {
      return texts.emplace_back(graph_of(spelling));
    };
    for (const auto& [tanh, half, rule] : kOrders) {
      made.fires.push_back({rule, text_of({.tanh = tanh, .half = half}), "gelu", 2e-6, Values::edge});
      const Spelling integers = {tanh, half, "i8{0.5}[2]", "i8[]", "i8{0.5}[2]", "2", "1", true, "3", true};
      made.refuses.push_back({rule, "the values are real", text_of(integers)});
      const Spelling longer = {tanh, half, "f32[3]", "f32[1,1]", "f32[1,3]"};
      made.refuses.push_back({rule, "the result has the type of x", text_of(longer)});
      const std::string_view constants = tanh ? "the constants are 1/2, 1, sqrt(2/pi), 0.044715 and 3"
                                              : "the constants are 1/2, 1 and sqrt 2 (or its inverse, as a factor)";
      made.refuses.push_back({rule, constants, text_of({.tanh = tanh, .half = half, .one_half = "0.25"})});
      if (tanh) {
        made.refuses.push_back({rule, constants, text_of({.tanh = tanh, .half = half, .cubic = "0.05"})});
      } else {
        const Spelling times = {.tanh = tanh, .half = half, .divides = false};
        made.fires.push_back({rule, text_of(times), "gelu", 2e-6, Values::edge});
      }
    }
    return made;
  }();
  return cases;
}

}  // namespace hetnn::passes
