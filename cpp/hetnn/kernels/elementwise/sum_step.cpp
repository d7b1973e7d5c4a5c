// Sums behind other kernels.
#include "hetnn/kernels/elementwise/sum_step.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "hetnn/base/error.h"
#include "hetnn/kernels/elementwise/elementwise.h"
#include "hetnn/kernels/elementwise/nary.h"
#include "hetnn/kernels/elementwise/nary_narrow_ops.h"
#include "hetnn/kernels/quant/quant.h"

namespace hetnn::kernels {
namespace {

// Columns that are brought together at a time of operands that do not run evenly.
constexpr int64_t kSpread = 256;

}  // namespace

std::optional<DType> conversion_of(const Step& step) {
  if (step.function == kToF16) return DType::f16;
  if (step.function == kToBf16) return DType::bf16;
  if (step.function == kToF32) return DType::f32;
  return std::nullopt;
}

bool is_mixed(const Step& step) {
  return step.main != 0 || step.dtype == DType::boolean || step.function == kChoice ||
         ops::predicate_from_name(step.function);
}

DType operand_type(const Step& step, size_t k) {
  // The condition of a choice comes first.
  if (step.function == kChoice && step.main != 0 && k == 0) return DType::boolean;
  if (is_mixed(step)) return step.dtype;
  if (step.function == kSumOfI8) return DType::i8;
  return step.function == kSumOfF16 ? DType::f16 : step.function == kSumOfBf16 ? DType::bf16 : DType::f32;
}

DType running_type(const Step& step, DType before) {
  if (step.function == kChoice) return step.main == 0 ? DType::boolean : step.dtype;
  return conversion_of(step) ? before : operand_type(step);
}

DType result_type(const Step& step, DType before) {
  if (const std::optional<DType> to = conversion_of(step)) return *to;
  if (step.function == kChoice) return step.dtype;
  return ops::predicate_from_name(step.function) ? DType::boolean : before;
}

DType result_type(std::span<const Step> steps, DType before) {
  for (const Step& step : steps) before = result_type(step, before);
  return before;
}

bool is_sum(const Step& step) {
  return step.function == kSum || step.function == kOrderedSum || is_narrow_float(operand_type(step));
}

int operand_count(const Step& step) {
  if (is_sum(step)) return static_cast<int>(step.values.size()) - 1;
  if (step.function == kChoice) return 2;
  return step.input >= 0 ? 1 : 0;
}

std::optional<Step> sum_of(const ops::Call& call, size_t main) {
  if (!is_made_by(make_nary, call) || call.string("op") != "add") return std::nullopt;
  const bool ordered = call.flag("deterministic");
  // Of two values either may come first, since their sum is the same.
  if (ordered && main > 1) return std::nullopt;
  std::vector<double> values = call.reals("coefficients");
  values.resize(call.inputs.size(), values.empty() ? 1.0 : 0.0);
  std::rotate(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(main),
              values.begin() + static_cast<std::ptrdiff_t>(main) + 1);
  const DType dtype = call.input(main).dtype;
  if (dtype != DType::f32 && !(is_narrow_float(dtype) && ordered)) return std::nullopt;
  const std::string_view name = dtype == DType::f16    ? kSumOfF16
                                : dtype == DType::bf16 ? kSumOfBf16
                                : ordered              ? kOrderedSum
                                                       : kSum;
  return Step{.function = std::string(name), .input = -1, .values = std::move(values)};
}

std::optional<Step> byte_sum_of(const ops::Call& call, size_t main) {
  if (call.op->name != "add" || call.inputs.size() != 2 || call.attrs.contains(ops::kQuantRounding))
    return std::nullopt;
  const ops::Type &a = call.input(main), &b = call.input(1 - main);
  if (a.dtype != DType::i8 || b.dtype != DType::i8 || !a.quant || !b.quant) return std::nullopt;
  Step out{.function = std::string(kSumOfI8), .input = -1, .values = {}};
  for (const ops::Type& type : {a, b, ops::infer_types(call).front()}) {
    if (!type.quant->per_tensor()) return std::nullopt;
    out.values.insert(out.values.end(), {type.quant->scale(), static_cast<double>(type.quant->zero_point())});
  }
  return out;
}

std::optional<Step> step_of(const ops::Call& call, size_t main) {
  if (std::optional<Step> sum = byte_sum_of(call, main)) return sum;
  const int at = static_cast<int>(main);
  if (std::optional<Step> function = function_of(call)) {
    // Slopes a channel are no running value.
    if (main > 0 && call.op->has(ops::Trait::channelwise)) return std::nullopt;
    if (!call.op->has(ops::Trait::commutative)) function->main = at;
    return function;
  }
  const auto mixes = [](DType dtype) { return dtype == DType::f32 || dtype == DType::boolean; };
  if (ops::predicate_from_name(call.op->name)) {
    const DType dtype = call.input(main).dtype;
    if (!mixes(dtype) || call.input(main).quant) return std::nullopt;
    return Step{.function = std::string(call.op->name), .input = -1, .values = {}, .main = at, .dtype = dtype};
  }
  if (is_made_by(make_where, call)) {
    const DType dtype = call.input(1).dtype;
    if (!mixes(dtype)) return std::nullopt;
    return Step{.function = std::string(kChoice), .input = -1, .values = {}, .main = at, .dtype = dtype};
  }
  if (is_made_by(make_cast, call)) {
    const DType from = call.input(main).dtype, to = call.dtype("to");
    const bool holds_all = from == DType::f32 || from == DType::boolean;
    const DType of = from == DType::boolean ? from : DType::f32;
    if (is_narrow_float(to) && holds_all)
      return Step{.function = std::string(to == DType::f16 ? kToF16 : kToBf16), .input = -1, .values = {}, .dtype = of};
    if ((is_narrow_float(from) || from == DType::boolean) && to == DType::f32)
      return Step{.function = std::string(kToF32), .input = -1, .values = {}, .dtype = of};
    return std::nullopt;
  }
  return sum_of(call, main);
}

ops::Attrs tune_sums(const KernelCall& call, int threads) {
  const Step* largest = nullptr;
  for (const Step& step : call.steps)
    if (is_sum(step) && (!largest || step.values.size() > largest->values.size())) largest = &step;
  if (!largest || largest->values.size() < 3) return {};
  const bool weighted = std::ranges::any_of(largest->values, [](double c) { return std::abs(c) != 1; });
  return tuned_fan_in({.op = "add",
                       .weighted = weighted,
                       .inputs = static_cast<int>(largest->values.size()),
                       .elems = call.outputs[0].elems(),
                       .threads = threads});
}

Refusal refuse_sum(const Step& step, int64_t fan_in) {
  if (!is_fan_in(fan_in)) return text("a sum's fan_in must be 0 or lie in [2, ", kMaxFanIn, "]; got ", fan_in, ".");
  if (step.values.empty() || step.values.size() > kMaxNaryInputs)
    return text("a sum is of 1 to ", kMaxNaryInputs, " values, one coefficient each; got ", step.values.size(), ".");
  return std::nullopt;
}

SumStep::SumStep(const Step& step, int64_t fan_in)
    : coefficients_(step.values.begin(), step.values.end()),
      ordered_(step.function != kSum),
      dtype_(operand_type(step)),
      fan_in_(static_cast<size_t>(fan_in == 0 ? kDefaultFanIn : fan_in)) {
  plan();
}

void SumStep::plan() {
  passes_.clear();
  if (dtype_ != DType::f32) return;
  const NaryTable& table = nary_table();
  size_t done = 0;
  float running = coefficients_[0];
  if (operands() == 0 && running == 1) return;
  do {
    // A fused multiply-add by 1 or -1 rounds as an addition does: one kind serves a pass of mixed coefficients.
    const auto rest = std::span(coefficients_).subspan(done + 1);
    const auto all_are = [&](float c, size_t count) {
      return std::ranges::all_of(rest.first(count), [&](float each) { return each == c; });
    };
    size_t count = std::min(rest.size(), fan_in_ - 1);
    const NaryFunction* functions = running != 1         ? nullptr
                                    : all_are(1, count)  ? table.add
                                    : all_are(-1, count) ? table.subtract
                                                         : nullptr;
    if (!functions) functions = ordered_ ? table.weigh_rounded : table.weigh;
    while (functions[count + 1] == nullptr) --count;
    Pass pass{functions[count + 1], done, done + count, {running}};
    pass.coefficients.insert(pass.coefficients.end(), rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(count));
    passes_.push_back(std::move(pass));
    done += count;
    running = 1;
  } while (done < operands());
}

void SumStep::apply(const float* in, int64_t ld_in, float* out, int64_t ld_out, int64_t rows, int64_t cols,
                    const Operand* operands) const {
  if (dtype_ != DType::f32) return apply_narrow(in, ld_in, out, ld_out, rows, cols, operands);
  if (passes_.empty() && in != out) {
    for (int64_t r = 0; r < rows; ++r) std::copy_n(in + r * ld_in, cols, out + r * ld_out);
  }
  for (const Pass& pass : passes_) {
    const Operand* terms = operands + pass.begin;
    const size_t count = pass.end - pass.begin;
    const float* pointers[kMaxFanIn] = {in};
    int64_t ld[kMaxFanIn] = {ld_in};
    if (std::all_of(terms, terms + count, [](const Operand& term) { return term.step == 1; })) {
      for (size_t k = 0; k < count; ++k) {
        pointers[k + 1] = static_cast<const float*>(terms[k].at);
        ld[k + 1] = terms[k].ld;
      }
      // Rows without gaps are one long row, which has one end.
      const bool dense = ld_out == cols && std::all_of(ld, ld + count + 1, [&](int64_t each) { return each == cols; });
      pass.function(
          {pointers, pass.coefficients.data(), out, dense ? rows * cols : cols, false, dense ? 1 : rows, ld, ld_out});
    } else {
      alignas(64) float spread[kMaxFanIn][kSpread];
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < cols; c += kSpread) {
          const int64_t n = std::min(kSpread, cols - c);
          pointers[0] = in + r * ld_in + c;
          for (size_t k = 0; k < count; ++k) {
            const float* from = static_cast<const float*>(terms[k].at) + r * terms[k].ld + c * terms[k].step;
            pointers[k + 1] = from;
            if (terms[k].step == 1) continue;
            for (int64_t i = 0; i < n; ++i) spread[k][i] = from[i * terms[k].step];
            pointers[k + 1] = spread[k];
          }
          pass.function({pointers, pass.coefficients.data(), out + r * ld_out + c, n, false});
        }
      }
    }
    in = out;
    ld_in = ld_out;
  }
}

