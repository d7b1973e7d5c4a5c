// An NPU described by a data sheet: support from the sheet, times from its own code's clock, command streams as code.
#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "hetnn/backends/backend.h"
#include "hetnn/backends/npu/generate.h"
#include "hetnn/base/error.h"
#include "hetnn/memory/fit.h"
#include "hetnn/npu/access.h"
#include "hetnn/npu/code.h"
#include "hetnn/npu/order.h"
#include "hetnn/npu/timing.h"
#include "hetnn/target/op_limits.h"

namespace hetnn::backends {
namespace {

constexpr int64_t kAlign = 64;

// The nodes that one stream of instructions computes, each reading the one before.
using Layer = std::vector<const ir::Node*>;
using Launch = std::span<const ir::Node* const>;

int64_t dense_bytes(const ir::Value& value, const Bindings& bindings) { return target::value_bytes(value, bindings); }

// The read-only region of a subgraph, which its variants share: a constant that one of them has is kept once.
class SharedConstants {
 public:
  SharedConstants(std::vector<hetnn::npu::Constant>& constants, Assembler& assembler)
      : constants_(constants), assembler_(assembler) {}

  // Returns where the constant begins in the region.
  int64_t keep(const Tensor& tensor) {
    const hetnn::npu::Constant wanted{assembler_.blob(program::Blob(tensor)), tensor.bytes()};
    int64_t begin = 0;
    for (const hetnn::npu::Constant& constant : constants_) {
      if (constant == wanted) return begin;
      begin += npu::aligned(constant.size_bytes);
    }
    constants_.push_back(wanted);
    return begin;
  }
  int64_t size_bytes() const {
    int64_t out = 0;
    for (const hetnn::npu::Constant& constant : constants_) out = npu::aligned(out) + constant.size_bytes;
    return out;
  }

 private:
  std::vector<hetnn::npu::Constant>& constants_;
  Assembler& assembler_;
};

class NpuBackend final : public Backend {
 public:
  explicit NpuBackend(const DeviceSpec& spec)
      : Backend(spec), spec_(hetnn::npu::parse_spec(spec.spec_json, spec.name)) {
    for (const auto& [op, entry] : spec_.ops)
      table_[op] = {entry.dtypes, entry.limits, static_cast<int>(entry.max_rank)};
    target::check_metric_names(name(), table_);
  }

  target::Support support(const ir::Node& node) const override {
    const Bindings bindings = target::trial_bindings(node);
    target::Support out = target::check_limits(node, "npu", name(), table_, bindings);
    // A rounding that a model states is kept on every device; one scale in and out needs none.
    const auto stated = node.attrs().find(ops::kQuantRounding);
    const bool scales = node.inputs().size() > 1 || node.input(0)->type().quant != node.output()->type().quant;
    if (stated != node.attrs().end() && scales) {
      const std::string& asked = std::get<std::string>(stated->second);
      const auto* own =
          std::ranges::find(kRoundings, spec_.numerics.rounding, [](const auto& each) { return each.first; });
      if (own->second != asked)
        out.reasons.push_back({text(node.op().name, "_rounding"), asked, std::string(own->second),
                               text(name(), " would round the layer's integers otherwise than the model states")});
    }
    if (!out.ok()) return out;
    try {
      npu::Generator(spec_, bindings).layer(node, {}, {});
    } catch (const InternalError&) {
      throw;
    } catch (const Error& error) {
      const std::string message = error.what();
      out.reasons.push_back({text(node.op().name, "_form"), to_string(node.output()->shape()),
                             "a form the instructions have", message.substr(0, message.find('\n'))});
    }
    return out;
  }

  bool gives(DType dtype) const override {
    return std::any_of(spec_.ops.begin(), spec_.ops.end(), [&](const auto& op) {
      return std::find(op.second.dtypes.begin(), op.second.dtypes.end(), dtype) != op.second.dtypes.end();
    });
  }

