// Weights, biases, factors and constant maps as bytes of the read-only region.
#include "hetnn/backends/npu/pack.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "hetnn/backends/npu/factors.h"
#include "hetnn/base/error.h"
#include "hetnn/base/requantize.h"
#include "hetnn/ops/quantized.h"

namespace hetnn::backends::scheduling {

int64_t Packer::map(const ir::Value& value) {
  if (!keep_) return 0;
  if (auto at = maps_.find(&value); at != maps_.end()) return at->second;
  Tensor tensor = value.producer()->tensor("value");
  if (layout_of(value) == Layout::nhwc) {
    const std::vector<int64_t>& s = tensor.shape();
    std::byte* to = nullptr;
    const Tensor turned = Tensor::zeros(tensor.dtype(), {s[0], s[2], s[3], s[1]}, &to);
    const auto size = static_cast<size_t>(dtype_bytes(tensor.dtype()));
    for (int64_t n = 0; n < s[0]; ++n) {
      for (int64_t p = 0; p < s[2] * s[3]; ++p) {
        for (int64_t c = 0; c < s[1]; ++c, to += size)
          std::memcpy(to, tensor.data() + static_cast<size_t>((n * s[1] + c) * s[2] * s[3] + p) * size, size);
      }
    }
    tensor = turned;
  }
  return maps_[&value] = keep(tensor);
}

namespace {

// Elements of `from` as [filter][channel][tap], in the order of Packer::filters.
template <typename Element>
void pack_filters(const Element* from, Element* to, int64_t filters, int64_t all, int64_t taps, int64_t block,
                  int64_t channels) {
  for (int64_t first = 0; first < filters; first += block) {
    const int64_t end = std::min(first + block, filters);
    for (int64_t part = 0; part < all; part += channels) {
      for (int64_t t = 0; t < taps; ++t) {
        for (int64_t c = part; c < std::min(part + channels, all); ++c) {
          for (int64_t f = first; f < end; ++f) *to++ = from[(f * all + c) * taps + t];
        }
      }
    }
  }
}

}  // namespace

int64_t Packer::filters(const Layer& layer, int64_t block, int64_t channels) {
  if (!keep_) return 0;
  const Tensor& weight = *layer.node().constant_input(1);
  std::byte* data = nullptr;
  const Tensor packed = Tensor::zeros(weight.dtype(), {weight.elems()}, &data);
  const std::vector<int64_t>& s = weight.shape();
  const int64_t taps = s.size() == 4 ? s[2] * s[3] : 1;
  const auto pack = [&]<typename Element>(Element) {
    pack_filters(reinterpret_cast<const Element*>(weight.data()), reinterpret_cast<Element*>(data), s[0], s[1], taps,
                 block, channels);
  };
  switch (dtype_bytes(weight.dtype())) {
    case 1:
      pack(uint8_t{});
      break;
    case 2:
      pack(uint16_t{});
      break;
    default:
      HETNN_ASSERT(dtype_bytes(weight.dtype()) == 4, "filters are i8, f16 or f32");
      pack(uint32_t{});
  }
  return keep(packed);
}

int64_t Packer::bias(const Layer& layer) {
  const ir::Node& node = layer.node();
  const ir::Value& bias = *node.input(2);
  if (!keep_) return 0;
  const Tensor& tensor = *node.constant_input(2);
  if (layer.dtype == DType::f32) return map(bias);
  if (layer.dtype != DType::i8) return keep(ops::widen(tensor, bias.type()));
  const ops::Quant &x = *node.input(0)->type().quant, &w = *node.input(1)->type().quant, &b = *bias.type().quant;
  const auto in = tensor.values<int32_t>();
  std::vector<int32_t> out(in.size());
  for (size_t k = 0; k < in.size(); ++k) {
    const double steps = std::nearbyint(in[k] * (b.scale(k) / (x.scale() * w.scale(k))));
    out[k] = static_cast<int32_t>(std::clamp(steps, -0x1p31, 0x1p31 - 1));
  }
  return keep(Tensor::of<int32_t>(tensor.shape(), out));
}

// Products of one value each, of 16 bits at most, as a change of scale is; but what a model says of its rounding holds.
bool scales_steps(const Layer& layer) {
  const ProductShape& p = layer.product;
  return layer.form == Form::product && ops::taps_of(layer.window) == 1 && p.in_c == p.groups && !p.biased &&
         !layer.node().attrs().contains(ops::kQuantRounding);
}

int64_t Packer::factors(const Layer& layer, std::span<const double> reals, bool of_steps) {
  if (!keep_) return 0;
  const Rounding rounding = layer.rounding(spec_);
  std::vector<int32_t> words;
  const bool divides = layer.node().op().find_attr("q_divisor") != nullptr;
  const int64_t divisor = divides ? layer.node().integer("q_divisor").value() : 1;
  for (double real : reals) {
    const Requant factor = of_steps ? requant_of_steps(real, rounding) : requant_of(real, rounding, divisor);
    words.insert(words.end(), {factor.multiplier, factor.shift});
  }
  const auto count = static_cast<int64_t>(words.size());
  return keep(Tensor::of<int32_t>({count}, words));
}

int64_t Packer::product_factors(const Layer& layer) {
  return factors(layer, product_factors_of(layer, layer.rounding(spec_)), scales_steps(layer));
}

// In f32 the engine computes on the reals themselves.
int64_t Packer::pair_factors(const Layer& layer) {
  if (layer.rounding(spec_) == Rounding::half_even_fp32) return scales(pair_of(layer));
  return factors(layer, pair_factors_of(layer));
}

int64_t Packer::addend_factors(const Layer& layer) {
  if (layer.rounding(spec_) == Rounding::half_even_fp32) return scales(addend_pair_of(layer));
  return factors(layer, addend_factors_of(layer));
}

int64_t Packer::scales(std::span<const ir::Value* const> values) {
  std::vector<int32_t> words;
  for (const ir::Value* value : values)
    words.insert(words.end(), {std::bit_cast<int32_t>(static_cast<float>(value->type().quant->scale())), 0});
  const auto count = static_cast<int64_t>(words.size());
  return keep(Tensor::of<int32_t>({count}, words));
}

int64_t Packer::rows(const Layer& layer) {
  if (!keep_) return 0;
  std::vector<int32_t> words;
  const auto put = [&](const auto& figures) {
    const size_t begin = words.size();
    words.resize(begin + sizeof figures / sizeof(int32_t));
    std::memcpy(words.data() + begin, &figures, sizeof figures);
  };
  if (layer.node().op().primitive == ops::Primitive::softmax) {
    put(softmax_table_of(layer));
  } else {
    const NormalFactors factors = *normal_factors_of(layer);
    for (const NormalFactor& channel : factors.channels) put(channel);
    put(factors.eps);
  }
  words.resize(static_cast<size_t>(layer.parameters().bytes) / sizeof(int32_t));
  const auto count = static_cast<int64_t>(words.size());
  return keep(Tensor::of<int32_t>({count}, words));
}

int64_t Packer::table(const Layer& layer) { return keep(layer.node().tensor("table")); }

}  // namespace hetnn::backends::scheduling
