// Pass: layers of reals get conversions around them, from which canonicalizing makes layers of integers.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "hetnn/ir/graph.h"

namespace hetnn::passes {

/// What becomes of a constant that a layer reads as its input `index`: integers behind `dequantize` where `quant` says
/// what they stand for; codes of 4 bits behind `dequantize_blocks` where `blocks` does, i8 [filters, codes of a
/// filter]; else other reals. A layer that has no bias yet gets one as its last input.
struct LayerConstant {
  std::string layer;
  size_t index = 0;
  Tensor value;
  std::optional<ops::Quant> quant;
  struct Blocks {
    Tensor scales;  // [filters, blocks of a filter]
    int64_t size;   // codes of a block
  };
  std::optional<Blocks> blocks;
};

/// What becomes of a value: what its integers stand for, and factors outside of the integers (that broadcast over it).
struct ValueConversion {
  DType dtype = DType::i8;
  ops::Quant quant;
  std::optional<Tensor> before;  // the reals are multiplied by it before they are rounded,
  std::optional<Tensor> after;   // and what the integers stand for by this one
};

struct Conversions {
  std::set<std::string, std::less<>> layers;      // nodes that integers shall compute
  std::map<std::string, ValueConversion> values;  // what they read and write
  std::vector<LayerConstant> constants;
};

/// What a layer among `layers` writes is rounded for all who read it, the model's outputs too; what others write, for
/// the layers that read it. InvalidModel for names that the graph lacks and constants that do not fit.
void insert_conversions(ir::Graph& graph, const Conversions& conversions);

}  // namespace hetnn::passes
