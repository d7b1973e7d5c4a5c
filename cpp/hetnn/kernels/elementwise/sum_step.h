// A sum behind another kernel: y = s x + c1 a + c2 b + ... on a tile of that kernel's result x while it stays in the
// first-level cache, all coefficients in registers. Of f16 and bf16 the tile holds f32, rounded to that type's digits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hetnn/kernels/elementwise/nary_ops.h"
#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

/// What steps that are sums are called, beside the elementwise functions. Their values are the coefficients, that of
/// the running value first; their operands are consecutive inputs of the call from `Step::input` on. `kOrderedSum`
/// rounds every product and sum, in this order.
inline constexpr std::string_view kSum = "sum";
inline constexpr std::string_view kOrderedSum = "ordered_sum";
/// Of operands in f16 or bf16: every product and sum is rounded to that type.
inline constexpr std::string_view kSumOfF16 = "ordered_sum_f16";
inline constexpr std::string_view kSumOfBf16 = "ordered_sum_bf16";

/// A sum with another value of quantized i8, rounded once: its operand, and as its values scale and zero point of the
/// running value, of the operand and of the result.
inline constexpr std::string_view kSumOfI8 = "sum_i8";

/// Steps that convert the running value to a type: to f16 and bf16 it is rounded, and to f32 it stays.
inline constexpr std::string_view kToF16 = "to_f16";
inline constexpr std::string_view kToBf16 = "to_bf16";
inline constexpr std::string_view kToF32 = "to_f32";

/// The type of a conversion's result; nullopt of other steps.
std::optional<DType> conversion_of(const Step& step);

bool is_sum(const Step& step);
/// One of two values by a truth value: what a step that is a call of `where` is called. Its operands are consecutive.
inline constexpr std::string_view kChoice = "choice";
/// Whether a step compares or chooses, or has its running value elsewhere than first (elementwise/mixed_step.h).
bool is_mixed(const Step& step);

/// The type of a step's operands, of those that differ the operand `k`.
DType operand_type(const Step& step, size_t k = 0);
/// That of the running value that it reads, and of the one that it leaves behind one of type `before`.
DType running_type(const Step& step, DType before);
DType result_type(const Step& step, DType before);
/// That of the result behind all steps.
DType result_type(std::span<const Step> steps, DType before);
/// How many operands a step has: they are consecutive inputs of the call.
int operand_count(const Step& step);

/// The step on its input `main` that a call of `nary` is; nullopt where it is none: it does not add, or reads `main`
/// where the order forbids it to come first. `input` stays -1.
std::optional<Step> sum_of(const ops::Call& call, size_t main);

/// The step that a call of `add` on quantized i8 of one scale each is; nullopt where it names a rounding of its own.
std::optional<Step> byte_sum_of(const ops::Call& call, size_t main);

/// An elementwise function, a comparison or choice of f32 or truth values, a sum, or a conversion between f32 and a
/// narrower float or from truth values, as a step on input `main` of the call; nullopt where the call is none.
std::optional<Step> step_of(const ops::Call& call, size_t main);

/// The parameter `fan_in` for a call whose steps hold a sum of more than two values, as for an n-ary layer of as many
/// values of the output's size (kernels/elementwise/nary.h); empty where there is no such step.
ops::Attrs tune_sums(const KernelCall& call, int threads);

/// Why there is no kernel for a sum with such a parameter `fan_in`.
Refusal refuse_sum(const Step& step, int64_t fan_in);

class SumStep {
 public:
  /// One row of an operand after another is `ld` elements apart, one column `step` (0: all columns read one element).
  struct Operand {
    const void* at;  // of operand_type
    int64_t ld;
    int64_t step;
  };

  /// Of a step that is not refused. `fan_in`: how many values, the running one among them, are joined in one pass over
  /// the tile; 0: the default.
  SumStep(const Step& step, int64_t fan_in);

  size_t operands() const { return coefficients_.size() - 1; }
  int64_t operand_bytes(size_t /*operand*/ = 0) const { return dtype_bytes(dtype_); }

  /// Takes an operand out of the sum that a kernel adds while its result is still in registers, where that rounds the
  /// same: the number and the coefficient of the first one that `fits`. nullopt: none, the sum stays as it is.
  struct Taken {
    size_t operand;
    float coefficient;
  };
  template <typename Fits>
  std::optional<Taken> take(Fits fits) {
    if (coefficients_[0] != 1 || dtype_ != DType::f32) return std::nullopt;
    for (size_t k = 0; k < operands(); ++k) {
      const float c = coefficients_[k + 1];
      if ((!ordered_ || c == 1) && fits(k)) {
        coefficients_.erase(coefficients_.begin() + static_cast<std::ptrdiff_t>(k) + 1);
        plan();
        return Taken{k, c};
      }
      if (ordered_) break;
    }
    return std::nullopt;
  }

  /// out = the sum, for rows x cols elements; `operands` in their order. `out` may be `in`.
  void apply(const float* in, int64_t ld_in, float* out, int64_t ld_out, int64_t rows, int64_t cols,
             const Operand* operands) const;

 private:
  struct Pass {
    NaryFunction function;
    size_t begin, end;  // operands
    std::vector<float> coefficients;
  };
  void plan();
  void apply_narrow(const float* in, int64_t ld_in, float* out, int64_t ld_out, int64_t rows, int64_t cols,
                    const Operand* operands) const;

  std::vector<float> coefficients_;  // that of the running value first
  bool ordered_;
  DType dtype_;
  size_t fan_in_;
  std::vector<Pass> passes_;
};

}  // namespace hetnn::kernels
