// Running meanings: bound calls, and values that are computed in another type than they are kept in.
#include "hetnn/ops/meaning.h"

#include <algorithm>

#include "hetnn/base/convert.h"
#include "hetnn/base/error.h"
#include "hetnn/ops/integers.h"
#include "hetnn/ops/quantized.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::ops {
namespace {

// Results as tensors.
class TensorResults final : public FoundResults {
 public:
  explicit TensorResults(size_t count) : tensors_(count) {}
  void define(std::string_view symbol, int64_t value) override { defined.emplace(symbol, value); }
  std::byte* allocate(size_t index, DType dtype, std::span<const int64_t> shape) override {
    std::byte* data = nullptr;
    tensors_.at(index) = Tensor::zeros(dtype, {shape.begin(), shape.end()}, &data);
    return data;
  }
  std::vector<Tensor> take() { return std::move(tensors_); }

  Bindings defined;

 private:
  std::vector<Tensor> tensors_;
};

// What a value is computed as: quantized integers as the reals that they stand for, in f32, and by operators that are
// wide all others in a wide type.
Type computed_as(const OpDef& op, const Type& type) {
  if (type.quant) return op.has(Trait::integral) ? type : Type{DType::f32, type.shape};
  return {op.has(Trait::wide) ? wide_dtype(type.dtype) : type.dtype, type.shape};
}

bool is_converted(const OpDef& op, const Type& type) {
  return type.quant ? !op.has(Trait::integral) : op.has(Trait::wide) && wide_dtype(type.dtype) != type.dtype;
}

Tensor converted(const View& from, const Type& type, DType to) {
  if (type.quant) return dequantize(from, *type.quant);
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(to, {from.shape.begin(), from.shape.end()}, &data);
  ConvertElements(from.dtype, to)(from.data, data, from.elems());
  return out;
}

// Results that are computed in another type than the call's: kept until they are converted.
class ConvertedResults final : public FoundResults {
 public:
  ConvertedResults(const Call& call, Results& results) : call_(call), results_(results), made_(call.outputs.size()) {}
  void define(std::string_view symbol, int64_t value) override {
    dynamic_cast<FoundResults&>(results_).define(symbol, value);
  }
  std::byte* allocate(size_t index, DType dtype, std::span<const int64_t> shape) override {
    if (!is_converted(*call_.op, call_.output(index))) return results_.allocate(index, dtype, shape);
    std::byte* data = nullptr;
    made_.at(index) = Tensor::zeros(dtype, {shape.begin(), shape.end()}, &data);
    return data;
  }
  void write() {
    for (size_t k = 0; k < made_.size(); ++k) {
      if (!made_[k]) continue;
      const Type& type = call_.output(k);
      std::byte* to = results_.allocate(k, type.dtype, made_[k]->shape());
      if (type.quant) {
        quantize(*made_[k], type, to,
                 stated_rounding(call_).value_or(Rounding::half_even_fp32) != Rounding::half_even_fp32);
      } else {
        ConvertElements(made_[k]->dtype(), type.dtype)(made_[k]->data(), to, made_[k]->elems());
      }
    }
  }

 private:
  const Call& call_;
  Results& results_;
  std::vector<std::optional<Tensor>> made_;
};

void evaluate_converted(const Call& call, std::span<const View> inputs, Results& results, const Host& host) {
  std::vector<Type> types;
  types.reserve(call.inputs.size() + call.outputs.size());
  const auto computed = [&](const Type& type) { return &types.emplace_back(computed_as(*call.op, type)); };
  Call computing = call;
  std::vector<Tensor> made(inputs.size());
  std::vector<View> views(inputs.begin(), inputs.end());
  for (size_t k = 0; k < call.inputs.size(); ++k) {
    if (!call.has(k)) continue;
    const Type& type = call.input(k);
    // For messages the call keeps the model's element types; quantized inputs are reals from here on.
    computing.inputs[k] = {type.quant ? computed(type) : &type, nullptr};
    if (is_converted(*call.op, type)) views[k] = made[k] = converted(views[k], type, computed_as(*call.op, type).dtype);
  }
  for (const Type*& output : computing.outputs) output = computed(*output);
  ConvertedResults kept(call, results);
  if (call.op->check) call.op->check(computing, views);
  call.op->meaning({computing, views, kept, host});
  kept.write();
}

}  // namespace

