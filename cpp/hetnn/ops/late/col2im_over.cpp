// col2im_over: patches summed where they overlap in an image.
#include "hetnn/ops/late/late.h"

namespace hetnn::ops {
namespace {

// x [N,C taps,L], image [k], block [k] -> y [N,C,image...].
std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  check_integers(call, 1);
  if (x.rank() != 3) fail(call, "col2im_over_c2", text("x must be [N,C taps,L]; got ", to_string(x), "."));
  return {{x.dtype, call.integers("sizes")}};
}

void meaning(const Evaluation& e) {
  const auto sizes = [&](size_t input) {
    const std::vector<int64_t> given = values_as<int64_t>(e.input(input));
    return std::vector<Dim>(given.begin(), given.end());
  };
  Attrs attrs = {{"image", sizes(1)}, {"block", sizes(2)}};
  for (const char* name : {"stride", "padding", "dilation"})
    if (!e.call.integers(name).empty()) attrs.emplace(name, e.call.integers(name));
  evaluate_as(e, "fold", std::move(attrs));
}

}  // namespace

OpDef define_col2im_over() {
  return {.name = "col2im_over",
          .doc =
              "Patches, a column each, summed where they overlap as `fold` has it, in an image of a size that is known "
              "at run time.",
          .inputs = {{"x", "[N,C taps,L]"}, {"image", "integers: its size"}, {"block", "integers: that of a patch"}},
          .attrs = {{"stride", AttrKind::integers, std::vector<Dim>{}, "of every axis; none: 1"},
                    {"padding", AttrKind::integers, std::vector<Dim>{}, "before every axis, then behind; none: 0"},
                    {"dilation", AttrKind::integers, std::vector<Dim>{}, "of every axis; none: 1"},
                    sizes_attr()},
          .traits = static_cast<uint32_t>(Trait::wide),
          .onnx = {"Col2Im"},
          .infer = infer,
          .meaning = meaning,
          .samples = {"col2im_over(f32[1,8,9], i64[2] {4, 4}, i64[2] {2, 2}) "
                      "{sizes = [1,2,4,4]}"}};
}

}  // namespace hetnn::ops
