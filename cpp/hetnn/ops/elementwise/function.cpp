// Elementwise operators from their rows: the formulas for one value of any type, and loops over them.
#include "hetnn/ops/elementwise/function.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "hetnn/ops/elementwise/formula.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

#define HETNN_NAMES(...) \
  { __VA_ARGS__ }
constexpr FunctionDef kFunctions[] = {
#define HETNN_FUNCTION(name, operands, constants, cost, domain, tolerance, def, ...) \
  {#name, operands, HETNN_NAMES constants, Cost::cost, Domain::domain, tolerance},
#include "hetnn/ops/elementwise/formulas.inc"
};
#undef HETNN_NAMES

// The attributes c0 and c1. Of integers they are bounds: the least integer that c0 admits, the greatest that c1 does.
class Constants {
 public:
  Constants(const Call& call, const FunctionDef& def) {
    for (int k = 0; k < def.constant_count(); ++k) reals_[k] = call.real(def.constants[static_cast<size_t>(k)]);
    visit_dtype(call.input(0).dtype, [&](auto zero) {
      using T = decltype(zero);
      using Limits = std::numeric_limits<std::conditional_t<std::is_integral_v<T> && sizeof(T) < 8, T, int64_t>>;
      integers_[0] = std::clamp<int64_t>(saturated(std::ceil(reals_[0])), Limits::min(), Limits::max());
      integers_[1] = std::clamp<int64_t>(saturated(std::floor(reals_[1])), Limits::min(), Limits::max());
    });
  }

  template <typename V>
  V at(int k) const {
    if constexpr (std::is_floating_point_v<V>) {
      return static_cast<V>(reals_[k]);
    } else if constexpr (std::is_same_v<V, uint64_t>) {
      const double whole = k == 0 ? std::ceil(reals_[0]) : std::floor(reals_[1]);
      if (!(whole > 0)) return 0;
      return whole < 0x1p64 ? static_cast<V>(whole) : std::numeric_limits<V>::max();
    } else {
      return static_cast<V>(integers_[k]);
    }
  }

 private:
  static int64_t saturated(double whole) {
    constexpr double kLimit = 9223372036854775808.0;
    return whole >= kLimit ? std::numeric_limits<int64_t>::max() : convert<int64_t>(whole);
  }

  double reals_[2] = {};
  int64_t integers_[2] = {};
};

template <size_t kOperands, Domain kDomain, typename F>
void map(const Evaluation& e, const Constants& constants, F formula) {
  const auto f = [constants, formula]<typename V>(V x, auto... y) {
    const V operands[] = {x, y...};
    return formula(x, operands[kOperands - 1], constants.template at<V>(0), constants.template at<V>(1));
  };
  if constexpr (kDomain == Domain::reals) {
    map_reals<kOperands>(e, f);
  } else if constexpr (kOperands == 1) {
    map_elements<1>(e, f);
  } else {
    try {
      map_elements<2>(e, f);
    } catch (const vocabulary::DivisionByZero&) {
      fail(e.call, text(e.call.op->name, "_c3"),
           "the divisor holds a 0, by which integers cannot be divided. Keep zeros out of it, or cast to a real type.");
    }
  }
}

using Meaning = void (*)(const Evaluation&);
constexpr Meaning kMeanings[] = {
#define HETNN_FUNCTION(name, operands, constants, cost, domain, ...)                          \
  [](const Evaluation& e) {                                                                   \
    map<operands, Domain::domain>(                                                            \
        e, Constants(e.call, function_def(Function::name)),                                   \
        []<typename V>(V x, V y, V c0, V c1) { return formula::Of<V>::name(x, y, c0, c1); }); \
  },
#include "hetnn/ops/elementwise/formulas.inc"
};

// An operator that computes numbers of its own kind: its row but for its formula.
struct OtherDef {
  std::string_view name;
  int operands;
  Meaning meaning;
};

constexpr OtherDef kPredicates[] = {
#define HETNN_PREDICATE(name, operands, ...)                    \
  {#name, operands, [](const Evaluation& e) {                   \
     map_elements<operands>(e, []<typename V>(V x, auto... y) { \
       const V all[] = {x, y...};                               \
       return formula::Of<V>::name(x, all[operands - 1]);       \
     });                                                        \
   }},
#include "hetnn/ops/elementwise/formulas.inc"
};

constexpr OtherDef kBits[] = {
#define HETNN_BITS(name, operands, ...)                         \
  {#name, operands, [](const Evaluation& e) {                   \
     map_integers<operands>(e, []<typename V>(V x, auto... y) { \
       const V all[] = {x, y...};                               \
       return formula::Of<V>::name(x, all[operands - 1]);       \
     });                                                        \
   }},
