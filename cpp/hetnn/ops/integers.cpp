// The operator's own meaning, run on integers: operands less their zero points, the exact result, then the factor and
// the zero point of the result.
#include "hetnn/ops/integers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/base/convert.h"
#include "hetnn/base/error.h"
#include "hetnn/base/integer_rows.h"
#include "hetnn/base/stored.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/lanes.h"
#include "hetnn/ops/op_def.h"
#include "hetnn/ops/quantized.h"

namespace hetnn::ops {
namespace {

// Which of the formulas of docs/numerics.md a call has.
enum class Form : uint8_t { none, sums, aligned, scaled, mean, slope, shares, normal };

bool is_plain(const Type& type) { return type.quant && type.quant->per_tensor(); }

bool is_layer_of_sums(const Call& call) {
  return call.op->primitive == Primitive::convolution || call.op->primitive == Primitive::product ||
         call.op->name == "conv_transpose2d";
}

// Rows of i8; weights and biases are reals.
Form form_of_rows(const Call& call) {
  if (!call.attrs.contains(kQuantRounding) || !is_plain(call.input(0))) return Form::none;
  if (call.input(0).dtype != DType::i8 || call.output().dtype != DType::i8) return Form::none;
  for (size_t k = 1; k < call.inputs.size(); ++k) {
    if (call.has(k) && call.input(k).dtype != DType::f32) return Form::none;
  }
  return call.op->primitive == Primitive::softmax ? Form::shares : Form::normal;
}

Form form_of(const Call& call) {
  if (call.outputs.size() != 1 || !is_plain(call.output())) return Form::none;
  const Primitive primitive = call.op->primitive;
  if (primitive == Primitive::softmax || primitive == Primitive::normalize) return form_of_rows(call);
  const auto all_quantized = [&] {
    for (size_t k = 0; k < call.inputs.size(); ++k) {
      if (call.has(k) && !call.input(k).quant) return false;
    }
    return call.has(0) && is_plain(call.input(0));
  };
  if (!all_quantized()) return Form::none;
  if (is_layer_of_sums(call)) return has_scales_of_filters(call, call.input(1)) ? Form::sums : Form::none;
  const std::optional<Rounding> rounding = stated_rounding(call);
  if (!rounding) return Form::none;
  if (primitive == Primitive::mean_pool) return call.input(0).quant == call.output().quant ? Form::mean : Form::none;
  if (*rounding == Rounding::half_even_fp32) return Form::none;  // what the meaning on the reals is
  switch (primitive) {
    case Primitive::add:
    case Primitive::subtract:
    case Primitive::maximum:
    case Primitive::minimum:
      return Form::aligned;
    case Primitive::multiply:
    case Primitive::relu:
    case Primitive::largest_pool:
      return Form::scaled;
    default:
      break;
  }
  if (call.op->name == "prelu") return Form::slope;
  const bool moves = call.op->has(Trait::movement) || call.op->has(Trait::conversion);
  return moves && call.inputs.size() == 1 ? Form::scaled : Form::none;
}

Tensor as_integers(const View& from, const Quant& quant, DType to) {
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(DType::i64, {from.shape.begin(), from.shape.end()}, &data);
  ConvertElements(from.dtype, DType::i64)(from.data, data, from.elems());
  auto* steps = reinterpret_cast<int64_t*>(data);
  for_runs(from.shape, from.elems(), quant, [&](int64_t begin, int64_t end, size_t index) {
    for (int64_t k = begin; k < end; ++k) steps[k] -= quant.zero_point(index);
  });
  if (to == DType::i64) return out;
  Tensor reals = Tensor::zeros(to, {from.shape.begin(), from.shape.end()}, &data);
  ConvertElements(DType::i64, to)(out.data(), data, from.elems());
  return reals;
}

// The call's meaning on other operands, of one wide type; its result.
Tensor run(const Call& call, std::span<const std::optional<Tensor>> operands, DType dtype, const Host& host) {
  std::vector<Type> types;
  types.reserve(call.inputs.size() + 1);
  Call computing = call;
  std::vector<View> views(operands.size());
  for (size_t k = 0; k < operands.size(); ++k) {
    if (!operands[k]) continue;
    views[k] = *operands[k];
    computing.inputs[k] = {&types.emplace_back(Type{dtype, call.input(k).shape}), nullptr};
  }
  const Type result{dtype, call.output().shape};
  computing.outputs[0] = &result;
  class One final : public Results {
   public:
    std::byte* allocate(size_t, DType of, std::span<const int64_t> shape) override {
      std::byte* data = nullptr;
      made = Tensor::zeros(of, {shape.begin(), shape.end()}, &data);
      return data;
    }
    std::optional<Tensor> made;
  } results;
  if (call.op->check) call.op->check(computing, views);
  call.op->meaning({computing, views, results, host});
  return std::move(*results.made);
}

// A bias as integers of the sums' own scales, one for each filter.
Tensor bias_of_sums(const Call& call, const View& view, const Quant& scale_of_sums) {
  Tensor bias = as_integers(view, *call.input(2).quant, DType::i64);
  std::vector<int64_t> steps(bias.values<int64_t>().begin(), bias.values<int64_t>().end());
  for (size_t k = 0; k < steps.size(); ++k)
    steps[k] = bias_in_sums(steps[k], call.input(2).quant->scale(k), scale_of_sums.scale(k));
  return Tensor::of<int64_t>(bias.shape(), steps);
}

// Room for fractions that the integers of sums of two values have meanwhile.
int bits_of_aligned(const Call& call) {
  return call.input(0).dtype == DType::i16 ? kElementwiseBits16 : kElementwiseBits;
}

// What the integers of a form are multiplied by: those of sums one a filter or one; of aligned operands each, then the
// result; of slopes what is as it is, then what is not; of shares one.
std::vector<double> factors_of(const Call& call, Form form, Rounding rounding) {
  const auto scale = [&](size_t k) { return call.input(k).quant->scale(); };
  const double result = call.output().quant->scale();
  std::vector<double> out;
  switch (form) {
    case Form::sums:
      for (const double weight : call.input(1).quant->scales)
        out.push_back(factor_between(weight * scale(0), result, rounding));
      break;
    case Form::aligned: {
      double most = 0;
      for (size_t k = 0; k < call.inputs.size(); ++k) most = std::max(most, scale(k));
      for (size_t k = 0; k < call.inputs.size(); ++k) out.push_back(scale(k) / (2 * most));
      out.push_back(2 * most / (result * (1 << bits_of_aligned(call))));
      break;
    }
    case Form::scaled: {
      double product = 1;
      for (size_t k = 0; k < call.inputs.size(); ++k) product *= scale(k);
      out.push_back(product / result);
      break;
    }
    case Form::slope:
      out = {scale(0) / result, scale(0) * scale(1) / result};
      break;
    case Form::shares:
      out = {1 / result};
      break;
    default:
      break;
  }
  return out;
}

// Writes the result: `step(value, index)` of each element, `index` that along `axis`.
template <typename F>
void write(const Call& call, Results& results, const Tensor& from, size_t axis, F&& step) {
  const Type& type = call.output();
  const auto [least, most] = integer_range(type.dtype);
  const int64_t zero = type.quant->zero_point();
  int64_t run = 1;
  for (size_t k = axis + 1; k < from.shape().size(); ++k) run *= from.shape()[k];
  const int64_t size = from.shape().empty() ? 1 : from.shape()[axis];
  std::vector<int64_t> out(static_cast<size_t>(from.elems()));
  for (size_t k = 0; k < out.size(); ++k) {
    const auto index = static_cast<size_t>(static_cast<int64_t>(k) / run % std::max<int64_t>(size, 1));
    out[k] = std::clamp<int64_t>(step(k, index) + zero, least, most);
  }
  std::byte* to = results.allocate(0, type.dtype, from.shape());
  ConvertElements(DType::i64, type.dtype)(reinterpret_cast<const std::byte*>(out.data()), to, from.elems());
}

class Evaluator {
 public:
  Evaluator(const Call& call, std::span<const View> inputs, Results& results, const Host& host, Rounding rounding)
      : call_(call), inputs_(inputs), results_(results), host_(host), rounding_(rounding) {
    const int64_t divisor = call_.op->find_attr("q_divisor") ? call_.integer("q_divisor").value() : 1;
    for (const double real : factors_of(call, form_of(call), rounding))
      factors_.push_back(requant_of(real, rounding, divisor));
  }

