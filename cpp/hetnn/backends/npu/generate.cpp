// Command streams for layers: which layer an operator is, and what all layers share.
#include "hetnn/backends/npu/generate.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "hetnn/backends/backend.h"
#include "hetnn/base/error.h"
#include "hetnn/npu/requantize.h"

namespace hetnn::backends::npu {

using hetnn::npu::Act;
using hetnn::npu::DmaLoad;
using hetnn::npu::DmaStore;
using hetnn::npu::ElementwiseOp;
using hetnn::npu::Engine;
using hetnn::npu::Region;

namespace {

constexpr int64_t kTableBytes = 256;  // an entry for each value of i8

// Runs that follow one another are one run: every run costs whole bursts.
void join_runs(int64_t stride, int64_t& run_bytes, int64_t& runs) {
  if (stride != run_bytes) return;
  run_bytes *= runs;
  runs = 1;
}

}  // namespace

Layout layout_of(const ir::Value& value) { return ops::is_feature_map(value.type()) ? Layout::nhwc : Layout::plain; }

Generator::Map Generator::map_of(const ir::Value& value, int rank) const {
  std::vector<int64_t> shape = evaluate(value.shape(), bindings_);
  if (rank > value.rank()) shape.insert(shape.begin(), static_cast<size_t>(rank - value.rank()), 1);
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

bool has_instruction(const ops::OpDef& op, DType dtype) {
  if (op.primitive == ops::Primitive::none) return false;
  if (op.primitive == ops::Primitive::table) return dtype == DType::i8;
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::i8;
}

void Generator::emit(const ir::Node& node, const Epilogue& epilogue) {
  using ops::Primitive;
  switch (node.op().primitive) {
    case Primitive::none:
      break;
    case Primitive::convolution:
      return conv(node, epilogue);
    case Primitive::product:
      return matmul(node, epilogue);
    case Primitive::add:
      return elementwise(node, ElementwiseOp::add, epilogue);
    case Primitive::subtract:
      return elementwise(node, ElementwiseOp::sub, epilogue);
    case Primitive::multiply:
      return elementwise(node, ElementwiseOp::mul, epilogue);
    case Primitive::maximum:
      return elementwise(node, ElementwiseOp::max, epilogue);
    case Primitive::minimum:
      return elementwise(node, ElementwiseOp::min, epilogue);
    case Primitive::relu:
    case Primitive::clamp:
      return activation(node, *activation_of(node));
    case Primitive::table:
      return activation(node, {.act = Act::table});
    case Primitive::pool:
      return pool(node);
    case Primitive::concat:
      return concat(node);
    case Primitive::slice:
      return slice(node);
    case Primitive::rearrange:
      return rearrange(node);
  }
}

void Generator::layer(const ir::Node& node, const Epilogue& epilogue, const std::map<const ir::Value*, Place>& places) {
  places_ = &places;
  node_ = &node;
  begin_ = code_.size();
  if (!has_instruction(node.op(), DType::i8))
    throw Unsupported(text(ir::describe(node), ": the NPU's instructions have no form for ", node.op().name, "."));
  dtype_ = node.output()->dtype();
  elem_ = dtype_bytes(dtype_);
  const bool quantized = dtype_ == DType::i8 && node.output()->type().quant;
  if (dtype_ != DType::f32 && dtype_ != DType::f16 && !quantized)
    throw Unsupported(text(ir::describe(node), ": the NPU's engines compute f32, f16 and quantized i8; the result is ",
                           ops::to_string(node.output()->type()), "."));
  if (map_of(*node.output()).elems() == 0) return;
  refuse_empty(node);
  emit(node, epilogue);
}

// Of nothing there are no tiles; what is joined may have parts without elements.
void Generator::refuse_empty(const ir::Node& node) const {
  for (const ir::Value* value : node.inputs()) {
    if (value && map_of(*value).elems() == 0 && node.op().primitive != ops::Primitive::concat)
      throw Unsupported(text(ir::describe(node), ": '", value->name(), "' is empty, ", to_string(value->shape()),
                             "; the NPU's instructions compute one element at least."));
  }
}

int64_t zero_of(const ir::Value& value) { return value.type().quant ? value.type().quant->zero_point : 0; }

void Generator::keeps_scale(const ir::Node& node) const {
  for (const ir::Value* input : node.inputs()) {
    if (input->type().quant == node.output()->type().quant) continue;
    throw Unsupported(text(ir::describe(node), ": the result must have the scale of '", input->name(), "', ",
                           ops::to_string(input->type()), "; got ", ops::to_string(node.output()->type()), "."));
  }
}

Place Generator::factors(const ir::Node& node, std::span<const double> reals) {
  std::vector<int32_t> words;
  try {
    for (double real : reals) {
      const hetnn::npu::Requant factor = hetnn::npu::requant_of(real, spec_.numerics.rounding);
      words.insert(words.end(), {factor.multiplier, factor.shift});
    }
  } catch (const InvalidModel& error) {
    throw Unsupported(text(ir::describe(node), ": ", error.what()));
  }
  const auto count = static_cast<int64_t>(words.size());
  return constant(Tensor::of<int32_t>({count}, words));
}

Place Generator::constant(const Tensor& stored) { return {Region::weights, keep_ ? keep_(stored) : 0}; }

Place Generator::place_of(const ir::Value& value) {
  if (auto at = places_->find(&value); at != places_->end()) return at->second;
  if (auto at = loaded_constants_.find(&value); at != loaded_constants_.end()) return at->second;
  if (!value.producer() || !value.producer()->is_constant()) {
    HETNN_ASSERT(!keep_, "'", value.name(), "' has no place");
    return {Region::arena, 0};  // timing only
  }
  Tensor tensor = value.producer()->tensor("value");
  if (layout_of(value) == Layout::nhwc && keep_) {
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
  return loaded_constants_[&value] = constant(tensor);
}

void Generator::load(const Place& from, int64_t sram, int64_t bytes) { load_runs(from, bytes, sram, bytes, 1); }

void Generator::load_runs(const Place& from, int64_t stride, int64_t sram, int64_t run_bytes, int64_t runs) {
  join_runs(stride, run_bytes, runs);
  if (run_bytes * runs == 0) return;
  add(DmaLoad{.region = static_cast<int64_t>(from.region),
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
  join_runs(stride, run_bytes, runs);
  if (run_bytes * runs == 0) return;
  add(DmaStore{.region = static_cast<int64_t>(to.region),
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

void Generator::add(hetnn::npu::Instruction instruction) {
  if (code_.size() - begin_ == kMostInstructions)
    throw NodeDoesNotFit(text(ir::describe(*node_), ": its tiles take more than ", kMostInstructions,
                              " instructions. Cut the layer into smaller ones, or pin the node to the cpu."),
                         std::string(node_->name()));
  code_.push_back(std::move(instruction));
}

void Generator::then(Engine from, Engine engine) {
  add(hetnn::npu::Signal{.from = static_cast<int64_t>(from), .to = static_cast<int64_t>(engine)});
  add(hetnn::npu::Wait{.at = static_cast<int64_t>(engine), .from = static_cast<int64_t>(from)});
}

void Generator::does_not_fit(const ir::Node& node, int64_t needed_bytes) const {
  const std::string where = ops::to_string(node.loc());
  throw NodeDoesNotFit(
      text(ir::describe(node), ": its smallest tile takes ", needed_bytes, " bytes of scratchpad; ", spec_.name,
           " has ", spec_.scratchpad().bytes, ". Use a target with more scratchpad, or pin the node to the cpu.",
           where.empty() ? "" : "\n  at " + where),
      std::string(node.name()));
}

// Of a, of b and of the result. Sums and extremes are formed at a common scale with more bits; products as they are.
Place Generator::elementwise_factors(const ir::Node& node, const ir::Value& a, const ir::Value& b, ElementwiseOp op) {
  const double sa = a.type().quant->scales[0], sb = b.type().quant->scales[0],
               sy = node.output()->type().quant->scales[0];
  const double common = 2 * std::max(sa, sb);
  const bool product = op == ElementwiseOp::mul;
  const double reals[] = {sa / common, sb / common,
                          product ? sa * sb / sy : common / (sy * (1 << hetnn::npu::kElementwiseBits))};
  return factors(node, reals);
}

// Elements pass in chunks of whole pixels: two operands and the result share the scratchpad.
void Generator::elementwise(const ir::Node& node, ElementwiseOp op, const Epilogue& epilogue) {
  const Map out = map_of(*node.output());
  const ir::Value *a = node.input(0), *b = node.input(1);
  if (map_of(*a).elems() != out.elems() && op != ElementwiseOp::sub) std::swap(a, b);
  const Map second = map_of(*b, node.output()->rank());
  const bool row = second.elems() != out.elems();  // one value a channel
  const bool along_channels = second.elems() == out.c && second.c == out.c;
  if (map_of(*a).elems() != out.elems() || (row && !along_channels)) {
    throw Unsupported(text(ir::describe(node),
                           ": the vector engine combines operands of one shape, or a value a channel; got ",
                           to_string(node.input(0)->shape()), " and ", to_string(node.input(1)->shape()), "."));
  }
  const bool quantized = dtype_ == DType::i8;
  const int64_t rows = out.n * out.h * out.w, row_bytes = out.c * elem_;
  const int64_t at_factors = row ? aligned(row_bytes) : 0, at_a = at_factors + (quantized ? kAlignment : 0);
  const int64_t budget = spec_.scratchpad().bytes - at_a - 2 * kAlignment;
  const int64_t tile = std::min(rows, budget / (row_bytes * (row ? 2 : 3)));
  if (tile < 1) does_not_fit(node, at_a + 2 * kAlignment + row_bytes * 3);
  const Place pa = place_of(*a), pb = place_of(*b), po = place_of(*node.output());
  const int64_t at_out = at_a + aligned(tile * row_bytes), at_b = row ? 0 : at_out + aligned(tile * row_bytes);
  if (row) load(pb, at_b, row_bytes);
  if (quantized) load(elementwise_factors(node, *a, *b, op), at_factors, 3 * kFactorBytes);
  for (int64_t r = 0; r < rows; r += tile) {
    const int64_t count = std::min(tile, rows - r);
    load({pa.region, pa.offset_bytes + r * row_bytes}, at_a, count * row_bytes);
    if (!row) load({pb.region, pb.offset_bytes + r * row_bytes}, at_b, count * row_bytes);
    then(Engine::dma, Engine::vector);
    add(hetnn::npu::Elementwise{.dtype = static_cast<int64_t>(dtype_),
                                .op = static_cast<int64_t>(op),
                                .b_kind = row,
                                .act = static_cast<int64_t>(epilogue.act),
                                .a_zero = zero_of(*a),
                                .b_zero = zero_of(*b),
                                .out_zero = zero_of(*node.output()),
                                .rows = count,
                                .channels = out.c,
                                .a_addr = at_a,
                                .a_pitch = row_bytes,
                                .b_addr = at_b,
                                .b_pitch = row_bytes,
                                .out_addr = at_out,
                                .out_pitch = row_bytes,
                                .scale_a = hetnn::npu::float_bits(1),
                                .scale_b = hetnn::npu::float_bits(1),
                                .quant_addr = at_factors,
                                .clamp_lo = epilogue.clamp_lo,
                                .clamp_hi = epilogue.clamp_hi});
    then(Engine::vector, Engine::dma);
    store_runs(at_out, {po.region, po.offset_bytes + r * row_bytes}, 0, count * row_bytes, 1);
  }
}

void Generator::activation(const ir::Node& node, const Epilogue& activation) {
  const Map out = map_of(*node.output());
  const bool table = activation.act == Act::table;
  if (!table) keeps_scale(node);
  const int64_t rows = out.n * out.h * out.w, row_bytes = out.c * elem_, at_in = table ? kTableBytes : 0,
                tile = std::min(rows, (spec_.scratchpad().bytes - at_in - kAlignment) / (2 * row_bytes));
  if (tile < 1) does_not_fit(node, at_in + kAlignment + 2 * row_bytes);
  const Place from = place_of(*node.input(0)), to = place_of(*node.output());
  const int64_t at_out = at_in + aligned(tile * row_bytes);
  hetnn::npu::Activation code{.dtype = static_cast<int64_t>(dtype_),
                              .act = static_cast<int64_t>(activation.act),
                              .zero = zero_of(*node.output()),
                              .channels = out.c,
                              .in_addr = at_in,
                              .in_pitch = row_bytes,
                              .out_addr = at_out,
                              .out_pitch = row_bytes,
                              .clamp_lo = activation.clamp_lo,
                              .clamp_hi = activation.clamp_hi};
  if (table) load(constant(node.tensor("table")), 0, kTableBytes);
  for (int64_t r = 0; r < rows; r += tile) {
    code.rows = std::min(tile, rows - r);
    load({from.region, from.offset_bytes + r * row_bytes}, at_in, code.rows * row_bytes);
    then(Engine::dma, Engine::vector);
    add(code);
    then(Engine::vector, Engine::dma);
    store_runs(at_out, {to.region, to.offset_bytes + r * row_bytes}, 0, code.rows * row_bytes, 1);
  }
}

}  // namespace hetnn::backends::npu