#include "hetnn/ops/elementwise/formulas.inc"
};

template <typename Name>
std::optional<Name> from_name(std::span<const OtherDef> rows, std::string_view name) {
  const auto at = std::ranges::find(rows, name, &OtherDef::name);
  if (at == rows.end()) return std::nullopt;
  return static_cast<Name>(at - rows.begin());
}

}  // namespace

std::optional<Predicate> predicate_from_name(std::string_view name) { return from_name<Predicate>(kPredicates, name); }
int operands_of(Predicate predicate) { return kPredicates[static_cast<size_t>(predicate)].operands; }
std::optional<Bits> bits_from_name(std::string_view name) { return from_name<Bits>(kBits, name); }

std::span<const FunctionDef> functions() { return kFunctions; }

const FunctionDef& function_def(Function function) { return kFunctions[static_cast<size_t>(function)]; }

bool is_special(Function function) {
  static constexpr bool kSpecial[] = {
#define HETNN_FUNCTION(...) false,
#define HETNN_SPECIAL(...) true,
#include "hetnn/ops/elementwise/formulas.inc"
  };
  return kSpecial[static_cast<size_t>(function)];
}

std::optional<Function> function_from_name(std::string_view name) {
  const auto* at = std::ranges::find(kFunctions, name, &FunctionDef::name);
  if (at == std::end(kFunctions)) return std::nullopt;
  return static_cast<Function>(at - std::begin(kFunctions));
}

std::optional<Function> called_function(const Call& call) {
  const auto form = call.attrs.find("approximate");
  if (form == call.attrs.end() || call.string("approximate") == "none") return function_from_name(call.op->name);
  return function_from_name(text(call.op->name, "_", call.string("approximate")));
}

namespace {

void check_real(const Call& call) {
  if (is_real(call.input(0))) return;
  fail(call, text(call.op->name, "_c1"),
       text("its input must be real; got ", dtype_name(call.input(0).dtype), ". Cast it."));
}

std::vector<Type> broadcast_real_inputs(const Call& call) {
  check_real(call);
  return broadcast_inputs(call);
}

}  // namespace

std::vector<Type> same_as_real_input(const Call& call) {
  check_real(call);
  return same_as_input(call);
}

void evaluate(Function function, const Evaluation& e) { kMeanings[static_cast<size_t>(function)](e); }

OpDef elementwise(Function function, OpDef def) {
  const FunctionDef& row = function_def(function);
  const bool unary = row.operands == 1;
  def.name = row.name;
  if (def.inputs.empty() && unary) def.inputs = {{"x", "any shape"}};
  if (def.inputs.empty()) def.inputs = {{"a", "any shape"}, {"b", "broadcasts with a"}};
  def.traits |= static_cast<uint32_t>(Trait::elementwise);
  if (!unary) def.traits |= static_cast<uint32_t>(Trait::compute);
  if (is_special(function)) def.traits |= static_cast<uint32_t>(Trait::special);
  const bool real = row.domain == Domain::reals;
  if (!def.infer) {
    if (unary) {
      def.infer = real ? same_as_real_input : same_as_input;
    } else {
      def.infer = real ? broadcast_real_inputs : broadcast_inputs;
    }
  }
  if (!def.meaning) def.meaning = kMeanings[static_cast<size_t>(function)];
  def.tolerance = row.tolerance;
  return def;
}

namespace {

OpDef of_row(const OtherDef& row, OpDef def, std::string_view shape) {
  def.name = row.name;
  def.inputs = row.operands == 1 ? std::vector<InputDef>{{"x", shape}}
                                 : std::vector<InputDef>{{"a", shape}, {"b", "broadcasts with a"}};
  def.traits |= static_cast<uint32_t>(Trait::elementwise);
  def.meaning = row.meaning;
  def.tolerance = 0;
  return def;
}

std::vector<Type> integer_inputs(const Call& call) {
  if (is_real(call.input(0))) {
    fail(call, text(call.op->name, "_c3"),
         text("its inputs must be integers or bool; got ", to_string(call.input(0)), ". Cast them."));
  }
  return broadcast_inputs(call);
}

}  // namespace

OpDef elementwise(Predicate predicate, OpDef def) {
  def.infer = compare_inputs;
  return of_row(kPredicates[static_cast<size_t>(predicate)], std::move(def), "any shape");
}

OpDef elementwise(Bits bits, OpDef def) {
  def.infer = integer_inputs;
  return of_row(kBits[static_cast<size_t>(bits)], std::move(def), "integers or bool, any shape");
}

}  // namespace hetnn::ops