void SumStep::apply_narrow(const float* in, int64_t ld_in, float* out, int64_t ld_out, int64_t rows, int64_t cols,
                           const Operand* operands) const {
  const HalvesFunction add = halves_function(
      dtype_, std::any_of(coefficients_.begin() + 1, coefficients_.end(), [](float c) { return c != 1; }), true);
  const BlockFunction round = round_function(dtype_);
  const float running = coefficients_[0];
  float so_far[kSpread + kSoFarRoom];
  uint16_t spread[kMaxFanIn][kSpread];
  // Short rows are taken together.
  const int64_t lines = std::max<int64_t>(1, kSpread / std::max<int64_t>(1, cols));
  for (int64_t r = 0; r < rows; r += lines) {
    const int64_t here = std::min(lines, rows - r);
    for (int64_t c = 0; c < cols; c += kSpread) {
      const int64_t width = std::min(kSpread, cols - c), n = here * width;
      for (int64_t i = 0; i < here; ++i) std::copy_n(in + (r + i) * ld_in + c, width, so_far + i * width);
      if (running != 1) {
        for (int64_t i = 0; i < n; ++i) so_far[i] *= running;
        round({.in = so_far, .ld_in = n, .out = so_far, .ld_out = n, .rows = 1, .cols = n});
      }
      for (size_t done = 0; done < this->operands();) {
        const size_t count = std::min(this->operands() - done, fan_in_ - 1);
        const uint16_t* pointers[kMaxFanIn];
        for (size_t k = 0; k < count; ++k) {
          const Operand& term = operands[done + k];
          pointers[k] = static_cast<const uint16_t*>(term.at) + r * term.ld + c * term.step;
          if (term.step == 1 && (here == 1 || term.ld == width)) continue;
          for (int64_t i = 0; i < here; ++i) {
            const uint16_t* from = pointers[k] + i * term.ld;
            uint16_t* to = spread[k] + i * width;
            if (term.step == 1) {
              std::copy_n(from, width, to);
            } else {
              for (int64_t j = 0; j < width; ++j) to[j] = from[j * term.step];
            }
          }
          pointers[k] = spread[k];
        }
        add({pointers, coefficients_.data() + 1 + done, static_cast<int>(count), false, so_far, nullptr, n});
        done += count;
      }
      for (int64_t i = 0; i < here; ++i) std::copy_n(so_far + i * width, width, out + (r + i) * ld_out + c);
    }
  }
}

}  // namespace hetnn::kernels