  // y = req(sum (x - zx) (w - zw) + bias, (sx sw / sy) / q_divisor) + zy
  void sums() {
    const Quant& w = quant(1);
    Quant scales = w;
    for (double& scale : scales.scales) scale *= quant(0).scale();
    std::vector<std::optional<Tensor>> operands = {steps(0), steps(1)};
    if (call_.has(2)) operands.emplace_back(bias_of_sums(call_, inputs_[2], scales));
    const Tensor out = run(call_, operands, DType::i64, host_);
    const auto values = out.values<int64_t>();
    // Filters lie along axis 1 of maps, and last in rows, also in those of four axes.
    const bool windowed = call_.op->primitive != Primitive::product && call_.input(1).shape.size() == 4;
    const size_t axis = windowed ? 1 : last(out);
    write(call_, results_, out, axis,
          [&](size_t k, size_t m) { return scaled(values[k], factors_[m % factors_.size()]); });
  }

  // y = req(op(req((a - za) 2^bits, sa / t), req((b - zb) 2^bits, sb / t)), t / (sy 2^bits)) + zy, t = 2 max(sa, sb)
  void aligned() {
    const int bits = bits_of_aligned(call_);
    std::vector<std::optional<Tensor>> operands;
    for (size_t k = 0; k < call_.inputs.size(); ++k)
      operands.emplace_back(each(steps(k), [&](int64_t v) { return narrow_scaled(v << bits, factors_[k]); }));
    const Tensor out = run(call_, operands, DType::i64, host_);
    const auto values = out.values<int64_t>();
    write(call_, results_, out, 0, [&](size_t k, size_t) { return narrow_scaled(values[k], factors_.back()); });
  }