  bool exportable(const ir::Node& node) const override {
    const auto listed = [](const auto& list, const auto& wanted) {
      return list.empty() || std::find(list.begin(), list.end(), wanted) != list.end();
    };
    const auto stays = [&](const ir::Value* value) {
      return std::any_of(spec_.non_exportable.begin(), spec_.non_exportable.end(), [&](const auto& row) {
        return listed(row.ops, node.op().name) && listed(row.dtypes, value->dtype()) &&
               listed(row.layouts, npu::layout_of(*value));
      });
    };
    return std::none_of(node.outputs().begin(), node.outputs().end(), stays);
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> out;
    for (const auto& [name, entry] : spec_.ops) {
      const ops::OpDef* op = ops::OpTable::global().find(name);
      std::string idle;
      for (const DType dtype : entry.dtypes) {
        if (!op || !npu::has_instruction(*op, dtype)) idle += text(idle.empty() ? "" : ", ", dtype_name(dtype));
      }
      if (!idle.empty())
        out.push_back(text(this->name(), ": its sheet lists ", name, " in ", idle,
                           ", for which the NPU has no instruction; such nodes run on other devices."));
    }
    return out;
  }

  double time_us(const ir::Node& node, const Bindings& bindings) const override { return layer_us(node, {}, bindings); }

  double least_us(int64_t constant_bytes) const override {
    const double bytes_per_us =
        spec_.dram.bytes_per_cycle * static_cast<double>(spec_.dma.channels) * spec_.clock_hz / 1e6;
    return bytes_per_us > 0 ? static_cast<double>(constant_bytes) / bytes_per_us : 0;
  }

  std::map<const ir::Node*, double> fused_us(const ir::Graph& graph, const Bindings& bindings,
                                             const std::map<const ir::Node*, double>& alone_us,
                                             bool deterministic) const override {
    ir::Graph copy = graph.clone();
    std::map<const ir::Node*, const ir::Node*> original;
    int others = 0;
    auto from = graph.nodes().begin();
    for (ir::Node* node : copy.nodes()) {
      original[node] = *from;
      // Nodes that others run join nothing.
      node->subgraph = alone_us.contains(*from++) ? 0 : ++others;
    }
    passes::fuse(copy, fusing(true, deterministic, bindings));
    std::map<const ir::Node*, double> out;
    for (const Layer& layer : passes::chains_of(copy)) {
      double alone = 0;
      for (const ir::Node* node : layer) alone += layer.size() > 1 ? alone_us.at(original.at(node)) : 0;
      if (alone == 0) continue;
      const double together = layer_us(*layer.front(), npu::epilogue_of(layer, deterministic).value(), bindings);
      for (const ir::Node* node : layer) out[original.at(node)] = alone_us.at(original.at(node)) * together / alone;
    }
    return out;
  }

  double launch_us() const override { return spec_.launch_us; }

  passes::FuseOptions fusing(const LowerOptions& options, const Bindings& hints) const override {
    return fusing(options.fusion, options.deterministic, hints);
  }

  std::optional<double> launch_time_us(Launch launch, const LowerOptions& options,
                                       const Bindings& hints) const override {
    return layer_us(*launch.front(), npu::epilogue_of(launch, options.deterministic).value(), hints);
  }

  program::Subprogram lower(const ir::Graph&, Assembler&, const LowerOptions&) const override {
    program::Subprogram out;
    out.code = as_bytes({.spec_json = spec_json(), .constants = {}, .variants = {}});
    return out;
  }

  bool has_variants() const override { return true; }

