// Reads, writes and describes specs as JSON. One table of fields serves the reader, the writer and the schema.
#include <algorithm>
#include <functional>

#include "hetnn/base/json_fields.h"
#include "hetnn/base/nearest_names.h"
#include "hetnn/npu/code.h"
#include "hetnn/npu/spec.h"
#include "hetnn/ops/op_def.h"

namespace hetnn::npu {
namespace {

using json::At;
using json::Convert;
using json::Fields;
using json::Json;
using json::object;
using json::Presence;

constexpr Presence kOptional = Presence::optional;
constexpr double kMost = 1e12;

// Figures are bounded so that any chip fits and products of two stay in 64 bits.
Convert<int64_t> integer(int64_t least) { return json::integer(least, static_cast<int64_t>(kMost)); }
Convert<double> number(double least) { return json::number({.least = least, .most = kMost}); }

using Limits = decltype(OpEntry::limits);
using Operators = decltype(Spec::ops);
using Sources = decltype(Spec::provenance);

template <typename T>
Convert<std::map<DType, T>> by_dtype(Convert<T> figure) {
  std::vector<std::string_view> names;
  for (DType dtype : kAllDTypes) names.push_back(dtype_name(dtype));
  return {[=](const At& at, std::map<DType, T>& into) {
            at.each_entry([&](const std::string& key, const At& entry) {
              const auto dtype = dtype_from_name(key);
              if (!dtype) at.unknown("element type", key, names);
              figure.read(entry, into[*dtype]);
            });
          },
          [=](const std::map<DType, T>& from) {
            Json out = Json::object();
            for (const auto& [dtype, value] : from) out[std::string(dtype_name(dtype))] = figure.write(value);
            return out.empty() ? Json() : out;
          },
          {{"type", "object"}, {"additionalProperties", figure.schema}}};
}

// One figure is that of every type.
Convert<std::map<DType, double>> one_or_by_dtype(Convert<double> figure) {
  const Convert<std::map<DType, double>> entries = by_dtype(figure);
  Json schema = {{"anyOf", {figure.schema, entries.schema}}};
  return {[=](const At& at, std::map<DType, double>& into) {
            if (!at.json.is_number()) return entries.read(at, into);
            for (const DType dtype : kAllDTypes) figure.read(at, into[dtype]);
          },
          [=](const std::map<DType, double>& from) {
            const bool all = from.size() == std::size(kAllDTypes) &&
                             std::all_of(from.begin(), from.end(),
                                         [&](const auto& entry) { return entry.second == from.begin()->second; });
            return all ? figure.write(from.begin()->second) : entries.write(from);
          },
          std::move(schema)};
}

// One figure is that of every name, and stands under none.
Convert<std::map<std::string, double, std::less<>>> one_or_by_name(Convert<double> figure) {
  using Figures = std::map<std::string, double, std::less<>>;
  const Convert<Figures> entries = json::map_of<Figures>(figure);
  Json schema = {{"anyOf", {figure.schema, entries.schema}}};
  return {[=](const At& at, Figures& into) {
            if (!at.json.is_number()) return entries.read(at, into);
            figure.read(at, into[""]);
          },
          [=](const Figures& from) {
            if (from.empty()) return Json();
            return from.begin()->first.empty() ? figure.write(from.begin()->second) : entries.write(from);
          },
          std::move(schema)};
}

// Left out where it holds.
Convert<bool> true_if_absent() {
  Convert<bool> out = json::truth();
  out.write = [](bool value) { return value ? Json() : Json(false); };
  return out;
}

// Which scratchpads an engine reaches, by the names of its operands.
Convert<Reach> reach(std::vector<std::pair<std::string_view, Operand>> operands) {
  const Convert<std::vector<std::string>> names = json::list_of(json::word(), 1, "names of scratchpads");
  Json properties = Json::object();
  std::vector<std::string_view> known;
  for (const auto& [name, operand] : operands) {
    properties[std::string(name)] = names.schema;
    known.push_back(name);
  }
  return {[=](const At& at, Reach& into) {
            at.each_entry([&](const std::string& key, const At& entry) {
              const auto found =
                  std::find_if(operands.begin(), operands.end(), [&](const auto& row) { return row.first == key; });
              if (found == operands.end()) at.unknown("operand", key, known);
              names.read(entry, into[static_cast<size_t>(found->second)]);
            });
          },
          [=](const Reach& from) {
            Json out = Json::object();
            for (const auto& [name, operand] : operands) {
              if (const auto& listed = from[static_cast<size_t>(operand)]; !listed.empty())
                out[std::string(name)] = names.write(listed);
            }
            return out.empty() ? Json() : out;
          },
          {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}};
}

const Fields<Mac>& mac_fields() {
  static const Fields<Mac> fields = {
      {"kind", &Mac::kind, json::one_of<MacKind>({{"systolic", MacKind::systolic}, {"dot_block", MacKind::dot_block}}),
       "how the multipliers are arranged: systolic or dot_block"},
      {"rows", &Mac::rows, integer(1), "systolic: rows of the array", kOptional},
      {"cols", &Mac::cols, integer(1), "systolic: columns of the array", kOptional},
      {"dataflow", &Mac::dataflow,
       json::one_of<Dataflow>({{"ws", Dataflow::ws}, {"os", Dataflow::os}, {"is", Dataflow::is}}),
       "systolic: the operand that stays", kOptional},
      {"weight_preload", &Mac::preload_hidden, json::one_of<bool>({{"exposed", false}, {"hidden", true}}),
       "systolic: whether loading the stationary operand takes time of its own", kOptional},
      {"macs_per_cycle", &Mac::macs_per_cycle, integer(1), "dot_block: multiply-accumulates of one step", kOptional},
      {"block_height", &Mac::block_height, integer(1), "dot_block: output rows of one step", kOptional},
      {"block_width", &Mac::block_width, integer(1), "dot_block: output columns of one step", kOptional},
      {"block_channels", &Mac::block_channels, integer(1), "dot_block: output channels of one step", kOptional},
      {"min_block_cycles", &Mac::min_block_cycles, integer(0), "dot_block: least cycles of one output block",
       kOptional},
      {"step_cycles", &Mac::step_cycles, by_dtype(integer(1)), "cycles of one step by element type; 1 where absent",
       kOptional},
      {"accumulator_bytes", &Mac::accumulator_bytes, integer(0),
       "bytes for the sums of one instruction, 4 for each; 0 or absent: as many as are needed", kOptional},
      {"adds_map", &Mac::adds_map, true_if_absent(),
       "whether it can add a second map of the scratchpad to its result; else sums are layers of their own", kOptional},
      {"memories", &Mac::reach,
       reach({{"maps", Operand::maps},
              {"weights", Operand::weights},
              {"sums", Operand::sums},
              {"results", Operand::results}}),
       "names of scratchpads by operand: where it reads maps and weights (with biases and factors), keeps sums and "
       "writes results; all where absent",
       kOptional},
  };
  return fields;
}

// A second figure that is left out where it is 0.
Convert<double> if_given(Convert<double> figure) {
  Convert<double> out = figure;
  out.write = [write = out.write](double value) { return value > 0 ? write(value) : Json(); };
  return out;
}

const Fields<Memory>& sram_fields() {
  static const Fields<Memory> fields = {
      {"name", &Memory::name, json::unless_empty(json::word()), "what engines call it; needed of several", kOptional},
      {"bytes", &Memory::bytes, integer(1), "capacity in bytes"},
      {"banks", &Memory::banks, integer(1), "banks, at which an engine reads and writes side by side", kOptional},
      {"ports", &Memory::ports, integer(1), "ports of each bank", kOptional},
      {"bytes_per_cycle", &Memory::bytes_per_cycle, number(1e-6),
       "bytes that a port moves in a cycle; an instruction takes as long at least as what it reads and writes does"},
      {"read_latency_cycles", &Memory::read_latency_cycles, integer(0), "cycles before an instruction's first operand",
       kOptional},
      {"write_latency_cycles", &Memory::write_latency_cycles, integer(0), "cycles behind an instruction's last result",
       kOptional}};
  return fields;
}

const Fields<Memory>& dram_fields() {
  static const Fields<Memory> fields = {
      {"bytes", &Memory::bytes, integer(0), "capacity in bytes; 0 or absent: as much as is needed", kOptional},
      {"bytes_per_cycle", &Memory::bytes_per_cycle, number(1e-6), "bytes moved in a cycle at most"},
      {"read_latency_cycles", &Memory::read_latency_cycles, integer(0), "cycles before the first byte is read",
       kOptional},
      {"burst_bytes", &Memory::burst_bytes, integer(1), "bytes of one burst; shorter runs take a whole one", kOptional},
      {"write_latency_cycles", &Memory::write_latency_cycles, integer(0), "cycles before the first byte is written",
       kOptional},
      {"write_bytes_per_cycle", &Memory::write_bytes_per_cycle, if_given(number(1e-6)),
       "bytes written in a cycle at most; absent: as many as are read", kOptional}};
  return fields;
}
// The same without what is said of writing.
const Fields<Memory>& flash_fields() {
  static const std::vector<json::Row>& rows = dram_fields().rows();
  static const Fields<Memory> fields = {rows[0], rows[1], rows[2], rows[3]};
  return fields;
}

const Fields<Dma>& dma_fields() {
  static const Fields<Dma> fields = {
      {"channels", &Dma::channels, integer(1), "channels: 1, for transfers go one behind the other", kOptional},
      {"max_outstanding", &Dma::max_outstanding, integer(1),
       "transfers on their way at once; of more than one only the first one's latency is waited for", kOptional},
      {"align_bytes", &Dma::align_bytes, integer(1), "alignment of addresses: a divisor of 64, where everything lies",
       kOptional},
      {"memories", &Dma::reach, reach({{"loads", Operand::loads}, {"stores", Operand::stores}}),
       "names of scratchpads: into which it loads and from which it stores; all where absent", kOptional}};
  return fields;
}

const Fields<Vector>& vector_fields() {
  static const Fields<Vector> fields = {
      {"lanes", &Vector::lanes, integer(1), "elements worked on at once"},
      {"elem_cycles", &Vector::elem_cycles, one_or_by_dtype(number(0)),
       "cycles of an elementwise operation in each lane: one figure, or by element type; 1 where absent", kOptional},
      {"act_cycles", &Vector::act_cycles, one_or_by_dtype(number(0)),
       "cycles of an activation in each lane: one figure, or by element type; 1 where absent", kOptional},
      {"softmax_cycles", &Vector::softmax_cycles, json::maybe(number(0)),
       "cycles of an element of a softmax in each lane; demanded where 'ops' lists softmax", kOptional},
      {"normalize_cycles", &Vector::normalize_cycles, json::maybe(number(0)),
       "cycles of an element of a normalization in each lane; demanded where 'ops' lists layer_norm", kOptional},
      {"row_cycles", &Vector::row_cycles, number(0), "cycles of each row of either besides", kOptional},
      {"memories", &Vector::reach, reach({{"maps", Operand::maps}, {"results", Operand::results}}),
       "names of scratchpads by operand: where it reads maps (with tables and factors) and writes results; all where "
       "absent",
       kOptional}};
  return fields;
}

const Fields<Spec>& launch_fields() {
  static const Fields<Spec> fields = {{"host_us", &Spec::launch_us, number(0), "host time of one launch, in us"}};
  return fields;
}

const Fields<Numerics>& numerics_fields() {
  static const Fields<Numerics> fields = {
      {"rounding", &Numerics::roundings, json::one_or_more(json::one_of<Rounding>([] {
         std::vector<std::pair<std::string_view, Rounding>> choices;
         for (const auto& [rounding, name] : kRoundings) choices.emplace_back(name, rounding);
         return choices;
       }())),
       "how int8 is requantized: one, or those that the engines know. Of a layer that states none half_even_fp32, "
       "where it is "
       "among them, else the first",
       kOptional},
      {"acc", &Numerics::accumulate, json::one_of<std::string>({{"f32", "f32"}}), "accumulator of f16 and f32",
       kOptional},
      {"order", &Numerics::order, json::one_of<std::string>({{"kernel_channel", "kernel_channel"}}),
       "order of sums: kernel row, kernel column, input channel", kOptional}};
  return fields;
}

// Bounds on metrics, whose names say which bound they are.
Convert<Limits> limits() {
  Convert<Limits> out = json::unless_empty(json::map_of<Limits>(number(0)));
  out.read = [read = out.read](const At& at, Limits& into) {
    at.each_entry([&](const std::string& key, const At&) {
      if (key.ends_with("_max") || key.ends_with("_min")) return;
      at.fail(text("has the key '", key, "'; expected a metric followed by _max or _min, such as kernel_h_max"));
    });
    read(at, into);
  };
  return out;
}

const Fields<OpEntry>& op_fields() {
  static const Fields<OpEntry> fields = {
      {"dtypes", &OpEntry::dtypes, json::list_of(json::dtype(), 1, "element types"), "a list of element types"},
      {"limits", &OpEntry::limits, limits(),
       "bounds on the operator's metrics: kernel_h_max, stride_w_max, channels_max, ...", kOptional},
      {"max_rank", &OpEntry::max_rank, integer(0), "largest rank of an operand; 0: no bound", kOptional}};
  return fields;
}

Convert<Layout> layout() {
  return json::one_of<Layout>({{layout_name(Layout::plain), Layout::plain}, {layout_name(Layout::nhwc), Layout::nhwc}});
}

const Fields<NonExportable>& non_exportable_fields() {
  static const Fields<NonExportable> fields = {
      {"ops", &NonExportable::ops, json::unless_empty(json::list_of(json::word())),
       "names of operators; all where absent", kOptional},
      {"dtypes", &NonExportable::dtypes, json::unless_empty(json::list_of(json::dtype())),
       "element types; all where absent", kOptional},
      {"layouts", &NonExportable::layouts, json::unless_empty(json::list_of(layout())),
       "plain or nhwc; both where absent", kOptional}};
  return fields;
}

const Fields<Energy>& energy_fields() {
  static const Fields<Energy> fields = {
      {"mac", &Energy::mac, by_dtype(number(0)),
       "pJ of one multiply-accumulate by element type; one that is left out counts 0", kOptional},
      {"sram_byte", &Energy::sram_byte, one_or_by_name(number(0)),
       "pJ of one byte of scratchpad traffic: one figure, or by the scratchpad's name", kOptional},
      {"dram_byte", &Energy::dram_byte, number(0), "pJ of one byte of DRAM traffic", kOptional},
      {"flash_byte", &Energy::flash_byte, number(0), "pJ of one byte read of flash", kOptional},
      {"vector_op", &Energy::vector_op, one_or_by_dtype(number(0)),
       "pJ of one element of the vector engine: one figure, or by element type", kOptional},
      {"source", &Energy::source, json::word(), "a sentence that says where the figures come from"}};
  return fields;
}

Convert<Spec> schema() {
  // All keys of 1 are keys of 2, so that older sheets are read by the same table.
  constexpr int kOldest = 1, kNewest = 2;
  return {[=](const At& at, Spec&) {
            if (at.json != kOldest && at.json != kNewest) at.wrong(text(kNewest));
          },
          [=](const Spec&) { return Json(kNewest); },
          {{"enum", {kOldest, kNewest}}}};
}

// Left out where it does not hold.
Convert<bool> if_true() {
  Convert<bool> out = json::truth();
  out.write = [](bool value) { return value ? Json(true) : Json(); };
  return out;
}

// Left out where nothing is known about it.
Convert<Energy> energy() {
  Convert<Energy> out = object(energy_fields);
  out.write = [write = out.write](const Energy& from) { return from.source.empty() ? Json() : write(from); };
  return out;
}

const Fields<Spec>& spec_fields() {
  static const Fields<Spec> fields = {
      {"schema", schema(), "2, the version of the format; 1 had fewer keys"},
      {"name", &Spec::name, json::word(), "the device's name"},
      {"clock_hz", &Spec::clock_hz, number(1), "cycles a second"},
      {"cores", &Spec::cores, integer(1),
       "cores with a mac and a vector engine each, to which what an instruction computes is dealt; they share the "
       "rest"},
      {"mac", &Spec::mac, object(mac_fields), "the engine for convolution and matrix multiplication"},
      {"sram", &Spec::sram, json::list_of(object(sram_fields), 1, "memories"),
       "scratchpads: memories that the engines work from, at most 4. What each engine reads and writes where is said "
       "in its 'memories'"},
      {"dram", &Spec::dram, object(dram_fields), "the memory where inputs, results and, without flash, constants lie"},
      {"flash", &Spec::flash, json::maybe(object(flash_fields)), "a memory that is only read, where constants lie",
       kOptional},
      {"dma", &Spec::dma, object(dma_fields), "what moves data between the memories", kOptional},
      {"vector", &Spec::vector, object(vector_fields), "the engine for everything else"},
      {"launch", object(launch_fields), "what a launch costs", kOptional},
      {"paced", &Spec::paced, if_true(), "a run takes by the clock what is predicted, not what its simulation takes",
       kOptional},
      {"ops", &Spec::ops, json::map_of<Operators>(object(op_fields), 1, "operators"),
       "an object of operators: name, element types, limits"},
      {"non_exportable", &Spec::non_exportable, json::unless_empty(json::list_of(object(non_exportable_fields))),
       "results that may not leave the device, a row a kind: their nodes run here beside all that read them, or "
       "elsewhere",
       kOptional},
      {"numerics", &Spec::numerics, object(numerics_fields), "how results round", kOptional},
      {"energy_pj", &Spec::energy_pj, energy(), "energy of single actions, in pJ; 0 is not counted", kOptional},
      {"provenance", &Spec::provenance, json::map_of<Sources>(json::word(), 1, "sources by the path of a figure"),
       "an object from paths of figures to where they come from; a guess says so"},
  };
  return fields;
}

// What several figures must be together.
void check_whole(const Spec& spec, std::string_view where) {
  auto demand = [&](bool holds, const std::string& path, const std::string& message) {
    if (!holds) throw InvalidModel(text(where, ": ", path, " ", message, "."));
  };
  if (spec.mac.kind == MacKind::systolic) {
    demand(spec.mac.rows > 0 && spec.mac.cols > 0, "mac", "lacks 'rows' and 'cols'; a systolic array needs both");
    demand(spec.mac.rows <= 4096 && spec.mac.cols <= 4096, "mac",
           text("has ", spec.mac.rows, "x", spec.mac.cols, " multipliers; at most 4096x4096 are expected"));
  } else {
    demand(spec.mac.macs_per_cycle > 0, "mac", "lacks 'macs_per_cycle'; a dot_block needs it");
    const int64_t block = spec.mac.block_height * spec.mac.block_width * spec.mac.block_channels;
    demand(spec.mac.block_height <= 4096 && spec.mac.block_width <= 4096 && spec.mac.block_channels <= 4096 &&
               spec.mac.macs_per_cycle % block == 0,
           "mac.macs_per_cycle",
           text("must be a multiple of the block's ", block, " outputs; found ", spec.mac.macs_per_cycle));
  }
  const auto demand_operator = [&](const std::string& name, const std::string& path) {
    if (ops::OpTable::global().find(name)) return;
    std::vector<std::string_view> known;
    for (const ops::OpDef* op : ops::OpTable::global().all()) known.push_back(op->name);
    std::string nearest;
    for (std::string_view other : nearest_names(name, known, 3)) nearest += text(nearest.empty() ? "" : ", ", other);
    demand(false, path, text("is no operator of hetnn; the nearest names are ", nearest));
  };
  for (const auto& [name, entry] : spec.ops) demand_operator(name, text("ops.", name));
  const auto demand_figure = [&](ops::Primitive computed, const std::optional<double>& figure, std::string_view key) {
    for (const auto& [name, entry] : spec.ops) {
      const bool lists = ops::OpTable::global().get(name).primitive == computed &&
                         std::find(entry.dtypes.begin(), entry.dtypes.end(), DType::i8) != entry.dtypes.end();
      demand(figure || !lists, "vector",
             text("lacks '", key, "', which ops.", name, " needs. State it, or leave the operator out"));
    }
  };
  demand_figure(ops::Primitive::softmax, spec.vector.softmax_cycles, "softmax_cycles");
  demand_figure(ops::Primitive::normalize, spec.vector.normalize_cycles, "normalize_cycles");
  for (size_t k = 0; k < spec.non_exportable.size(); ++k) {
    for (const std::string& name : spec.non_exportable[k].ops)
      demand_operator(name, text("non_exportable[", k, "].ops: ", name));
  }
  demand(spec.dma.channels == 1, "dma.channels",
         text("is ", spec.dma.channels, "; 1 is expected. Several transfers at once are 'max_outstanding'"));
  demand(
      kConstantAlignment % spec.dma.align_bytes == 0, "dma.align_bytes",
      text("is ", spec.dma.align_bytes, "; a divisor of ", kConstantAlignment, " is expected, where everything lies"));
}

}  // namespace

Spec parse_spec(std::string_view text, std::string_view where) {
  const Json document = json::parse(text, kNpuSheetJson, where);
  Spec spec = spec_fields().value({document, kNpuSheetJson, where});
  check_whole(spec, where);
  spec.find_homes(where);
  return spec;
}

std::string spec_to_json(const Spec& spec) {
  Json document = spec_fields().write(spec);
  // Fields of the other kind of engine hold no figure.
  const bool systolic = spec.mac.kind == MacKind::systolic;
  for (const char* key : {"macs_per_cycle", "block_height", "block_width", "block_channels", "min_block_cycles"}) {
    if (systolic) document["mac"].erase(key);
  }
  for (const char* key : {"rows", "cols", "dataflow", "weight_preload"}) {
    if (!systolic) document["mac"].erase(key);
  }
  return document.dump(2) + "\n";
}

std::string spec_schema() { return json::schema_text("The data sheet of an NPU", spec_fields().schema()); }

std::vector<std::string> figures_without_source(std::string_view text) {
  const Json document = json::parse(text, kNpuSheetJson, "spec");
  const Json provenance = document.value("provenance", Json::object());
  std::vector<std::string> uncovered;
  std::function<void(const Json&, const std::string&, bool)> visit = [&](const Json& node, const std::string& path,
                                                                         bool covered) {
    covered = covered || (!path.empty() && provenance.contains(path));
    if (node.is_number() && !covered && path != "schema") uncovered.push_back(path);
    if (node.is_array()) {
      for (size_t k = 0; k < node.size(); ++k) visit(node[k], path + "[" + std::to_string(k) + "]", covered);
    } else if (node.is_object()) {
      covered = covered || node.contains("source");
      for (const auto& [key, value] : node.items()) {
        if (path.empty() && key == "provenance") continue;
        visit(value, path.empty() ? key : hetnn::text(path, ".", key), covered);
      }
    }
  };
  visit(document, "", false);
  return uncovered;
}

}  // namespace hetnn::npu