  // y = req(f(x - zx, ...), sx ... / sy) + zy
  void scaled_once() {
    std::vector<std::optional<Tensor>> operands;
    for (size_t k = 0; k < call_.inputs.size(); ++k) operands.emplace_back(steps(k));
    const Tensor out = run(call_, operands, DType::i64, host_);
    const auto values = out.values<int64_t>();
    const bool same = call_.inputs.size() == 1 && quant(0).scale() == result().scale();
    write(call_, results_, out, 0,
          [&](size_t k, size_t) { return same ? values[k] : narrow_scaled(values[k], factors_[0]); });
  }

  // y = (sum x + sign n / 2) / n: of the integers with their zero point, halves away from zero; with half_even_fp32 of
  // those less it, halves to even
  void mean() {
    const Tensor out = run(call_, std::vector<std::optional<Tensor>>{as_integers(inputs_[0], quant(0), DType::f64)},
                           DType::f64, host_);
    const auto values = out.values<double>();
    const auto zero = static_cast<double>(result().zero_point());
    write(call_, results_, out, 0, [&](size_t k, size_t) {
      if (rounding_ == Rounding::half_even_fp32) return static_cast<int64_t>(std::nearbyint(values[k]));
      return static_cast<int64_t>(std::round(values[k] + zero) - zero);
    });
  }

  // y = req(x - zx, sx / sy) + zy from zero up, below it req((x - zx) (a - za), sx sa / sy) + zy
  void slope() {
    // In f64, which holds such products.
    const Tensor x = as_integers(inputs_[0], quant(0), DType::f64), a = as_integers(inputs_[1], quant(1), DType::f64);
    const Tensor flat = Tensor::zeros(DType::f64, a.shape());
    const Tensor positive = run(call_, std::vector<std::optional<Tensor>>{x, flat}, DType::f64, host_);
    const Tensor both = run(call_, std::vector<std::optional<Tensor>>{x, a}, DType::f64, host_);
    const auto up = positive.values<double>(), all = both.values<double>();
    write(call_, results_, both, 0, [&](size_t k, size_t) {
      return narrow_scaled(static_cast<int64_t>(up[k]), factors_[0]) +
             narrow_scaled(static_cast<int64_t>(all[k] - up[k]), factors_[1]);
    });
  }

  // y = e / sum e, requantized, with e = table[largest of the row - x]
  void shares() {
    const SoftmaxTable table = softmax_table(quant(0).scale(), result().scale());
    const Lanes lanes = lanes_of(call_, inputs_[0].shape);
    rows(lanes.size, lanes.step,
         [&](std::span<int32_t> row) { softmax_row(table, static_cast<int32_t>(result().zero_point()), row, row); });
  }

  // y = (x - mean) / sqrt(variance + eps) * weight + bias
  void normal() {
    int64_t count = 1;
    for (const int64_t dim : inputs_[0].shape.last(static_cast<size_t>(fixed_integer(call_, "axes")))) count *= dim;
    const auto reals = [&](size_t input, double absent) {
      std::vector<double> out(static_cast<size_t>(count), absent);
      if (call_.has(input)) std::ranges::copy(inputs_[input].values<float>(), out.begin());
      return out;
    };
    const std::optional<NormalFactors> factors =
        normal_factors(reals(1, 1), reals(2, 0), call_.real("eps"), quant(0).scale(), result().scale());
    if (!factors) {
      throw InvalidModel(text(describe(call_), ": rows of ", count, " are normalized on integers up to ",
                              kMostNormalized, " elements, with weight, bias and eps that fit 32 bits at its scales; ",
                              "state no q_rounding to compute it on reals."));
    }
    rows(count, 1, [&](std::span<int32_t> row) {
      normalize_row(factors->channels, factors->eps, factors->shift, static_cast<int32_t>(result().zero_point()), row,
                    row);
    });
  }

