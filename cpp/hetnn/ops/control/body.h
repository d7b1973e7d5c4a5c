// The body of a loop: calls in order, as text that an attribute holds.
//
//   take 2 u0 | slice_over 2 4 5 _ _ {sizes=[u1]} | add 3 6 {} | give 7 6
//
// A call names its operator, its inputs by number, `_` where one is absent, and its attributes, separated by `;`. The
// body's own inputs are numbered from 0, then the outputs of each call in turn; `give` names what the body gives.
// `take`, before all calls, says that an input may have another shape each time, and names its sizes, `_` where one
// stays. `outer0`, `outer1`, ... stand for the sizes that the call's attribute `outer` holds. Of a string, `%` and the
// two hexadecimal digits of its code stand for a bracket, `;`, `|` or `%`.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/ops/meaning.h"
#include "hetnn/ops/op_def.h"

namespace hetnn::ops {

struct Body {
  struct Node {
    const OpDef* op = nullptr;
    std::vector<int64_t> inputs;  // -1: absent
    Attrs attrs;
  };
  std::map<int64_t, std::vector<std::string>> taken;  // names of the sizes of inputs
  std::vector<Node> steps;
  std::vector<int64_t> outputs;
};

Tensor copy_of(const View& view);

/// The body in the attribute `attr`. Fails where it is none.
Body read_body(const Call& call, std::string_view attr);
/// The text that it is read from. Sizes around it must be called `outer0`, `outer1`, ... there.
std::string write_body(const Body& body);
/// Of it `taken` alone, for who has the calls otherwise: each run of a loop asks.
Body read_taken(const Call& call, std::string_view attr);

/// The types of the body's inputs with the sizes that it names.
std::vector<Type> taken_types(const Call& call, const Body& body, std::vector<Type> inputs);

/// Types of what the body gives for inputs of these types, taken. Fails where calls do not fit together.
std::vector<Type> infer_body(const Call& call, const Body& body, std::span<const Type> inputs);

/// The calls' body as it stands in the attribute `attr`, each by its meaning. Call and body outlive it.
std::unique_ptr<RunningBody> run_by_meanings(const Call& call, const Body& body, const Host& host);

}  // namespace hetnn::ops