  void add_variant(const ir::Graph& graph, const Bindings& all, program::Subprogram& subprogram,
                   Assembler& assembler) const override {
    hetnn::npu::Code code =
        hetnn::npu::read_code(subprogram.code.as_text(hetnn::npu::kCodeVersion, subprogram.name), subprogram.name);
    if (std::any_of(code.variants.begin(), code.variants.end(),
                    [&](const auto& variant) { return variant.bindings == all; }))
      return;
    hetnn::npu::Variant variant;
    variant.bindings = all;
    const std::vector<Layer> layers = passes::chains_of(graph);
    const std::map<const ir::Value*, npu::Place> places = place_values(graph, layers, all, variant.dram_bytes);

    SharedConstants constants(code.constants, assembler);
    const Bindings hints = graph.hints();
    npu::Generator generator(
        spec_, all, [&](const Tensor& tensor) { return constants.keep(tensor); }, &hints);
    std::vector<size_t> ends;  // of each layer's instructions
    for (const Layer& layer : layers) {
      std::map<const ir::Value*, npu::Place> here = places;
      const ir::Node& anchor = *layer.front();
      here[anchor.output()] = places.at(layer.back()->output());
      // The launches keep what rounding was asked for already.
      generator.layer(anchor, npu::epilogue_of(layer, false).value(), here);
      ends.push_back(generator.instructions().size());
    }
    const hetnn::npu::Ordered stream = hetnn::npu::ordered(generator.instructions());
    hetnn::npu::Clock clock(spec_);
    std::vector<uint64_t> words;
    size_t coded = 0;
    for (size_t k = 0; k < layers.size(); ++k) {
      const ir::Node& anchor = *layers[k].front();
      hetnn::npu::Layer row{
          .node = anchor.name(), .op = std::string(anchor.op().name), .first_word = static_cast<int64_t>(words.size())};
      const int64_t begin = clock.now_cycles(), moved = clock.totals().dma_bytes;
      const double macs = clock.totals().macs;
      const size_t end = ends[k] < stream.begins.size() ? stream.begins[ends[k]] : stream.instructions.size();
      for (; coded < end; ++coded) {
        const hetnn::npu::Instruction& instruction = stream.instructions[coded];
        clock.step(instruction);
        variant.sram_peak_bytes = std::max(variant.sram_peak_bytes, hetnn::npu::sram_reach_bytes(instruction));
        hetnn::npu::encode(instruction, words);
      }
      row.last_word = static_cast<int64_t>(words.size());
      row.cycles = clock.now_cycles() - begin;
      row.dma_bytes = clock.totals().dma_bytes - moved;
      row.macs = static_cast<int64_t>(clock.totals().macs - macs);
      variant.layers.push_back(std::move(row));
    }
    hetnn::npu::encode(hetnn::npu::End{}, words);
    variant.cycles = clock.now_cycles();
    variant.word_count = static_cast<int64_t>(words.size());
    variant.words_offset_bytes = assembler.blob(program::Blob(std::move(words)));
    refuse_above_memory(variant, constants.size_bytes(), all);
    auto ports = [&](const std::vector<ir::Value*>& values) {
      std::vector<hetnn::npu::Port> out;
      out.reserve(values.size());
      for (const ir::Value* value : values) {
        out.push_back(
            {assembler.boundary(value->name()), places.at(value).offset_bytes, value->dtype(), npu::layout_of(*value)});
      }
      return out;
    };
    variant.inputs = ports(graph.inputs());
    variant.outputs = ports(graph.outputs());
    code.variants.push_back(std::move(variant));
    subprogram.code = as_bytes(code);
  }

 private:
  static program::Code as_bytes(const hetnn::npu::Code& code) {
    return program::Code::of_text("npu", hetnn::npu::kCodeVersion, hetnn::npu::write_code(code));
  }

  // The time of one layer by itself.
  double layer_us(const ir::Node& anchor, const npu::Epilogue& epilogue, const Bindings& bindings) const {
    npu::Generator generator(spec_, bindings);
    generator.layer(anchor, epilogue, {});
    return static_cast<double>(
               hetnn::npu::time_stream(spec_, hetnn::npu::ordered(generator.instructions()).instructions).cycles) /
           spec_.clock_hz * 1e6;
  }