 private:
  // Of each row of `count` elements that lie so far apart, what `compute` makes of it in place.
  template <typename F>
  void rows(int64_t count, int64_t apart, F&& compute) {
    const View& x = inputs_[0];
    const auto* from = reinterpret_cast<const int8_t*>(x.data);
    auto* to = reinterpret_cast<int8_t*>(results_.allocate(0, DType::i8, x.shape));
    if (x.elems() == 0) return;
    std::vector<int32_t> row(static_cast<size_t>(count));
    for (int64_t first = 0; first < x.elems(); first += count * apart) {
      for (int64_t begin = first; begin < first + apart; ++begin) {
        for (int64_t k = 0; k < count; ++k) row[static_cast<size_t>(k)] = from[begin + k * apart];
        compute(std::span(row));
        for (int64_t k = 0; k < count; ++k) to[begin + k * apart] = static_cast<int8_t>(row[static_cast<size_t>(k)]);
      }
    }
  }

  const Quant& quant(size_t k) const { return *call_.input(k).quant; }
  const Quant& result() const { return *call_.output().quant; }
  bool is_wide() const { return call_.input(0).dtype == DType::i16; }
  static size_t last(const Tensor& tensor) { return tensor.shape().empty() ? 0 : tensor.shape().size() - 1; }
  Tensor steps(size_t k) const { return as_integers(inputs_[k], quant(k), DType::i64); }
  // Of sums: those of i16 have more bits.
  int64_t scaled(int64_t value, const Requant& by) const {
    return is_wide() ? requantize_wide(value, by, rounding_) : narrow_scaled(value, by);
  }
  int64_t narrow_scaled(int64_t value, const Requant& by) const {
    constexpr int64_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();
    return requantize(static_cast<int32_t>(std::clamp(value, kLow, kHigh)), by, rounding_);
  }
  template <typename F>
  static Tensor each(const Tensor& tensor, F&& f) {
    std::vector<int64_t> out(tensor.values<int64_t>().begin(), tensor.values<int64_t>().end());
    std::ranges::transform(out, out.begin(), f);
    return Tensor::of<int64_t>(tensor.shape(), out);
  }

  const Call& call_;
  std::span<const View> inputs_;
  Results& results_;
  const Host& host_;
  const Rounding rounding_;
  std::vector<Requant> factors_;
};

}  // namespace

bool has_scales_of_filters(const Call& call, const Type& weights) {
  if (!is_layer_of_sums(call) || !weights.quant || weights.quant->per_tensor()) return true;
  const auto axis = static_cast<size_t>(weights.quant->axis);
  if (call.op->primitive == Primitive::convolution) return axis == 0;
  if (call.op->primitive == Primitive::product) return axis > 0 && axis + 1 == weights.shape.size();
  return axis == 1 && fixed_integer(call, "groups") == 1;  // not those of each group's filters
}

bool has_real_sums(const Call& call) {
  if (!is_layer_of_sums(call) || call.attrs.contains(kQuantScale)) return false;
  return call.has(0) && call.has(1) && call.input(0).quant && call.input(1).quant;
}

std::optional<Rounding> integer_rounding(const Call& call) {
  if (form_of(call) == Form::none) return std::nullopt;
  return stated_rounding(call).value_or(Rounding::half_even_fp32);
}

std::optional<Rounding> stated_rounding(const Call& call) {
  const auto stated = call.attrs.find(kQuantRounding);
  if (stated == call.attrs.end()) return std::nullopt;
  return rounding_named(std::get<std::string>(stated->second));
}

int64_t bias_in_sums(int64_t steps, double scale, double scale_of_sums) {
  const double ratio = scale / scale_of_sums;
  // A scale that was multiplied elsewhere differs in its last bits.
  return std::abs(ratio - 1) > 1e-6 ? std::llround(std::nearbyint(static_cast<double>(steps) * ratio)) : steps;
}

std::optional<double> impossible_factor(const Call& call) {
  const std::optional<Rounding> rounding = integer_rounding(call);
  if (!rounding) return std::nullopt;
  const std::vector<double> factors = factors_of(call, form_of(call), *rounding);
  const auto odd = std::find_if_not(factors.begin(), factors.end(), has_requant);
  return odd == factors.end() ? std::nullopt : std::optional(*odd);
}

void evaluate_integers(const Call& call, std::span<const View> inputs, Results& results, const Host& host) {
  Evaluator evaluator(call, inputs, results, host, *integer_rounding(call));
  switch (form_of(call)) {
    case Form::sums:
      return evaluator.sums();
    case Form::aligned:
      return evaluator.aligned();
    case Form::scaled:
      return evaluator.scaled_once();
    case Form::mean:
      return evaluator.mean();
    case Form::slope:
      return evaluator.slope();
    case Form::shares:
      return evaluator.shares();
    case Form::normal:
      return evaluator.normal();
    case Form::none:
      throw InternalError(text(describe(call), " is not computed on integers"));
  }
}

}  // namespace hetnn::ops
