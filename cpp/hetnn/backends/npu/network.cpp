// Which form each layer has, and which values lie in one piece of memory: parts of what is joined, slices, and what is
// only seen in another shape.
#include "hetnn/backends/npu/network.h"

#include <algorithm>

#include "hetnn/backends/npu/factors.h"
#include "hetnn/backends/npu/rearrange.h"
#include "hetnn/base/error.h"
#include "hetnn/base/integer_rows.h"
#include "hetnn/npu/access.h"
#include "hetnn/npu/timing.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/integers.h"

namespace hetnn::backends::scheduling {

using npu::ElementwiseOp;
using ops::Primitive;

namespace {

std::optional<Form> form_of(const ir::Node& node) {
  switch (node.op().primitive) {
    case Primitive::none:
      break;
    case Primitive::convolution:
      return Form::product;
    case Primitive::product:
      return Form::matrices;
    case Primitive::add:
    case Primitive::subtract:
    case Primitive::multiply:
    case Primitive::maximum:
    case Primitive::minimum:
      return Form::pair;
    case Primitive::relu:
    case Primitive::clamp:
    case Primitive::table:
      return Form::unary;
    case Primitive::softmax:
    case Primitive::normalize:
      return Form::rows;
    case Primitive::largest_pool:
    case Primitive::mean_pool:
      return Form::pool;
    case Primitive::concat:
      return Form::concat;
    case Primitive::slice:
      return Form::slice;
    case Primitive::rearrange:
      return Form::rearrange;
  }
  return std::nullopt;
}

ElementwiseOp pair_op(Primitive primitive) {
  switch (primitive) {
    case Primitive::subtract:
      return ElementwiseOp::sub;
    case Primitive::multiply:
      return ElementwiseOp::mul;
    case Primitive::maximum:
      return ElementwiseOp::max;
    case Primitive::minimum:
      return ElementwiseOp::min;
    default:
      return ElementwiseOp::add;
  }
}

// Each says why not; nothing where all is well.

// The result is quantized as the inputs are.
std::string why_other_scale(const ir::Node& node) {
  for (const ir::Value* input : node.inputs()) {
    if (input->type().quant == node.output()->type().quant) continue;
    return text(ir::describe(node), ": the result must have the scale of '", input->name(), "', ",
                ops::to_string(input->type()), "; got ", ops::to_string(node.output()->type()), ".");
  }
  return {};
}

std::string why_other_bytes(const ir::Node& node) {
  const ops::Type& x = node.input(0)->type();
  if (x.dtype == node.output()->dtype() && x.quant) return {};
  return text(ir::describe(node), ": the NPU takes quantized bytes for others; got ", ops::to_string(x), ".");
}

std::string why_no_engine(const ir::Node& node) {
  const ops::Type& type = node.output()->type();
  if (type.dtype == DType::f32 || type.dtype == DType::f16 || (type.dtype == DType::i8 && type.quant)) return {};
  return text(ir::describe(node), ": the NPU's engines compute f32, f16 and quantized i8; the result is ",
              ops::to_string(type), ".");
}

// Of nothing there are no tiles; what is joined may have parts without elements.
std::string why_nothing(const ir::Node& node, const Bindings& bindings) {
  for (const ir::Value* value : node.inputs()) {
    if (value && map_of(*value, bindings).elems() == 0 && node.op().primitive != Primitive::concat)
      return text(ir::describe(node), ": '", value->name(), "' is empty, ", to_string(value->shape()),
                  "; the NPU's instructions compute one element at least.");
  }
  return {};
}

// A linear layer is a 1x1 convolution over rows of one pixel.
std::string describe_convolution(Layer& layer) {
  const ir::Node& node = layer.node();
  const Tensor* weight = node.constant_input(1);
  if (!weight)
    return text(ir::describe(node), ": its weight is computed at run time; the NPU packs weights when compiling.");
  if (node.input(2) && !node.constant_input(2))
    return text(ir::describe(node), ": its bias is computed at run time; the NPU keeps biases with the weights.");
  for (size_t k = 1; k < node.inputs().size(); ++k) {
    if (const ops::Quant* quant =
            node.input(k) && node.input(k)->type().quant ? &*node.input(k)->type().quant : nullptr;
        quant && (quant->has_zero_point() || quant->axis != 0))
      return text(ir::describe(node), ": '", node.input(k)->name(),
                  "' must have the zero point 0, and scales along its first axis; got ",
                  ops::to_string(node.input(k)->type()), ". Quantize weights symmetrically.");
  }
  const bool windowed = weight->rank() == 4;
  if (!windowed && node.output()->rank() == 4) {
    return text(ir::describe(node), ": the NPU's linear layers run over the last axis of up to 3; got ",
                to_string(node.input(0)->shape()), ".");
  }
  if (windowed) layer.window = ops::window_of(node.call());
  layer.product = {.dtype = layer.dtype,
                   .window = layer.window,
                   .batch = layer.out.n,
                   .in_h = layer.in.h,
                   .in_w = layer.in.w,
                   .out_h = layer.out.h,
                   .out_w = layer.out.w,
                   .groups = windowed ? node.integer("groups").value() : 1,
                   .in_c = layer.in.c,
                   .out_c = layer.out.c,
                   .biased = node.input(2) != nullptr,
                   .adds = layer.epilogue.addend != nullptr,
                   .is_rows = !windowed};
  layer.inputs = {node.input(0)};
  layer.streams = windowed;
  return {};
}

// b takes the place of weights, so its columns are filters; a is rows of one pixel. Sums are not split.
std::string describe_matrices(Layer& layer, const Bindings& bindings) {
  const ir::Node& node = layer.node();
  const std::vector<int64_t> a = evaluate(node.input(0)->shape(), bindings),
                             b = evaluate(node.input(1)->shape(), bindings);
  if (!ops::has_scales_of_filters(node.call(), node.input(1)->type()))
    return text(ir::describe(node), ": '", node.input(1)->name(),
                "' must have one scale, or one for each of its columns; got ", ops::to_string(node.input(1)->type()),
                ".");
  if (a.size() != b.size() || a.size() == 4 || !std::equal(a.begin(), a.end() - 2, b.begin())) {
    return text(ir::describe(node), ": the NPU multiplies matrices of equal batches and rank up to 3; got ",
                to_string(node.input(0)->shape()), " and ", to_string(node.input(1)->shape()), ".");
  }
  layer.product = {.dtype = layer.dtype,
                   .batch = a.size() == 3 ? a[0] : 1,
                   .in_h = a[a.size() - 2],
                   .out_h = a[a.size() - 2],
                   .in_c = a.back(),
                   .out_c = b.back(),
                   .adds = layer.epilogue.addend != nullptr,
                   .whole_sums = true,
                   .weights_differ = true};
  layer.inputs = {node.input(0), node.input(1)};
  return {};
}

std::string describe_pool(Layer& layer) {
  const ir::Node& node = layer.node();
  if (std::string why = why_other_scale(node); !why.empty()) return why;
  const bool global = node.attrs().contains("output_size");
  if (global && (layer.out.h != 1 || layer.out.w != 1))
    return text(ir::describe(node), ": the NPU pools adaptively to 1x1 only; got ", layer.out.h, "x", layer.out.w, ".");
  layer.window =
      global ? ops::Window{{.kernel = layer.in.h, .stride = layer.in.h}, {.kernel = layer.in.w, .stride = layer.in.w}}
             : ops::window_of(node.call());
  layer.inputs = {node.input(0)};
  layer.streams = true;
  return {};
}

std::string describe_pair(Layer& layer, const Bindings& bindings) {
  const ir::Node& node = layer.node();
  layer.op = pair_op(node.op().primitive);
  const ir::Value *a = node.input(0), *b = node.input(1);
  const Map& out = layer.out;
  if (map_of(*a, bindings).elems() != out.elems() && layer.op != ElementwiseOp::sub) std::swap(a, b);
  const Map second = map_of(*b, bindings, node.output()->rank());
  const bool row = second.elems() != out.elems();
  const bool along_channels = second.elems() == out.c && second.c == out.c;
  // Values of other ranks may lie in another order.
  const auto lies_as = [&](const ir::Value& value) {
    return map_of(value, bindings) == out && layout_of(value) == layout_of(*node.output());
  };
  if (!lies_as(*a) || !(row ? along_channels : lies_as(*b))) {
    return text(ir::describe(node), ": the vector engine combines operands of one shape, or a value a channel; got ",
                to_string(node.input(0)->shape()), " and ", to_string(node.input(1)->shape()), ".");
  }
  layer.inputs = {a};
  if (row)
    layer.row = b;
  else
    layer.inputs.push_back(b);
  layer.in = map_of(*a, bindings);
  layer.streams = true;
  return {};
}

// Each pixel's channels are one row.
std::string describe_rows(Layer& layer) {
  const ir::Node& node = layer.node();
  layer.inputs = {node.input(0)};
  layer.streams = true;
  const ops::Type& x = node.input(0)->type();
  if (x.dtype != DType::i8 || !x.quant)
    return text(ir::describe(node), ": the NPU computes it of quantized i8; got ", ops::to_string(x), ".");
  const int rank = x.rank(), channels = rank == 4 ? 1 : rank - 1;
  const bool normalizes = node.op().primitive == Primitive::normalize;
  const bool one_axis = normalizes ? rank != 4 && node.integer("axes") == Dim(1)
                                   : rank > 0 && ops::axis_of(node.call(), node.integer("axis"), rank) == channels;
  if (!one_axis)
    return text(ir::describe(node), ": the NPU computes it along the axis that lies innermost, ", channels, " of rank ",
                rank, "; got ", to_string(x.shape), ".");
  for (size_t k = 1; normalizes && k < node.inputs().size(); ++k) {
    if (node.input(k) && (!node.constant_input(k) || node.input(k)->dtype() != DType::f32))
      return text(ir::describe(node), ": the NPU keeps its weight and bias, constants of f32; got ",
                  ops::to_string(node.input(k)->type()), ".");
  }
  return {};
}

bool computes(const Layer& layer) {
  return layer.form == Form::product || layer.form == Form::matrices || layer.form == Form::pool ||
         layer.form == Form::pair || layer.form == Form::unary || layer.form == Form::rows;
}

}  // namespace

Map map_of(const ir::Value& value, const Bindings& bindings, int rank) {
  std::vector<int64_t> shape = evaluate(value.shape(), bindings);
  if (rank > value.rank()) shape.insert(shape.begin(), static_cast<size_t>(rank - value.rank()), 1);
  if (shape.size() == 4) return {shape[0], shape[2], shape[3], shape[1]};
  Map out;
  if (!shape.empty()) out.c = shape.back();
  for (size_t k = 0; k + 1 < shape.size(); ++k) out.h *= shape[k];
  return out;
}

int64_t zero_of(const ir::Value& value) { return value.type().quant ? value.type().quant->zero_point() : 0; }

Layout layout_of(const ir::Value& value) { return ops::is_feature_map(value.type()) ? Layout::nhwc : Layout::plain; }

bool has_instruction(const ops::OpDef& op, DType dtype) {
  if (op.primitive == Primitive::none) return false;
  if (op.primitive == Primitive::table || op.primitive == Primitive::softmax || op.primitive == Primitive::normalize)
    return dtype == DType::i8;
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::i8;
}

npu::Engine Layer::engine() const {
  using npu::Engine;
  if (form == Form::product || form == Form::matrices) return Engine::mac;
  if (form == Form::view || form == Form::concat || form == Form::slice) return Engine::none;
  return Engine::vector;
}

Span Layer::rows_read(size_t operand, int64_t first, int64_t count) const {
  const bool windowed = (form == Form::product || form == Form::pool) && operand == 0;
  return windowed ? positions_read(window[0], first, count, in.h) : Span{first, count, 0};
}

int64_t Layer::cycles(const npu::Spec& spec, int64_t rows) const {
  const auto elems = static_cast<double>(rows * out.w) * static_cast<double>(out.c);
  // The operands of a pool are as large as its result where windows lie side by side.
  const int64_t moved = rows * out.w * out.c * elem * static_cast<int64_t>(1 + inputs.size());
  const auto vector = [&](double count, double each) {
    return std::max(npu::vector_cycles(spec, count, each), npu::scratchpad_cycles(spec, npu::ContentBytes{moved}));
  };
  switch (form) {
    case Form::product:
    case Form::matrices:
      return cycles_of_rows(spec, product, rows);
    case Form::pool:
      return vector(elems * static_cast<double>(ops::taps_of(window)), npu::of_type(spec.vector.elem_cycles, dtype, 1));
    case Form::pair:
      return vector(elems, npu::of_type(spec.vector.elem_cycles, dtype, 1));
    case Form::unary:
      return vector(elems, npu::of_type(spec.vector.act_cycles, dtype, 1));
    case Form::rows: {
      const bool shares = node().op().primitive == Primitive::softmax;
      const double each = (shares ? spec.vector.softmax_cycles : spec.vector.normalize_cycles).value_or(0);
      return std::max(npu::row_cycles(spec, rows * out.w, out.c, each),
                      npu::scratchpad_cycles(spec, npu::ContentBytes{moved}));
    }
    case Form::rearrange:
      return vector(elems, 1);
    case Form::view:
    case Form::concat:
    case Form::slice:
      break;
  }
  return 0;
}

Rounding Layer::rounding(const npu::Spec& spec) const {
  const auto stated = node().attrs().find(ops::kQuantRounding);
  if (stated == node().attrs().end()) return spec.numerics.unstated();
  return rounding_named(std::get<std::string>(stated->second)).value();
}

Parameters Layer::parameters() const {
  const bool quantized = dtype == DType::i8;
  Parameters kept;
  if (form == Form::product) {
    const int64_t depth = product.in_c / product.groups;
    kept.begin_second = aligned(ops::taps_of(window) * depth * product.out_c * elem);
    kept.begin_third = aligned(kept.begin_second + (product.biased ? product.out_c * kSumBytes : 0));
    const int64_t factors = product.out_c * kFactorBytes + (product.adds ? kAddendFactorBytes : 0);
    kept.bytes = aligned(kept.begin_third + (quantized ? factors : 0));
  } else if (form == Form::pair) {
    kept.begin_second = kept.begin_third = row ? aligned(out.c * elem) : 0;
    kept.bytes = kept.begin_second + (quantized ? kAlignment : 0);
  } else if (form == Form::unary && epilogue.act == npu::Act::table) {
    kept.bytes = kTableBytes;
  } else if (form == Form::rows) {
    kept.bytes = aligned(node().op().primitive == Primitive::softmax
                             ? static_cast<int64_t>(sizeof(SoftmaxTable))
                             : out.c * static_cast<int64_t>(sizeof(NormalFactor)) + npu::kNormalEpsBytes);
  }
  return kept;
}

Network::Network(const std::vector<std::vector<const ir::Node*>>& chains, std::set<const ir::Value*> outputs,
                 std::span<const ir::Value* const> inputs, const Bindings& bindings)
    : bindings_(bindings), outputs_(std::move(outputs)) {
  // The launches keep what rounding was asked for already.
  for (const std::vector<const ir::Node*>& chain : chains) add_layer(chain, epilogue_of(chain, false).value());
  share(inputs);
}

Network::Network(std::span<const ir::Node* const> chain, const Epilogue& epilogue, const Bindings& bindings)
    : bindings_(bindings) {
  add_layer(chain, epilogue);
  outputs_.insert(layers_.front().output);
  share({});
}

namespace {

// What a layer computes from which maps; else why the engines have no form for it.
std::string describe(Layer& layer, std::span<const ir::Node* const> chain, const Epilogue& epilogue,
                     const Bindings& bindings) {
  layer.nodes.assign(chain.begin(), chain.end());
  const ir::Node& node = layer.node();
  layer.epilogue = epilogue;
  const std::optional<Form> form = form_of(node);
  if (!form) return text(ir::describe(node), ": the NPU's instructions have no form for ", node.op().name, ".");
  layer.form = *form;
  if (std::string why = why_no_engine(node); !why.empty()) return why;
  layer.dtype = node.output()->dtype();
  layer.elem = dtype_bytes(layer.dtype);
  layer.output = chain.back()->output();
  layer.out = map_of(*node.output(), bindings);
  if (layer.out.elems() == 0) {
    layer.form = Form::view;
    return {};
  }
  std::string why = why_nothing(node, bindings);
  if (!why.empty()) return why;
  layer.in = map_of(*node.input(0), bindings);
  switch (layer.form) {
    case Form::product:
      why = describe_convolution(layer);
      break;
    case Form::matrices:
      why = describe_matrices(layer, bindings);
      break;
    case Form::pool:
      why = describe_pool(layer);
      break;
    case Form::pair:
      why = describe_pair(layer, bindings);
      break;
    case Form::unary:
      layer.inputs = {node.input(0)};
      layer.streams = true;
      if (node.op().primitive == Primitive::table) {
        layer.epilogue = {.act = npu::Act::table};
      } else {
        why = why_other_scale(node);
        layer.epilogue = *activation_of(node);
      }
      break;
    case Form::rows:
      why = describe_rows(layer);
      break;
    default:
      // Bytes are handed on, whatever they stand for.
      why = node.op().has(ops::Trait::conversion) ? why_other_bytes(node) : why_other_scale(node);
      layer.inputs.assign(node.inputs().begin(), node.inputs().end());
      if (layer.form == Form::slice && node.integer("step") != Dim(1))
        return text(ir::describe(node), ": the NPU slices with step 1; got ", node.integer("step"), ".");
      if (const std::optional<Repeats> repeats = repeats_of(node, bindings);
          layer.form == Form::rearrange && repeats && (*repeats)[0] * (*repeats)[1] == 0)
        return text(ir::describe(node), ": the NPU repeats every pixel equally often; got ",
                    to_string(node.input(0)->shape()), " as ", to_string(node.output()->shape()), ".");
  }
  if (epilogue.addend) layer.inputs.push_back(epilogue.addend);
  return why.empty() ? why_no_factors(layer) : why;
}

}  // namespace

std::string why_no_layer(const ir::Node& node, const Bindings& bindings) {
  // Of nothing every form is accepted, but other sizes may leave something.
  if (!is_static(node.output()->shape()) && map_of(*node.output(), bindings).elems() == 0)
    return text(ir::describe(node), ": its result, ", to_string(node.output()->shape()), ", is empty at likely sizes.");
  Layer layer;
  const ir::Node* const alone[] = {&node};
  return describe(layer, alone, {}, bindings);
}

void Network::add_layer(std::span<const ir::Node* const> chain, const Epilogue& epilogue) {
  Layer layer;
  if (const std::string why = describe(layer, chain, epilogue, bindings_); !why.empty()) throw Unsupported(why);
  layers_.push_back(std::move(layer));
}

// Whether its readers can do with pixels that lie apart, and its writer too.
bool Network::reads_pitched(const ir::Value& value) const {
  const auto read = readers_.find(&value);
  return read == readers_.end() || std::all_of(read->second.begin(), read->second.end(), [&](size_t k) {
           return computes(layers_[k]) || along_channels(layers_[k]);
         });
}
bool Network::takes_pitched(const ir::Value& value) const {
  const auto at = writer_.find(&value);
  if (at == writer_.end()) return false;
  const Layer& layer = layers_[at->second];
  return reads_pitched(value) && (computes(layer) || (layer.node().op().primitive == Primitive::concat &&
                                                      layer.out.elems() > 0 && along_channels(layer)));
}

void Network::give_storage(const ir::Value& value) {
  if (parts_.contains(&value)) return;
  const Map map = map_of(value, bindings_);
  const int64_t elem = dtype_bytes(value.dtype());
  const bool constant = value.producer() && value.producer()->is_constant();
  Storage storage{.value = &value, .bytes = map.elems() * elem, .is_constant = constant};
  storage.is_port = is_output(value) || (!is_written(value) && !constant);
  parts_[&value] = {frames_.size(), 0};
  frames_.push_back({&value, storages_.size(), map, map.c * elem});
  storages_.push_back(storage);
}

void Network::share(std::span<const ir::Value* const> inputs) {
  for (size_t k = 0; k < layers_.size(); ++k) {
    writer_[layers_[k].output] = k;
    for (const ir::Value* input : layers_[k].inputs) readers_[input].push_back(k);
    if (layers_[k].row) readers_[layers_[k].row].push_back(k);
  }
  // What is joined along the channels is written into its place, the outer joint first.
  for (auto at = layers_.rbegin(); at != layers_.rend(); ++at) {
    Layer& layer = *at;
    if (layer.form != Form::concat || !along_channels(layer)) continue;
    give_storage(*layer.output);
    const Part whole = parts_.at(layer.output);
    std::vector<const ir::Value*> copied;
    int64_t offset = whole.offset_bytes;
    for (const ir::Value* input : layer.inputs) {
      if (map_of(*input, bindings_).elems() == 0) continue;
      const bool shares = !parts_.contains(input) && !is_output(*input) && takes_pitched(*input);
      if (shares)
        parts_[input] = {whole.frame, offset};
      else
        copied.push_back(input);
      offset += map_of(*input, bindings_).c * layer.elem;
    }
    if (copied.empty()) {
      layer.form = Form::view;
      layer.streams = true;
    }
  }
  for (const ir::Value* input : inputs) give_storage(*input);
  for (const Layer& layer : layers_) {
    for (const ir::Value* input : layer.inputs) {
      if (!is_written(*input)) give_storage(*input);
    }
    if (layer.row && !is_written(*layer.row)) give_storage(*layer.row);
  }
  for (Layer& layer : layers_) {
    if (parts_.contains(layer.output)) continue;
    const bool movement = layer.form == Form::slice || layer.form == Form::rearrange;
    const bool free = movement && !is_output(*layer.output) && !storage(*layer.inputs[0]).is_constant;
    const Part from = movement ? parts_.at(layer.inputs[0]) : Part();
    if (free && layer.form == Form::slice && along_channels(layer) && reads_pitched(*layer.output)) {
      parts_[layer.output] = {from.frame, from.offset_bytes + slice_begin(layer, bindings_) * layer.elem};
      layer.form = Form::view;
      layer.streams = true;
    } else if (free && layer.form == Form::rearrange && moves_of(layer, bindings_).empty() &&
               frames_[from.frame].pixel_bytes == layer.in.c * layer.elem) {
      parts_[layer.output] = {frames_.size(), 0};
      frames_.push_back({layer.output, frames_[from.frame].storage, layer.out, layer.out.c * layer.elem});
      layer.form = Form::view;
    } else {
      give_storage(*layer.output);
    }
  }
  live();
}

void Network::live() {
  for (auto& [value, part] : parts_) part.map = map_of(*value, bindings_);
  std::vector<bool> seen(storages_.size());
  for (size_t k = 0; k < layers_.size(); ++k) {
    const auto touch = [&](const ir::Value& value) {
      const size_t at = frame(value).storage;
      Storage& storage = storages_[at];
      if (!seen[at]) storage.first = k;
      seen[at] = true;
      storage.last = k;
    };
    touch(*layers_[k].output);
    for (const ir::Value* input : layers_[k].inputs) touch(*input);
    if (layers_[k].row) touch(*layers_[k].row);
  }
  for (Storage& storage : storages_) {
    if (storage.is_port && !is_written(*storage.value)) storage.first = 0;
  }
}

}  // namespace hetnn::backends::scheduling
