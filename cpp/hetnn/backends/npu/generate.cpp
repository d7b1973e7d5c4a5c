// Command streams for layers: which layer an operator is, and what all layers share.
#include "hetnn/backends/npu/generate.h"

#include <algorithm>
#include <cstring>

#include "hetnn/base/error.h"

namespace hetnn::backends::npu {

using hetnn::npu::DmaLoad;
using hetnn::npu::DmaStore;
using hetnn::npu::ElementwiseOp;
using hetnn::npu::Engine;
using hetnn::npu::Region;

namespace {

constexpr int64_t kElem = 4;    // f32
constexpr int64_t kAlign = 64;  // of constants in the image

}  // namespace

Layout layout_of(const ir::Value& value) { return value.rank() == 4 ? Layout::nhwc : Layout::plain; }

Generator::Map Generator::map_of(const ir::Value& value) const {
  const std::vector<int64_t> shape = evaluate(value.shape(), bindings_);
  if (shape.size() == 4) return {shape[0], shape[2], shape[3], shape[1]};
  Map out;
  if (!shape.empty()) out.c = shape.back();
  for (size_t k = 0; k + 1 < shape.size(); ++k) out.h *= shape[k];
  return out;
}

std::vector<int64_t> Generator::stored_shape(const ir::Value& value) const {
  std::vector<int64_t> shape = evaluate(value.shape(), bindings_);
  if (shape.size() == 4) shape = {shape[0], shape[2], shape[3], shape[1]};
  return shape;
}

void Generator::layer(const ir::Node& node, bool relu, const std::map<const ir::Value*, Place>& places) {
  places_ = &places;
  // The operators the engines know, with what computes them.
  using Emit = void (*)(Generator&, const ir::Node&, bool);
  static const std::map<std::string_view, Emit> emitters = {
      {"conv2d", [](Generator& g, const ir::Node& n, bool r) { g.conv(n, r); }},
      {"linear", [](Generator& g, const ir::Node& n, bool r) { g.conv(n, r); }},
      {"matmul", [](Generator& g, const ir::Node& n, bool r) { g.matmul(n, r); }},
      {"add", [](Generator& g, const ir::Node& n, bool r) { g.elementwise(n, ElementwiseOp::add, r); }},
      {"sub", [](Generator& g, const ir::Node& n, bool r) { g.elementwise(n, ElementwiseOp::sub, r); }},
      {"mul", [](Generator& g, const ir::Node& n, bool r) { g.elementwise(n, ElementwiseOp::mul, r); }},
      {"maximum", [](Generator& g, const ir::Node& n, bool r) { g.elementwise(n, ElementwiseOp::max, r); }},
      {"minimum", [](Generator& g, const ir::Node& n, bool r) { g.elementwise(n, ElementwiseOp::min, r); }},
      {"relu", [](Generator& g, const ir::Node& n, bool) { g.activation(n); }},
      {"clamp", [](Generator& g, const ir::Node& n, bool) { g.activation(n); }},
      {"max_pool2d", [](Generator& g, const ir::Node& n, bool) { g.pool(n); }},
      {"avg_pool2d", [](Generator& g, const ir::Node& n, bool) { g.pool(n); }},
      {"adaptive_avg_pool2d", [](Generator& g, const ir::Node& n, bool) { g.pool(n); }},
      {"concat", [](Generator& g, const ir::Node& n, bool) { g.concat(n); }},
      {"slice", [](Generator& g, const ir::Node& n, bool) { g.slice(n); }},
      {"reshape", [](Generator& g, const ir::Node& n, bool) { g.rearrange(n); }},
      {"permute", [](Generator& g, const ir::Node& n, bool) { g.rearrange(n); }},
      {"identity", [](Generator& g, const ir::Node& n, bool) { g.rearrange(n); }},
  };
  auto at = emitters.find(node.op().name);
  if (at == emitters.end())
    throw Unsupported(text(ir::describe(node), ": the NPU's instructions have no form for ", node.op().name, "."));
  for (const ir::Value* output : node.outputs()) {
    if (output->dtype() != DType::f32)
      throw Unsupported(text(ir::describe(node), ": the NPU's code generator writes f32; the result is ",
                             dtype_name(output->dtype()), "."));
  }
  at->second(*this, node, relu);
}

Place Generator::constant(const Tensor& stored) {
  image_.resize((image_.size() + kAlign - 1) / kAlign * kAlign);
  const auto offset = static_cast<int64_t>(image_.size());
  image_.resize(image_.size() + static_cast<size_t>(stored.bytes()));
  if (constants_) std::memcpy(image_.data() + offset, stored.data(), static_cast<size_t>(stored.bytes()));
  return {Region::weights, offset};
}

Place Generator::place_of(const ir::Value& value) {
  if (auto at = places_->find(&value); at != places_->end()) return at->second;
  if (auto at = loaded_constants_.find(&value); at != loaded_constants_.end()) return at->second;
  if (!value.producer() || !value.producer()->is_constant()) {
    HETNN_ASSERT(!constants_, "'", value.name(), "' has no place");
    return {Region::arena, 0};  // timing only
  }
  Tensor tensor = value.producer()->tensor("value");
  if (layout_of(value) == Layout::nhwc && constants_) {
    const std::vector<int64_t>& s = tensor.shape();
    std::byte* data = nullptr;
    const Tensor turned = Tensor::zeros(tensor.dtype(), {s[0], s[2], s[3], s[1]}, &data);
    const auto in = tensor.values<float>();
    auto* to = reinterpret_cast<float*>(data);
    for (int64_t n = 0; n < s[0]; ++n) {
      for (int64_t p = 0; p < s[2] * s[3]; ++p) {
        for (int64_t c = 0; c < s[1]; ++c) *to++ = in[static_cast<size_t>((n * s[1] + c) * s[2] * s[3] + p)];
      }
    }
    tensor = turned;
  }
  return loaded_constants_[&value] = constant(tensor);
}

void Generator::load(const Place& from, int64_t sram, int64_t bytes) { load_runs(from, bytes, sram, bytes, 1); }

void Generator::load_runs(const Place& from, int64_t stride, int64_t sram, int64_t run_bytes, int64_t runs) {
  if (run_bytes * runs == 0) return;
  code_.push_back(DmaLoad{.region = static_cast<int64_t>(from.region),
                          .dram_addr = from.offset_bytes,
                          .sram_addr = sram,
                          .size0 = run_bytes,
                          .size1 = runs,
                          .size2 = 1,
                          .dram_stride1 = runs > 1 ? stride : 0,
                          .dram_stride2 = 0,
                          .sram_stride1 = runs > 1 ? run_bytes : 0,
                          .sram_stride2 = 0});
}

void Generator::store_runs(int64_t sram, const Place& to, int64_t stride, int64_t run_bytes, int64_t runs) {
  if (run_bytes * runs == 0) return;
  code_.push_back(DmaStore{.region = static_cast<int64_t>(to.region),
                           .dram_addr = to.offset_bytes,
                           .sram_addr = sram,
                           .size0 = run_bytes,
                           .size1 = runs,
                           .size2 = 1,
                           .dram_stride1 = runs > 1 ? stride : 0,
                           .dram_stride2 = 0,
                           .sram_stride1 = runs > 1 ? run_bytes : 0,
                           .sram_stride2 = 0});
}

void Generator::then(Engine from, Engine engine) {
  code_.push_back(hetnn::npu::Signal{.from = static_cast<int64_t>(from), .to = static_cast<int64_t>(engine)});
  code_.push_back(hetnn::npu::Wait{.at = static_cast<int64_t>(engine), .from = static_cast<int64_t>(from)});
}

void Generator::does_not_fit(const ir::Node& node, int64_t needed_bytes) const {
  const std::string where = ir::to_string(node.loc());
  throw DoesNotFit(text(ir::describe(node), ": its smallest tile takes ", needed_bytes, " bytes of scratchpad; ",
                        spec_.name, " has ", spec_.scratchpad().bytes,
                        ". Use a target with more scratchpad, or pin the node to the cpu.",
                        where.empty() ? "" : "\n  at " + where));
}

// Elements pass in chunks of whole pixels: two operands and the result share the scratchpad.
void Generator::elementwise(const ir::Node& node, ElementwiseOp op, bool relu) {
  const Map out = map_of(*node.output());
  const ir::Value *a = node.input(0), *b = node.input(1);
  if (map_of(*a).elems() != out.elems() && op != ElementwiseOp::sub) std::swap(a, b);
  const Map second = map_of(*b);
  const bool row = second.elems() != out.elems();  // one value a channel
  const bool along_channels = second.elems() == out.c && second.c == out.c;
  if (map_of(*a).elems() != out.elems() || (row && !along_channels)) {
    throw Unsupported(text(ir::describe(node),
                           ": the vector engine combines operands of one shape, or a value a channel; got ",
                           to_string(node.input(0)->shape()), " and ", to_string(node.input(1)->shape()), "."));
  }
  const int64_t rows = out.n * out.h * out.w, row_bytes = out.c * kElem;
  const int64_t budget = spec_.scratchpad().bytes - (row ? row_bytes : 0);
  const int64_t tile = std::min(rows, budget / (row_bytes * (row ? 2 : 3)));
  if (tile < 1) does_not_fit(node, row_bytes * 3);
  const Place pa = place_of(*a), pb = place_of(*b), po = place_of(*node.output());
  const int64_t at_a = 0, at_out = tile * row_bytes, at_b = 2 * tile * row_bytes;
  if (row) load(pb, at_b, row_bytes);
  for (int64_t r = 0; r < rows; r += tile) {
    const int64_t count = std::min(tile, rows - r);
    load({pa.region, pa.offset_bytes + r * row_bytes}, at_a, count * row_bytes);
    if (!row) load({pb.region, pb.offset_bytes + r * row_bytes}, at_b, count * row_bytes);
    then(Engine::dma, Engine::vector);
    code_.push_back(hetnn::npu::Elementwise{.dtype = 0,
                                            .op = static_cast<int64_t>(op),
                                            .b_kind = row,
                                            .act = relu,
                                            .rows = count,
                                            .channels = out.c,
                                            .a_addr = at_a,
                                            .a_pitch = row_bytes,
                                            .b_addr = at_b,
                                            .b_pitch = row_bytes,
                                            .out_addr = at_out,
                                            .out_pitch = row_bytes,
                                            .scale_a = hetnn::npu::float_bits(1),
                                            .scale_b = hetnn::npu::float_bits(1)});
    then(Engine::vector, Engine::dma);
    store_runs(at_out, {po.region, po.offset_bytes + r * row_bytes}, 0, count * row_bytes, 1);
  }
}

void Generator::activation(const ir::Node& node) {
  const Map out = map_of(*node.output());
  const int64_t rows = out.n * out.h * out.w, row_bytes = out.c * kElem,
                tile = std::min(rows, spec_.scratchpad().bytes / (2 * row_bytes));
  if (tile < 1) does_not_fit(node, 2 * row_bytes);
  const bool clamp = !node.attrs().empty();
  const Place from = place_of(*node.input(0)), to = place_of(*node.output());
  for (int64_t r = 0; r < rows; r += tile) {
    const int64_t count = std::min(tile, rows - r);
    load({from.region, from.offset_bytes + r * row_bytes}, 0, count * row_bytes);
    then(Engine::dma, Engine::vector);
    hetnn::npu::Activation act{.dtype = 0,
                               .act = clamp ? 2 : 1,
                               .rows = count,
                               .channels = out.c,
                               .in_addr = 0,
                               .in_pitch = row_bytes,
                               .out_addr = tile * row_bytes,
                               .out_pitch = row_bytes};
    if (clamp) {
      act.clamp_lo = hetnn::npu::float_bits(static_cast<float>(node.real("min")));
      act.clamp_hi = hetnn::npu::float_bits(static_cast<float>(node.real("max")));
    }
    code_.push_back(act);
    then(Engine::vector, Engine::dma);
    store_runs(tile * row_bytes, {to.region, to.offset_bytes + r * row_bytes}, 0, count * row_bytes, 1);
  }
}

}  // namespace hetnn::backends::npu
