// Runs an operator's meaning on all bytes.
#include "hetnn/kernels/quant/tables.h"

#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/ops/meaning.h"
#include "hetnn/ops/op_def.h"

namespace hetnn::kernels {
namespace {

ops::Quant quant_of(const KernelCall& call, std::string_view value) {
  const std::string scales = text(value, ".scales");
  const std::vector<int64_t> zeros = call.params.integers(text(value, ".zeros"));
  return {.scales = call.params.reals(scales), .zero_points = {static_cast<int32_t>(zeros[0])}};
}

}  // namespace

Refusal refuse_scales(const KernelCall& call) {
  const ops::OpDef& op = ops::OpTable::global().get(call.params.text("operator"));
  const auto refused = [&](std::string_view value) -> Refusal {
    const std::string scales = text(value, ".scales");
    if (call.params.has(scales) && call.params.reals(scales).size() == 1) return std::nullopt;
    return text("a kernel of bytes takes one scale for all of ", value, ".");
  };
  for (size_t k = 0; k < call.inputs.size(); ++k)
    if (const Refusal out = refused(op.inputs[k].name)) return out;
  return refused(op.outputs[0]);
}

std::vector<int8_t> table_of(const KernelCall& call) {
  const ops::OpDef& op = ops::OpTable::global().get(call.params.text("operator"));
  const size_t operands = call.inputs.size();
  HETNN_ASSERT(operands == 1 || operands == 2);
  std::vector<ops::Type> types;
  for (size_t k = 0; k < operands; ++k) {
    const Shape shape = operands == 1 ? Shape{256} : k == 0 ? Shape{256, 1} : Shape{1, 256};
    types.push_back({DType::i8, shape, quant_of(call, op.inputs[k].name)});
  }
  types.push_back({DType::i8, operands == 1 ? Shape{256} : Shape{256, 256}, quant_of(call, op.outputs[0])});
  ops::Call of_all{.op = &op, .inputs = {}, .outputs = {&types.back()}, .attrs = {}, .name = {}, .loc = {}};
  for (const auto& [name, attr] : call.params.attrs()) {
    if (op.find_attr(name)) of_all.attrs.emplace(name, attr);
  }
  std::vector<int8_t> bytes(256);
  for (size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<int8_t>(static_cast<int>(k) - 128);
  std::vector<std::vector<int64_t>> shapes;
  for (size_t k = 0; k < operands; ++k) {
    of_all.inputs.push_back({&types[k], nullptr});
    shapes.push_back(evaluate(types[k].shape, {}));
  }
  std::vector<ops::View> views;
  views.reserve(shapes.size());
  for (const std::vector<int64_t>& shape : shapes)
    views.emplace_back(DType::i8, shape, reinterpret_cast<const std::byte*>(bytes.data()));
  class Table final : public ops::Results {
   public:
    std::byte* allocate(size_t, DType, std::span<const int64_t> shape) override {
      int64_t elems = 1;
      for (const int64_t size : shape) elems *= size;
      values.resize(static_cast<size_t>(elems));
      return reinterpret_cast<std::byte*>(values.data());
    }
    std::vector<int8_t> values;
  } table;
  ops::evaluate(of_all, views, table);
  return std::move(table.values);
}

}  // namespace hetnn::kernels
