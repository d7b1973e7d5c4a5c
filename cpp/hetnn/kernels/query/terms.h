// The terms on which a kernel serves a call, asked one after another: the first that does not hold is why it refuses.
//
//   Refusal serves_softmax(const KernelCall& call) {
//     return Terms("softmax", call).of(DType::f32, 1).hold(call.inputs[0].rank > 0, "takes one axis or more");
//   }
#pragma once

#include <string>
#include <string_view>

#include "hetnn/base/error.h"
#include "hetnn/kernels/kernel.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {

class Terms {
 public:
  /// Of a call that outlives them; `kernel` is what the refusal begins with.
  Terms(std::string_view kernel, const KernelCall& call) : kernel_(kernel), call_(call) {}

  /// The first `inputs` inputs and all outputs are of that type.
  Terms& of(DType dtype, size_t inputs);
  /// The first `inputs` inputs are; outputs may be of another.
  Terms& reads(DType dtype, size_t inputs);
  /// One operand is.
  Terms& is(const TensorView& view, DType dtype, std::string_view what);
  /// Output 0 is of the type that the steps leave of what the kernel computes (Variant::tiles).
  Terms& writes_behind_steps(DType computed);
  /// Every operand lies plain.
  Terms& plain();
  /// All steps are elementwise functions, sums or conversions whose operands are there: for kernels that apply them to
  /// rows of `output` (epilogue.h).
  Terms& steps_on_rows(const TensorView& output);
  Terms& steps_on_rows() { return steps_on_rows(call_.outputs[0]); }
  /// The same for those that apply them to tiles of a nest (elementwise/steps.h).
  Terms& steps_on_tiles();
  /// Whether a step is an elementwise function, a sum or a conversion, whose operands are there.
  bool holds_step(const Step& step);
  /// A term of the kernel's own, and what it says where it does not hold: "takes ...; got ...".
  template <typename... Parts>
  Terms& hold(bool met, const Parts&... parts) {
    if (!met && !refusal_) refuse(text(parts...));
    return *this;
  }
  /// Those of another kernel or of a part of this one.
  Terms& hold(const Refusal& other) {
    if (!refusal_) refusal_ = other;
    return *this;
  }

  /// The same, asked only where all so far hold, so that it may read what they promise.
  template <typename Ask>
  Terms& then(const Ask& ask) {
    return refusal_ ? *this : hold(ask());
  }

  /// Whether all so far hold: those that follow may read what these promise.
  bool met() const { return !refusal_; }
  operator Refusal() const { return refusal_; }  // NOLINT(google-explicit-constructor): the answer

 private:
  void refuse(const std::string& why) { refusal_ = text(kernel_, " ", why, "."); }
  std::string_view kernel_;
  const KernelCall& call_;
  Refusal refusal_;
};

}  // namespace hetnn::kernels