  passes::FuseOptions fusing(bool enabled, bool deterministic, const Bindings& hints) const {
    return {.enabled = enabled, .can_follow = [this, deterministic, hints](Launch launch, const ir::Node& follower) {
              return fuses(launch, follower, deterministic, hints);
            }};
  }

  // Whether the instructions can, and the clock says that it is not slower: an addend that is read by blocks of filters
  // may take more bursts than the transfers it saves.
  bool fuses(Launch launch, const ir::Node& follower, bool deterministic, const Bindings& hints) const {
    Layer together(launch.begin(), launch.end());
    together.push_back(&follower);
    const std::optional<npu::Epilogue> without = npu::epilogue_of(launch, deterministic),
                                       with = npu::epilogue_of(together, deterministic);
    if (!with) return false;
    if (with->addend == without->addend) return true;  // an activation takes no time
    const ir::Node& anchor = *launch.front();
    return layer_us(anchor, *with, hints) <= layer_us(anchor, *without, hints) + layer_us(follower, {}, hints);
  }

  // The arena, the constants and the stream of one subgraph share the device's memory, where the sheet bounds it.
  void refuse_above_memory(const hetnn::npu::Variant& variant, int64_t constant_bytes, const Bindings& bindings) const {
    const int64_t words_bytes = variant.word_count * static_cast<int64_t>(sizeof(uint64_t));
    const int64_t needed_bytes = variant.dram_bytes + constant_bytes + words_bytes;
    if (spec_.dram.bytes == 0 || needed_bytes <= spec_.dram.bytes) return;
    std::string sizes;
    for (const auto& [symbol, value] : bindings) sizes += text(sizes.empty() ? " at " : ", ", symbol, " = ", value);
    throw DoesNotFit(text("a subgraph takes ", needed_bytes, " bytes", sizes, " (", variant.dram_bytes,
                          " of activations, ", constant_bytes, " of constants, ", words_bytes,
                          " of instructions); the memory of ", name(), " has ", spec_.dram.bytes,
                          ". Smaller subgraphs or a target with more memory would do."));
  }

  // Offsets in the arena: inputs live from the start, results until their last reader, outputs to the end.
  static std::map<const ir::Value*, npu::Place> place_values(const ir::Graph& graph, const std::vector<Layer>& layers,
                                                             const Bindings& bindings, int64_t& peak_bytes) {
    const auto end = static_cast<int64_t>(layers.size()) + 1;
    std::map<const ir::Value*, size_t> index;
    std::vector<const ir::Value*> values;
    std::vector<memory::Buffer> buffers;
    auto add = [&](const ir::Value* value, int64_t lower) {
      index[value] = values.size();
      values.push_back(value);
      buffers.push_back({lower, graph.is_output(value) ? end : lower + 1, dense_bytes(*value, bindings)});
    };
    for (const ir::Value* input : graph.inputs()) add(input, 0);
    std::map<int, int64_t> when;
    for (size_t k = 0; k < layers.size(); ++k) {
      add(layers[k].back()->output(), static_cast<int64_t>(k) + 1);
      when[layers[k].front()->launch] = static_cast<int64_t>(k) + 1;
    }
    for (const ir::Node* node : graph.nodes()) {
      for (const ir::Value* input : node->inputs()) {
        auto at = index.find(input);
        if (at != index.end())
          buffers[at->second].upper = std::max(buffers[at->second].upper, when.at(node->launch) + 1);
      }
    }
    const memory::Fit fit = memory::fit_greedy(buffers, kAlign);
    peak_bytes = fit.peak_bytes;
    std::map<const ir::Value*, npu::Place> out;
    for (size_t k = 0; k < values.size(); ++k) out[values[k]] = {hetnn::npu::Region::arena, fit.offsets[k]};
    return out;
  }

  hetnn::npu::Spec spec_;
  target::OpLimitsTable table_;
};

}  // namespace

std::unique_ptr<Backend> make_npu_backend(const DeviceSpec& spec) { return std::make_unique<NpuBackend>(spec); }

}  // namespace hetnn::backends
