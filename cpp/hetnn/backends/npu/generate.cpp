// Command streams for layers: which layer an operator is, and what all layers share.
#include "hetnn/backends/npu/generate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "hetnn/backends/backend.h"
#include "hetnn/base/error.h"
#include "hetnn/base/requantize.h"
#include "hetnn/npu/timing.h"

namespace hetnn::backends::npu {

using hetnn::npu::Act;
using hetnn::npu::DmaLoad;
using hetnn::npu::DmaStore;
using hetnn::npu::ElementwiseOp;
using hetnn::npu::Region;

namespace {

constexpr int64_t kTableBytes = 256;  // an entry for each value of i8

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
    case Primitive::largest_pool:
    case Primitive::mean_pool:
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

int64_t zero_of(const ir::Value& value) { return value.type().quant ? value.type().quant->zero_point() : 0; }

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
      const Requant factor = requant_of(real, spec_.numerics.rounding);
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

// Runs that touch in DRAM are one: every run costs whole bursts.
Generator::Box Generator::joined(Box box) {
  if (box.size1 == 1 || box.stride1 == box.size0) {
    box = {box.size0 * box.size1, box.size2, 1, box.stride2, 0};
    if (box.size1 == 1 || box.stride1 == box.size0) box = {box.size0 * box.size1, 1, 1, 0, 0};
  } else if (box.size2 > 1 && box.stride2 == box.size1 * box.stride1) {
    box = {box.size0, box.size1 * box.size2, 1, box.stride1, 0};
  }
  if (box.size1 == 1) box.stride1 = 0;
  if (box.size2 == 1) box.stride2 = 0;
  return box;
}

Generator::Box Generator::box_of(int64_t rows, int64_t columns, int64_t channels, int64_t all_columns,
                                 int64_t all_channels) const {
  return {channels * elem_, columns, rows, all_channels * elem_, all_columns * all_channels * elem_};
}

template <typename Transfer>
void Generator::transfer(const Place& place, int64_t sram, Box box) {
  box = joined(box);
  if (box.size0 * box.size1 * box.size2 == 0) return;
  add(Transfer{.region = static_cast<int64_t>(place.region),
               .dram_addr = place.offset_bytes,
               .sram_addr = sram,
               .size0 = box.size0,
               .size1 = box.size1,
               .size2 = box.size2,
               .dram_stride1 = box.stride1,
               .dram_stride2 = box.stride2,
               .sram_stride1 = box.size1 > 1 ? box.size0 : 0,
               .sram_stride2 = box.size2 > 1 ? box.size0 * box.size1 : 0});
}

void Generator::load(const Place& from, int64_t sram, Box box) { transfer<DmaLoad>(from, sram, box); }

void Generator::store(int64_t sram, const Place& to, Box box) { transfer<DmaStore>(to, sram, box); }

void Generator::run(const Steps& steps) {
  for (int64_t step = 0; step < steps.count; ++step) {
    if (step == 0 || !steps.overlap) steps.load(step);
    if (steps.overlap && step + 1 < steps.count) steps.load(step + 1);
    steps.compute(step);
    steps.store(step);
  }
}

// As many rows as take least: more steps hide more of the transfers, and each costs their latency.
Generator::Rows Generator::rows_of(const ir::Node& node, int64_t rows, int64_t row_bytes, int64_t operands,
                                   int64_t kept_bytes, double cycles_each) const {
  const auto needed = [&](int64_t tile, int64_t buffers) {
    return kept_bytes + (operands + 1) * buffers * aligned(tile * row_bytes);
  };
  const auto cycles = [&](int64_t tile, int64_t steps, bool overlaps) {
    const auto load = static_cast<double>(hetnn::npu::dma_cycles(spec_, tile * row_bytes, 1, false) * operands),
               store = static_cast<double>(hetnn::npu::dma_cycles(spec_, tile * row_bytes, 1, true)),
               work = static_cast<double>(hetnn::npu::vector_cycles(
                   spec_, static_cast<double>(tile * row_bytes) / static_cast<double>(elem_), cycles_each));
    return cycles_of_steps(load, work, store, static_cast<double>(steps), overlaps);
  };
  Rows best;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t steps = 1;; steps = std::min(steps * 2, rows)) {
    const int64_t tile = (rows + steps - 1) / steps;
    for (const int64_t buffers : {steps > 1 ? 2 : 1, 1}) {
      if (needed(tile, buffers) > spec_.scratchpad().bytes) continue;
      const double each = cycles(tile, steps, buffers == 2);
      if (each < least) {
        least = each;
        best = {tile, aligned(tile * row_bytes), buffers};
      }
    }
    if (steps == rows) break;
  }
  if (best.tile == 0) does_not_fit(node, needed(1, 1));
  return best;
}

void Generator::add(const hetnn::npu::Instruction& instruction) {
  if (code_.size() - begin_ == kMostInstructions) too_long(*node_);
  code_.push_back(instruction);
}

void Generator::too_long(const ir::Node& node) const {
  throw NodeDoesNotFit(text(ir::describe(node), ": its tiles take more than ", kMostInstructions,
                            " instructions. Cut the layer into smaller ones, or pin the node to the cpu."),
                       std::string(node.name()));
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
  const double reals[] = {sa / common, sb / common, product ? sa * sb / sy : common / (sy * (1 << kElementwiseBits))};
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
  const int64_t at_factors = row ? aligned(row_bytes) : 0, kept = at_factors + (quantized ? kAlignment : 0);
  const Rows tiles = rows_of(node, rows, row_bytes, row ? 1 : 2, kept, spec_.vector.elem_cycles);
  const Place pa = place_of(*a), pb = place_of(*b), po = place_of(*node.output());
  const auto at = [&](int64_t step, int64_t operand) {
    return kept + (operand * tiles.buffers + step % tiles.buffers) * tiles.operand_bytes;
  };
  const auto count_of = [&](int64_t step) { return std::min(tiles.tile, rows - step * tiles.tile); };
  const auto place_in = [&](const Place& place, int64_t step) {
    return Place{place.region, place.offset_bytes + step * tiles.tile * row_bytes};
  };
  if (row) load(pb, 0, row_bytes);
  if (quantized) load(elementwise_factors(node, *a, *b, op), at_factors, 3 * kFactorBytes);
  run({.count = (rows + tiles.tile - 1) / tiles.tile,
       .overlap = tiles.buffers == 2,
       .load =
           [&](int64_t step) {
             load(place_in(pa, step), at(step, 0), count_of(step) * row_bytes);
             if (!row) load(place_in(pb, step), at(step, 2), count_of(step) * row_bytes);
           },
       .compute =
           [&](int64_t step) {
             add(hetnn::npu::Elementwise{.dtype = static_cast<int64_t>(dtype_),
                                         .op = static_cast<int64_t>(op),
                                         .b_kind = row,
                                         .act = static_cast<int64_t>(epilogue.act),
                                         .a_zero = zero_of(*a),
                                         .b_zero = zero_of(*b),
                                         .out_zero = zero_of(*node.output()),
                                         .rows = count_of(step),
                                         .channels = out.c,
                                         .a_addr = at(step, 0),
                                         .a_pitch = row_bytes,
                                         .b_addr = row ? 0 : at(step, 2),
                                         .b_pitch = row_bytes,
                                         .out_addr = at(step, 1),
                                         .out_pitch = row_bytes,
                                         .scale_a = hetnn::npu::float_bits(1),
                                         .scale_b = hetnn::npu::float_bits(1),
                                         .quant_addr = at_factors,
                                         .clamp_lo = epilogue.clamp_lo,
                                         .clamp_hi = epilogue.clamp_hi});
           },
       .store = [&](int64_t step) { store(at(step, 1), place_in(po, step), count_of(step) * row_bytes); }});
}

void Generator::activation(const ir::Node& node, const Epilogue& activation) {
  const Map out = map_of(*node.output());
  const bool table = activation.act == Act::table;
  if (!table) keeps_scale(node);
  const int64_t rows = out.n * out.h * out.w, row_bytes = out.c * elem_, kept = table ? kTableBytes : 0;
  const Rows tiles = rows_of(node, rows, row_bytes, 1, kept, spec_.vector.act_cycles);
  const Place from = place_of(*node.input(0)), to = place_of(*node.output());
  const auto at = [&](int64_t step, int64_t operand) {
    return kept + (operand * tiles.buffers + step % tiles.buffers) * tiles.operand_bytes;
  };
  const auto count_of = [&](int64_t step) { return std::min(tiles.tile, rows - step * tiles.tile); };
  const auto place_in = [&](const Place& place, int64_t step) {
    return Place{place.region, place.offset_bytes + step * tiles.tile * row_bytes};
  };
  if (table) load(constant(node.tensor("table")), 0, kTableBytes);
  run({.count = (rows + tiles.tile - 1) / tiles.tile,
       .overlap = tiles.buffers == 2,
       .load = [&](int64_t step) { load(place_in(from, step), at(step, 0), count_of(step) * row_bytes); },
       .compute =
           [&](int64_t step) {
             add(hetnn::npu::Activation{.dtype = static_cast<int64_t>(dtype_),
                                        .act = static_cast<int64_t>(activation.act),
                                        .zero = zero_of(*node.output()),
                                        .rows = count_of(step),
                                        .channels = out.c,
                                        .in_addr = at(step, 0),
                                        .in_pitch = row_bytes,
                                        .out_addr = at(step, 1),
                                        .out_pitch = row_bytes,
                                        .clamp_lo = activation.clamp_lo,
                                        .clamp_hi = activation.clamp_hi});
           },
       .store = [&](int64_t step) { store(at(step, 1), place_in(to, step), count_of(step) * row_bytes); }});
}

}  // namespace hetnn::backends::npu
