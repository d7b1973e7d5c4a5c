// Runs the meaning of an operator on tensors, for tests of meanings and of what must agree with them.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "hetnn/ops/op_def.h"

namespace hetnn {

/// The outputs of a call whose inputs have their tensors' types.
inline std::vector<Tensor> run_meanings(std::string_view op, const std::vector<std::optional<Tensor>>& inputs,
                                        ops::Attrs attrs = {}) {
  std::vector<ops::Type> types(inputs.size());
  ops::Call call;
  call.op = &ops::OpTable::global().get(op);
  call.attrs = std::move(attrs);
  call.name = "y";
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k]) types[k] = {inputs[k]->dtype(), {inputs[k]->shape().begin(), inputs[k]->shape().end()}};
    call.inputs.push_back({inputs[k] ? &types[k] : nullptr, nullptr});
  }
  ops::complete(call);
  return ops::evaluate(call, inputs, {});
}

/// The first of them.
inline Tensor run_meaning(std::string_view op, const std::vector<std::optional<Tensor>>& inputs,
                          ops::Attrs attrs = {}) {
  return run_meanings(op, inputs, std::move(attrs)).front();
}

/// Attributes of integers, as they are written in calls.
inline std::vector<Dim> dims(std::initializer_list<int64_t> values) { return {values.begin(), values.end()}; }

}  // namespace hetnn
