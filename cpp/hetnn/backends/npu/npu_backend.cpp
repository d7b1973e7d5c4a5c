// An NPU described by a data sheet: support from the sheet, times from its own code's clock, command streams as code.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <span>

#include "hetnn/backends/backend.h"
#include "hetnn/backends/npu/bound.h"
#include "hetnn/backends/npu/schedule_text.h"
#include "hetnn/backends/npu/search.h"
#include "hetnn/backends/npu/stream.h"
#include "hetnn/backends/schedules.h"
#include "hetnn/base/error.h"
#include "hetnn/npu/access.h"
#include "hetnn/npu/code.h"
#include "hetnn/npu/timing.h"
#include "hetnn/ops/integers.h"
#include "hetnn/target/op_limits.h"

namespace hetnn::backends {
namespace {

static_assert(scheduling::kAlignment == npu::kConstantAlignment);

// The nodes that one stream of instructions computes, each reading the one before.
using Layer = std::vector<const ir::Node*>;
using Launch = std::span<const ir::Node* const>;

// The read-only region of a subgraph, which its variants share: a constant that one of them has is kept once.
class SharedConstants {
 public:
  SharedConstants(std::vector<npu::Constant>& constants, Assembler& assembler)
      : constants_(constants), assembler_(assembler) {}

  // Returns where the constant begins in the region.
  int64_t keep(const Tensor& tensor) {
    const npu::Constant wanted{assembler_.blob(program::Blob(tensor)), tensor.bytes()};
    int64_t begin = 0;
    for (const npu::Constant& constant : constants_) {
      if (constant == wanted) return begin;
      begin += scheduling::aligned(constant.size_bytes);
    }
    constants_.push_back(wanted);
    return begin;
  }
  int64_t size_bytes() const {
    int64_t out = 0;
    for (const npu::Constant& constant : constants_) out = scheduling::aligned(out) + constant.size_bytes;
    return out;
  }

 private:
  std::vector<npu::Constant>& constants_;
  Assembler& assembler_;
};

class NpuBackend final : public Backend {
 public:
  explicit NpuBackend(const DeviceSpec& spec) : Backend(spec), spec_(npu::parse_spec(spec.spec_json, spec.name)) {
    for (const auto& [op, entry] : spec_.ops) {
      demand_instructions(op, entry);
      table_[op] = {entry.dtypes, entry.limits, static_cast<int>(entry.max_rank)};
    }
    target::check_metric_names(name(), table_);
  }

  target::Support support(const ir::Node& node) const override {
    const Bindings bindings = target::trial_bindings(node);
    target::Support out = target::check_limits(node, "npu", name(), table_, bindings);
    // A rounding that a model states is kept on every device; one scale in and out needs none, and rows have one way.
    const auto stated = node.attrs().find(ops::kQuantRounding);
    const auto scales = [&] {
      const ops::Primitive computed = node.op().primitive;
      if (computed == ops::Primitive::softmax || computed == ops::Primitive::normalize) return false;
      const bool to_even = ops::stated_rounding(node.call()) == Rounding::half_even_fp32;
      if (computed == ops::Primitive::mean_pool && to_even) return true;
      return node.inputs().size() > 1 || node.input(0)->type().quant != node.output()->type().quant;
    };
    if (stated != node.attrs().end() && scales()) {
      const std::string& asked = std::get<std::string>(stated->second);
      std::string known;
      for (const auto& [rounding, called] : kRoundings) {
        if (spec_.numerics.rounds(rounding)) known += text(known.empty() ? "" : ", ", called);
      }
      const std::optional<Rounding> rounding = rounding_named(asked);
      if (!rounding || !spec_.numerics.rounds(*rounding))
        out.reasons.push_back({text(node.op().name, "_rounding"), asked, known,
                               text(name(), " would round the layer's integers otherwise than the model states")});
    }
    if (!out.ok()) return out;
    std::string why = scheduling::why_no_layer(node, bindings);
    if (why.empty()) {
      const ir::Node* const alone[] = {&node};
      try {
        streams_.cycles(scheduling::Network(alone, {}, bindings));
      } catch (const NodeDoesNotFit& error) {  // rare
        why = error.what();
      }
    }
    if (!why.empty())
      out.reasons.push_back({text(node.op().name, "_form"), to_string(node.output()->shape()),
                             "a form the instructions have", why.substr(0, why.find('\n'))});
    return out;
  }

