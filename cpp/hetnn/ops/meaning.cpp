// Running meanings: bound calls, and quantized values by way of the reals that they stand for.
#include "hetnn/ops/meaning.h"

#include "hetnn/base/error.h"
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

bool has_quantized(const Call& call) {
  const auto quantized = [](const Type* type) { return type != nullptr && type->quant.has_value(); };
  return std::any_of(call.inputs.begin(), call.inputs.end(), [&](const Operand& o) { return quantized(o.type); }) ||
         std::any_of(call.outputs.begin(), call.outputs.end(), quantized);
}

void evaluate_on_reals(const Call& call, std::span<const View> inputs, Results& results) {
  std::vector<Type> types;
  types.reserve(call.inputs.size() + call.outputs.size());
  const auto real = [&](const Type& type) -> const Type* {
    types.push_back(type.quant ? Type{DType::f32, type.shape} : type);
    return &types.back();
  };
  Call on_reals = call;
  std::vector<Tensor> widened(inputs.size());
  std::vector<View> views(inputs.begin(), inputs.end());
  for (size_t k = 0; k < call.inputs.size(); ++k) {
    if (!call.has(k)) continue;
    on_reals.inputs[k] = {real(call.input(k)), nullptr};
    if (!call.input(k).quant) continue;
    widened[k] = dequantize(views[k], *call.input(k).quant);
    views[k] = widened[k];
  }
  for (const Type*& output : on_reals.outputs) output = real(*output);
  TensorResults reals(call.outputs.size());
  if (call.op->check) call.op->check(on_reals, views);
  call.op->meaning({on_reals, views, reals});
  for (const auto& [symbol, value] : reals.defined) dynamic_cast<FoundResults&>(results).define(symbol, value);
  const std::vector<Tensor> made = reals.take();
  for (size_t k = 0; k < made.size(); ++k) {
    const Type& type = call.output(k);
    std::byte* to = results.allocate(k, type.dtype, made[k].shape());
    if (type.quant) {
      quantize(made[k], type, to);
    } else if (made[k].bytes() > 0) {
      std::memcpy(to, made[k].data(), static_cast<size_t>(made[k].bytes()));
    }
  }
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

void evaluate(const Call& call, std::span<const View> inputs, Results& results) {
  if (!call.inputs.empty() && has_quantized(call) && !call.op->has(Trait::integral)) {
    evaluate_on_reals(call, inputs, results);
  } else {
    if (call.op->check) call.op->check(call, inputs);
    call.op->meaning({call, inputs, results});
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
  TensorResults results(bound.call().outputs.size());
  evaluate(bound.call(), views, results);
  defined.merge(results.defined);
  return results.take();
}

}  // namespace hetnn::ops
