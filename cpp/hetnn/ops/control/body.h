// The body of a loop: calls in order, as text that an attribute holds.
//
//   take 2 u0 | slice_over 2 4 5 _ _ {sizes=[u1]} | add 3 6 {} | give 7 6
//
// A call names its operator, its inputs by number, `_` where one is absent, and its attributes, separated by `;`. The
// body's own inputs are numbered from 0, then the outputs of each call in turn; `give` names what the body gives.
// `take` says that an input may have another shape each time, and names its sizes, `_` where one stays. `outer0`,
// `outer1`, ... stand for the sizes that the call's attribute `outer` holds.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/ops/meaning.h"
#include "hetnn/ops/op_def.h"

namespace hetnn::ops {

struct Body {
  struct Step {
    const OpDef* op = nullptr;
    std::vector<int64_t> inputs;  // -1: absent
    Attrs attrs;
  };
  std::map<int64_t, std::vector<std::string>> taken;  // names of the sizes of inputs
  std::vector<Step> steps;
  std::vector<int64_t> outputs;
};

/// The body in the attribute `attr`. Fails where it is none.
Body read_body(const Call& call, std::string_view attr);

/// Types of what the body gives for inputs of these types. Fails where calls do not fit together.
std::vector<Type> infer_body(const Call& call, const Body& body, std::span<const Type> inputs);

/// A body that runs round after round. What depends on shapes alone is made anew only where they change.
class RunningBody {
 public:
  /// Inputs from number `fixed_from` on are the same values in every round. Call and body outlive this.
  RunningBody(const Call& call, const Body& body, size_t fixed_from, const Host& host);
  /// What the body gives.
  std::vector<Tensor> run(std::span<const Tensor> inputs);

 private:
  /// A step as it was last run.
  struct Ready {
    std::vector<std::optional<Type>> types;  // of its inputs
    Bindings sizes;                          // that its attributes name
    std::unique_ptr<BoundCall> bound;
    std::unique_ptr<FastCall> fast;  // null: its meaning computes it
  };
  Ready& ready(size_t step, const std::deque<Type>& types, const std::deque<Tensor>& values, const Bindings& sizes);

  const Call& call_;
  const Body& body_;
  const size_t inputs_fixed_from_;
  size_t inputs_ = 0;
  const Host host_;
  std::vector<Ready> ready_;
};

}  // namespace hetnn::ops
