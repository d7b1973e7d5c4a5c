// Layers of integers whose result stays real: what quantizers leave that round only what layers read.
#include "hetnn/passes/canonical/integers_of.h"
#include "hetnn/passes/canonical/layers_of_integers.h"
#include "hetnn/passes/canonical/rules.h"

namespace hetnn::passes::canonical {
namespace {

Rule layer() {
  return {.name = "layer_of_real_sums",
          .equation =
              "f(dequantize(x), dequantize(w), b) = f(x, w, b), whose result states no scale: sums of integers "
              "by one factor, and b",
          .pattern = one_of({"linear", "conv2d"}),
          .guards = {{"x is the reals of i8 and w those of i8 weights with one scale or those of filters; b is a "
                      "constant or the reals of one; the result is no quantized value",
                      [](const Match& m) { return !m.root()->output()->type().quant && sums_integers(*m.root()); }}},
          .exactness = "sums are exact where those of reals round each",
          .rewrite = [](const Match& m, Build& build) -> ir::Value* {
            const ir::Node& layer = *m.root();
            std::vector<ir::Value*> inputs = layer.inputs();
            for (size_t k = 0; k < inputs.size(); ++k) {
              ir::Value* integers = inputs[k] ? integers_of(inputs[k]) : nullptr;
              if (integers && (k < 2 || integers->dtype() == DType::i32)) inputs[k] = integers;
            }
            return build.op(layer.op().name, std::move(inputs), layer.attrs());
          },
          .quantized = true};
}

}  // namespace

const RuleSet& real_sums() {
  static const RuleSet set = {"real_sums", "Layers that read integers and whose result stays real.", {layer()}};
  return set;
}

}  // namespace hetnn::passes::canonical