int64_t View::elems() const {
  int64_t count = 1;
  for (int64_t dim : shape) count *= dim;
  return count;
}

const View& Evaluation::input(size_t index) const {
  HETNN_ASSERT(has(index), describe(call), " reads absent input ", index);
  return inputs[index];
}

Result Evaluation::output(size_t index) const { return output(index, hetnn::values(call.output(index).shape)); }

Result Evaluation::output(size_t index, std::vector<int64_t> shape) const {
  const DType dtype = call.output(index).dtype;
  std::byte* data = results.allocate(index, dtype, shape);
  return {dtype, std::move(shape), data};
}

BoundCall::BoundCall(const Call& call, const Bindings& bindings)
    : call_{call.op, call.inputs, {}, call.attrs, call.name, call.loc} {
  const auto bind = [&](std::vector<Dim>& dims) {
    for (Dim& dim : dims) {
      if (!dim.is_static()) dim = dim.evaluate(bindings);
    }
  };
  for (auto& [name, attr] : call_.attrs) {
    if (const AttrDef* def = call.op->find_attr(name); def && defines(*def)) continue;
    if (auto* dim = std::get_if<Dim>(&attr); dim && !dim->is_static()) *dim = dim->evaluate(bindings);
    if (auto* dims = std::get_if<std::vector<Dim>>(&attr)) bind(*dims);
  }
  types_.reserve(call.inputs.size());
  for (const Operand& input : call_.inputs) {
    if (!input.type) continue;
    types_.push_back(*input.type);
    bind(types_.back().shape);
  }
  const auto point = [&] {  // at the types, which may have moved
    const Type* next = types_.data();
    for (Operand& input : call_.inputs) input.type = input.type ? next++ : nullptr;
    for (const Type*& output : call_.outputs) output = next++;
  };
  point();
  const std::vector<Type> outputs = infer_types(call_);
  types_.insert(types_.end(), outputs.begin(), outputs.end());
  call_.outputs.resize(outputs.size());
  point();
}

void evaluate(const Call& call, std::span<const View> inputs, Results& results, const Host& host) {
  if (integer_rounding(call)) return evaluate_integers(call, inputs, results, host);
  const auto converts = [&](const Type* type) { return type && is_converted(*call.op, *type); };
  if (std::ranges::any_of(call.inputs, converts, &Operand::type) ||
      (!call.inputs.empty() && std::ranges::any_of(call.outputs, converts))) {
    evaluate_converted(call, inputs, results, host);
  } else {
    if (call.op->check) call.op->check(call, inputs);
    call.op->meaning({call, inputs, results, host});
  }
}

std::vector<Tensor> evaluate(const Call& call, std::span<const std::optional<Tensor>> inputs,
                             const Bindings& bindings) {
  Bindings defined;
  return evaluate(call, inputs, bindings, defined);
}

std::vector<Tensor> evaluate(const Call& call, std::span<const std::optional<Tensor>> inputs, const Bindings& bindings,
                             Bindings& defined) {
  const BoundCall bound(call, bindings);
  std::vector<View> views(inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k]) views[k] = *inputs[k];
  }
  return evaluate(bound, views, defined, {});
}

std::vector<Tensor> evaluate(const BoundCall& bound, std::span<const View> inputs, Bindings& defined,
                             const Host& host) {
  TensorResults results(bound.call().outputs.size());
  evaluate(bound.call(), inputs, results, host);
  for (const auto& [symbol, value] : results.defined) defined.insert_or_assign(symbol, value);
  return results.take();
}

}  // namespace hetnn::ops