  std::string deviation(const ir::Node& node) const override {
    using ops::Primitive;
    const ops::Type& type = node.output()->type();
    if (type.dtype != DType::i8 || !type.quant || ops::stated_rounding(node.call())) return {};
    const Primitive computed = node.op().primitive;
    if (computed == Primitive::softmax || computed == Primitive::normalize)
      return "computes its rows in integers: one in some ten thousand may be a step from the reals";
    const Rounding own = spec_.numerics.unstated();
    if (own == Rounding::half_even_fp32) return {};
    constexpr std::string_view kHalfway = "integers halfway between two, or nearly, may be a step apart";
    const std::string_view called =
        std::ranges::find(kRoundings, own, [](const auto& row) { return row.first; })->second;
    const std::string otherwise = text("rounds by ", called, ", not to even in f32 as its types mean it: ");
    switch (computed) {
      case Primitive::convolution:
      case Primitive::product:
        if (own == Rounding::single_rounding) return text(otherwise, kHalfway);
        return text(otherwise, "up to ", share_rounded_twice(node) * 100, " % of its integers may be a step apart");
      case Primitive::add:
      case Primitive::subtract:
      case Primitive::multiply:
      case Primitive::maximum:
      case Primitive::minimum:
      case Primitive::mean_pool:
        return text(otherwise, kHalfway);
      default:
        return {};
    }
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
               listed(row.layouts, scheduling::layout_of(*value));
      });
    };
    return std::none_of(node.outputs().begin(), node.outputs().end(), stays);
  }

  double time_us(const ir::Node& node, const Bindings& bindings) const override { return layer_us(node, {}, bindings); }

  double least_us(int64_t constant_bytes) const override {
    return static_cast<double>(constant_bytes) / spec_.constants().rate() / spec_.clock_hz * 1e6;
  }

  std::map<const ir::Node*, double> together_us(const ir::Graph& graph, const Bindings& bindings,
                                                const std::map<const ir::Node*, double>& alone_us, bool fusion,
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
    passes::fuse(copy, fusing(fusion, deterministic, bindings));
    std::vector<Layer> layers = passes::chains_of(copy);
    std::erase_if(layers, [&](const Layer& layer) { return !alone_us.contains(original.at(layer.front())); });
    std::set<const ir::Value*> outputs(copy.outputs().begin(), copy.outputs().end());
    for (const ir::Node* node : copy.nodes()) {
      if (node->subgraph != 0) outputs.insert(node->inputs().begin(), node->inputs().end());
    }
    if (layers.empty() || layers.size() > scheduling::kMostLayersSearched) return {};
    const std::vector<int64_t> cycles = streams_.layer_cycles({layers, outputs, {}, bindings});
    std::map<const ir::Node*, double> out;
    for (size_t k = 0; k < layers.size(); ++k) {
      double alone = 0;
      for (const ir::Node* node : layers[k]) alone += alone_us.at(original.at(node));
      const double together = static_cast<double>(cycles[k]) / spec_.clock_hz * 1e6;
      for (const ir::Node* node : layers[k]) {
        const double share =
            alone > 0 ? alone_us.at(original.at(node)) / alone : 1.0 / static_cast<double>(layers[k].size());
        out[original.at(node)] = together * share;
      }
    }
    return out;
  }

  double launch_us() const override { return spec_.launch_us; }

  passes::FuseOptions fusing(const LowerOptions& options, const Bindings& hints) const override {
    return fusing(options.fusion, options.deterministic, hints);
  }

  std::optional<double> launch_time_us(Launch launch, const LowerOptions& options,
                                       const Bindings& hints) const override {
    return layer_us(*launch.front(), scheduling::epilogue_of(launch, options.deterministic).value(), hints);
  }

  program::Subprogram lower(const ir::Graph&, Assembler&, const LowerOptions&) const override {
    program::Subprogram out;
    out.code = as_bytes({.spec_json = spec_json(), .constants = {}, .variants = {}});
    return out;
  }

  bool has_variants() const override { return true; }

  void add_variant(const ir::Graph& graph, const Bindings& all, program::Subprogram& subprogram, Assembler& assembler,
                   const LowerOptions& options) const override {
    npu::Code code = npu::read_code(subprogram.code.as_text(npu::kCodeVersion, subprogram.name), subprogram.name);
    if (std::any_of(code.variants.begin(), code.variants.end(),
                    [&](const auto& variant) { return variant.bindings == all; }))
      return;
    npu::Variant variant;
    variant.bindings = all;
    const scheduling::Network network = network_of(graph, all);
    SharedConstants constants(code.constants, assembler);
    scheduling::Packer packer(spec_, [&](const Tensor& tensor) { return constants.keep(tensor); });
    const scheduling::Schedule schedule =
        schedule_for(graph, network, all, given_schedule(options, subprogram.name, all));
    const scheduling::Stream stream = streams_.stream(network, schedule, packer);
    describe(network, schedule, variant);
    variant.lower_bound_cycles = scheduling::lower_bound_cycles(spec_, network);
    std::vector<uint64_t> words;
    write(stream, variant, words);
    variant.word_count = static_cast<int64_t>(words.size());
    variant.words_offset_bytes = assembler.blob(program::Blob(std::move(words)));
    refuse_above_memory(variant, constants.size_bytes(), all);
    auto ports = [&](const std::vector<ir::Value*>& values) {
      std::vector<npu::Port> out;
      out.reserve(values.size());
      for (const ir::Value* value : values) {
        out.push_back({assembler.boundary(value->name()), schedule.homes[network.frame(*value).storage].offset_bytes,
                       value->dtype(), scheduling::layout_of(*value)});
      }
      return out;
    };
    variant.inputs = ports(graph.inputs());
    variant.outputs = ports(graph.outputs());
    code.variants.push_back(std::move(variant));
    subprogram.code = as_bytes(code);
  }

 private:
  // What a first rounding may bring over a half: a unit before the shift to the right.
  static double share_rounded_twice(const ir::Node& node) {
    const ops::Quant &x = *node.input(0)->type().quant, &w = *node.input(1)->type().quant;
    double most = 0;
    for (const double scale : w.scales) most = std::max(most, scale);
    int exponent = 0;
    std::frexp(x.scale() * most / node.output()->type().quant->scale(), &exponent);
    return std::ldexp(1, std::min(exponent, 0));
  }

  static program::Code as_bytes(const npu::Code& code) {
    return program::Code::of_text("npu", npu::kCodeVersion, npu::write_code(code));
  }

  // A sheet lists what its engines compute.
  void demand_instructions(const std::string& op, const npu::OpEntry& entry) const {
    std::string idle, able;
    for (const DType dtype : kAllDTypes) {
      const bool listed = std::find(entry.dtypes.begin(), entry.dtypes.end(), dtype) != entry.dtypes.end(),
                 has = scheduling::has_instruction(*ops::OpTable::global().find(op), dtype);
      if (has) able += text(able.empty() ? "" : ", ", dtype_name(dtype));
      if (listed && !has) idle += text(idle.empty() ? "" : ", ", dtype_name(dtype));
    }
    if (idle.empty()) return;
    throw InvalidModel(text(name(), ": ops.", op, " lists ", idle, ", for which the NPU has no instruction; ",
                            able.empty() ? text("no type of ", op, " has one. Leave the operator out")
                                         : text("it has some for ", able, ". List those alone"),
                            ", and such nodes run on other devices."));
  }

  // The time of one layer by itself.
  double layer_us(const ir::Node& anchor, const scheduling::Epilogue& epilogue, const Bindings& bindings) const {
    const ir::Node* const alone[] = {&anchor};
    return static_cast<double>(streams_.cycles(scheduling::Network(alone, epilogue, bindings))) / spec_.clock_hz * 1e6;
  }

  static std::optional<std::string> given_schedule(const LowerOptions& options, const std::string& subgraph,
                                                   const Bindings& bindings) {
    for (ScheduleSection& section : read_sections(options.schedule)) {
      if (section.subgraph == subgraph && section.bindings == bindings) return std::move(section.body);
    }
    return std::nullopt;
  }

  static scheduling::Network network_of(const ir::Graph& graph, const Bindings& bindings) {
    return {passes::chains_of(graph), {graph.outputs().begin(), graph.outputs().end()}, graph.inputs(), bindings};
  }

  // Streams for other sizes share the weights that are packed for the hints.
  scheduling::Schedule schedule_for(const ir::Graph& graph, const scheduling::Network& network,
                                    const Bindings& bindings, const std::optional<std::string>& given) const {
    if (given) return scheduling::read_schedule(spec_, network, *given);
    const Bindings& hints = graph.hints();
    if (bindings == hints) return streams_.schedule(network);
    const scheduling::Schedule packed = streams_.schedule(network_of(graph, hints));
    return streams_.schedule_as(network, packed);
  }

  static void describe(const scheduling::Network& network, const scheduling::Schedule& schedule,
                       npu::Variant& variant) {
    variant.dram_bytes = schedule.arena_bytes;
    variant.schedule = scheduling::schedule_text(network, schedule);
    for (const scheduling::Layer& layer : network.layers())
      variant.layers.push_back({.node = layer.node().name(), .op = std::string(layer.node().op().name)});
    int64_t cascades = 0;
    for (const scheduling::Group& group : schedule.groups) {
      for (size_t k = group.first; k < group.first + group.count; ++k)
        variant.layers[k].tile = scheduling::tile_text(group);
      for (size_t k = group.first; group.count > 1 && k < group.first + group.count; ++k)
        variant.layers[k].cascade = cascades;
      cascades += group.count > 1;
    }
  }

  // The words, and what each layer takes.
  void write(const scheduling::Stream& stream, npu::Variant& variant, std::vector<uint64_t>& words) const {
    npu::Clock clock(spec_);
    for (size_t k = 0; k < stream.instructions.size(); ++k) {
      const npu::Instruction& instruction = stream.instructions[k];
      npu::Layer& layer = variant.layers[stream.layers[k]];
      const int64_t begin = clock.now_cycles(), moved = clock.totals().dma_bytes;
      const double macs = clock.totals().macs;
      clock.step(instruction);
      variant.sram_peak_bytes = std::max(variant.sram_peak_bytes, npu::sram_reach_bytes(instruction));
      layer.cycles += clock.now_cycles() - begin;
      layer.dma_bytes += clock.totals().dma_bytes - moved;
      layer.macs += static_cast<int64_t>(clock.totals().macs - macs);
      if (const auto* load = std::get_if<npu::DmaLoad>(&instruction);
          load && load->region == static_cast<int64_t>(npu::Region::weights))
        layer.weight_bytes += clock.totals().dma_bytes - moved;
      const auto first = static_cast<int64_t>(words.size());
      npu::encode(instruction, words);
      const auto owner = static_cast<int64_t>(stream.layers[k]), count = static_cast<int64_t>(words.size()) - first;
      if (!variant.runs.empty() && variant.runs.back().layer == owner)
        variant.runs.back().words += count;
      else
        variant.runs.push_back({owner, count});
    }
    npu::encode(npu::End{}, words);
    variant.cycles = clock.now_cycles();
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
    const std::optional<scheduling::Epilogue> without = scheduling::epilogue_of(launch, deterministic),
                                              with = scheduling::epilogue_of(together, deterministic);
    if (!with) return false;
    if (with->addend == without->addend) return true;  // an activation takes no time
    if (!spec_.mac.adds_map) return false;
    const ir::Node& anchor = *launch.front();
    return layer_us(anchor, *with, hints) <= layer_us(anchor, *without, hints) + layer_us(follower, {}, hints);
  }

  // Constants and the stream lie in flash where there is one, else beside the arena.
  void refuse_above_memory(const npu::Variant& variant, int64_t constant_bytes, const Bindings& bindings) const {
    const int64_t words_bytes = variant.word_count * static_cast<int64_t>(sizeof(uint64_t)),
                  kept_bytes = constant_bytes + words_bytes;
    const auto demand = [&](const npu::Memory& memory, std::string_view called, int64_t needed_bytes) {
      if (memory.bytes == 0 || needed_bytes <= memory.bytes) return;
      std::string sizes;
      for (const auto& [symbol, value] : bindings) sizes += text(sizes.empty() ? " at " : ", ", symbol, " = ", value);
      throw DoesNotFit(text("a subgraph takes ", needed_bytes, " bytes", sizes, " (of ", variant.dram_bytes,
                            " of activations, ", constant_bytes, " of constants, ", words_bytes,
                            " of instructions); the ", called, " of ", name(), " has ", memory.bytes,
                            ". Smaller subgraphs or a target with more memory would do."));
    };
    demand(spec_.dram, spec_.flash ? "dram" : "memory", variant.dram_bytes + (spec_.flash ? 0 : kept_bytes));
    if (spec_.flash) demand(*spec_.flash, "flash", kept_bytes);
  }

  const npu::Spec spec_;
  mutable scheduling::Streams streams_{spec_};
  target::OpLimitsTable table_;
};

}  // namespace

std::unique_ptr<Backend> make_npu_backend(const DeviceSpec& spec) { return std::make_unique<NpuBackend>(spec); }

}  // namespace hetnn::backends
