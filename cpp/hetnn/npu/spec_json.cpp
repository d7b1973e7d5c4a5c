// Reads, writes and describes specs as JSON. One table of fields serves the reader, the writer and the schema.
#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "hetnn/base/error.h"
#include "hetnn/base/nearest_names.h"
#include "hetnn/npu/spec.h"

namespace hetnn::npu {
namespace {

using Json = nlohmann::ordered_json;

// Bound on integers of a spec: large enough for any chip, small enough that products of two stay in 64 bits.
constexpr double kMost = 1e12;

// A cursor into the document that knows its path, for messages.
struct At {
  const Json& json;
  std::string where;  // what messages call the document
  std::string path;

  [[noreturn]] void fail(const std::string& message) const {
    throw InvalidModel(text(where, ": ", path.empty() ? "the document" : path, " ", message));
  }
  At child(const std::string& key) const { return {json.at(key), where, path.empty() ? key : path + "." + key}; }
  At item(size_t k) const { return {json.at(k), where, text(path, "[", k, "]")}; }
};

std::string found(const Json& json) {
  std::string dump = json.dump();
  if (dump.size() > 60) dump = dump.substr(0, 57) + "...";
  return text("found ", json.type_name(), " ", dump);
}

std::string suggestion(std::string_view wrong, const std::vector<std::string>& known) {
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
  const std::vector<std::string_view> nearest = nearest_names(wrong, {known.begin(), known.end()}, 1);
  const bool near = !nearest.empty() && edit_distance(wrong, nearest[0]) <= std::max<size_t>(2, wrong.size() / 3);
  return near ? text("did you mean '", nearest[0], "'? Known are ", list) : text("known are ", list);
}

// One field of an object: how to read it, write it and describe it.
template <typename T>
struct Field {
  std::string name;
  bool required;
  std::function<void(const At&, T&)> read;
  std::function<Json(const T&)> write;  // null JSON: leave it out
  Json schema;
};
template <typename T>
using Fields = std::vector<Field<T>>;

template <typename T>
void read_object(const At& at, const Fields<T>& fields, T& into) {
  if (!at.json.is_object()) at.fail(text("must be an object; ", found(at.json)));
  std::vector<std::string> known;
  for (const auto& field : fields) known.push_back(field.name);
  for (const auto& [key, value] : at.json.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      at.fail(text("has the unknown key '", key, "'; ", suggestion(key, known)));
    }
  }
  for (const auto& field : fields) {
    if (at.json.contains(field.name)) {
      field.read(at.child(field.name), into);
    } else if (field.required) {
      at.fail(text("lacks '", field.name, "'; expected ", field.schema.value("description", field.schema.dump())));
    }
  }
}

template <typename T>
Json write_object(const T& from, const Fields<T>& fields) {
  Json out = Json::object();
  for (const auto& field : fields) {
    if (Json value = field.write(from); !value.is_null()) out[field.name] = std::move(value);
  }
  return out;
}

template <typename T>
Json object_schema(const Fields<T>& fields) {
  Json properties = Json::object(), required = Json::array();
  for (const auto& field : fields) {
    properties[field.name] = field.schema;
    if (field.required) required.push_back(field.name);
  }
  Json out = {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  if (!required.empty()) out["required"] = required;
  return out;
}

double read_number(const At& at, double least, double most) {
  if (!at.json.is_number()) at.fail(text("must be a number in [", least, ", ", most, "]; ", found(at.json)));
  const double value = at.json.get<double>();
  if (!(value >= least && value <= most)) at.fail(text("must be in [", least, ", ", most, "]; found ", value));
  return value;
}

int64_t read_integer(const At& at, double least, double most) {
  if (!at.json.is_number_integer()) {
    at.fail(text("must be an integer in [", least, ", ", most, "]; ", found(at.json)));
  }
  return static_cast<int64_t>(read_number(at, least, most));
}

std::string read_string(const At& at) {
  if (!at.json.is_string() || at.json.get<std::string>().empty()) {
    at.fail(text("must be a string that is not empty; ", found(at.json)));
  }
  return at.json.get<std::string>();
}

DType read_dtype(const At& at) {
  const std::string name = read_string(at);
  const auto dtype = dtype_from_name(name);
  std::vector<std::string> known;
  for (DType each : kAllDTypes) known.emplace_back(dtype_name(each));
  if (!dtype) at.fail(text("must be an element type; found '", name, "'; ", suggestion(name, known)));
  return *dtype;
}

template <typename T>
Field<T> integer(const char* name, int64_t T::*member, double least, const char* doc, bool required = true) {
  return {name,
          required,
          [=](const At& at, T& into) { into.*member = read_integer(at, least, kMost); },
          [=](const T& from) { return Json(from.*member); },
          {{"type", "integer"}, {"minimum", least}, {"maximum", kMost}, {"description", doc}}};
}

template <typename T>
Field<T> number(const char* name, double T::*member, double least, const char* doc, bool required = true) {
  return {name,
          required,
          [=](const At& at, T& into) { into.*member = read_number(at, least, kMost); },
          [=](const T& from) { return Json(from.*member); },
          {{"type", "number"}, {"minimum", least}, {"maximum", kMost}, {"description", doc}}};
}

template <typename T, typename E>
Field<T> choice(const char* name, E T::*member, std::vector<std::pair<const char*, E>> choices, const char* doc,
                bool required = true) {
  Json names = Json::array();
  std::vector<std::string> known;
  for (const auto& [key, value] : choices) {
    names.push_back(key);
    known.emplace_back(key);
  }
  return {name,
          required,
          [=](const At& at, T& into) {
            const std::string word = read_string(at);
            for (const auto& [key, value] : choices) {
              if (word == key) {
                into.*member = value;
                return;
              }
            }
            at.fail(text("is '", word, "'; ", suggestion(word, known)));
          },
          [=](const T& from) {
            for (const auto& [key, value] : choices) {
              if (value == from.*member) return Json(key);
            }
            return Json();
          },
          {{"enum", names}, {"description", doc}}};
}

template <typename T, typename S>
Field<T> nested(const char* name, S T::*member, const Fields<S>& (*fields)(), bool required = true) {
  return {name, required, [=](const At& at, T& into) { read_object(at, fields(), into.*member); },
          [=](const T& from) { return write_object(from.*member, fields()); }, object_schema(fields())};
}

const Fields<Mac>& mac_fields() {
  static const Fields<Mac> fields = {
      choice<Mac, MacKind>("kind", &Mac::kind, {{"systolic", MacKind::systolic}, {"dot_block", MacKind::dot_block}},
                           "how the multipliers are arranged: systolic or dot_block"),
      integer("rows", &Mac::rows, 1, "systolic: rows of the array", false),
      integer("cols", &Mac::cols, 1, "systolic: columns of the array", false),
      choice<Mac, Dataflow>("dataflow", &Mac::dataflow,
                            {{"ws", Dataflow::ws}, {"os", Dataflow::os}, {"is", Dataflow::is}},
                            "systolic: the operand that stays", false),
      choice<Mac, bool>("weight_preload", &Mac::preload_hidden, {{"exposed", false}, {"hidden", true}},
                        "systolic: whether loading the stationary operand takes time of its own", false),
      integer("macs_per_cycle", &Mac::macs_per_cycle, 1, "dot_block: multiply-accumulates of one step", false),
      integer("block_height", &Mac::block_height, 1, "dot_block: output rows of one step", false),
      integer("block_width", &Mac::block_width, 1, "dot_block: output columns of one step", false),
      integer("block_channels", &Mac::block_channels, 1, "dot_block: output channels of one step", false),
      integer("min_block_cycles", &Mac::min_block_cycles, 0, "dot_block: least cycles of one output block", false),
      {"step_cycles",
       false,
       [](const At& at, Mac& into) {
         if (!at.json.is_object()) at.fail(text("must be an object of element types; ", found(at.json)));
         for (const auto& [key, value] : at.json.items()) {
           const auto dtype = dtype_from_name(key);
           if (!dtype) at.fail(text("has the unknown element type '", key, "'; known are f32, f16, i8 and the like"));
           into.step_cycles[*dtype] = read_integer(at.child(key), 1, kMost);
         }
       },
       [](const Mac& from) {
         Json out = Json::object();
         for (const auto& [dtype, cycles] : from.step_cycles) out[std::string(dtype_name(dtype))] = cycles;
         return out.empty() ? Json() : out;
       },
       {{"type", "object"},
        {"additionalProperties", {{"type", "integer"}, {"minimum", 1}}},
        {"description", "cycles of one step by element type; 1 where absent"}}},
  };
  return fields;
}

Fields<Memory> memory_fields(bool sized) {
  return {
      integer("bytes", &Memory::bytes, sized ? 1 : 0, "capacity in bytes", sized),
      integer("banks", &Memory::banks, 1, "banks", false),
      integer("ports", &Memory::ports, 1, "ports of each bank", false),
      number("bytes_per_cycle", &Memory::bytes_per_cycle, 1e-6, "bytes moved in a cycle at most"),
      integer("read_latency_cycles", &Memory::read_latency_cycles, 0, "cycles before the first byte is read", false),
      integer("write_latency_cycles", &Memory::write_latency_cycles, 0, "cycles before the first byte is written",
              false),
      integer("burst_bytes", &Memory::burst_bytes, 1, "bytes of one burst", false)};
}
const Fields<Memory>& sram_fields() {
  static const Fields<Memory> fields = memory_fields(true);
  return fields;
}
const Fields<Memory>& dram_fields() {
  static const Fields<Memory> fields = memory_fields(false);
  return fields;
}

const Fields<Dma>& dma_fields() {
  static const Fields<Dma> fields = {integer("channels", &Dma::channels, 1, "channels", false),
                                     integer("max_outstanding", &Dma::max_outstanding, 1, "requests in flight", false),
                                     integer("align_bytes", &Dma::align_bytes, 1, "alignment of addresses", false)};
  return fields;
}

const Fields<Vector>& vector_fields() {
  static const Fields<Vector> fields = {
      integer("lanes", &Vector::lanes, 1, "elements worked on at once"),
      number("elem_cycles", &Vector::elem_cycles, 0, "cycles of an elementwise operation in each lane", false),
      number("act_cycles", &Vector::act_cycles, 0, "cycles of an activation in each lane", false)};
  return fields;
}

struct Launch {
  double host_us = 0;
};
const Fields<Launch>& launch_fields() {
  static const Fields<Launch> fields = {number("host_us", &Launch::host_us, 0, "host time of one launch, in us")};
  return fields;
}

const Fields<Numerics>& numerics_fields() {
  static const Fields<Numerics> fields = {
      choice<Numerics, Rounding>("rounding", &Numerics::rounding,
                                 {{"double", Rounding::double_rounding},
                                  {"single", Rounding::single_rounding},
                                  {"half_even_fp32", Rounding::half_even_fp32}},
                                 "rounding of int8 requantization", false),
      choice<Numerics, std::string>("acc", &Numerics::accumulate, {{"f32", "f32"}}, "accumulator of f16 and f32",
                                    false),
      choice<Numerics, std::string>("order", &Numerics::order, {{"kernel_channel", "kernel_channel"}},
                                    "order of sums: kernel row, kernel column, input channel", false)};
  return fields;
}

Json read_map_schema(const char* doc) {
  return {{"type", "object"}, {"additionalProperties", {{"type", "number"}}}, {"description", doc}};
}

const Fields<OpEntry>& op_fields() {
  static const Fields<OpEntry> fields = {
      {"dtypes",
       true,
       [](const At& at, OpEntry& into) {
         if (!at.json.is_array() || at.json.empty()) {
           at.fail(text("must be a list of element types that is not empty; ", found(at.json)));
         }
         for (size_t k = 0; k < at.json.size(); ++k) into.dtypes.push_back(read_dtype(at.item(k)));
       },
       [](const OpEntry& from) {
         Json out = Json::array();
         for (DType dtype : from.dtypes) out.push_back(dtype_name(dtype));
         return out;
       },
       {{"type", "array"},
        {"items", {{"type", "string"}}},
        {"minItems", 1},
        {"description", "a list of element types"}}},
      {"limits", false,
       [](const At& at, OpEntry& into) {
         if (!at.json.is_object()) at.fail(text("must be an object of numbers; ", found(at.json)));
         for (const auto& [key, value] : at.json.items()) {
           if (!key.ends_with("_max") && !key.ends_with("_min")) {
             at.fail(text("has the key '", key, "'; expected a metric followed by _max or _min, such as kernel_h_max"));
           }
           into.limits[key] = read_number(at.child(key), 0, kMost);
         }
       },
       [](const OpEntry& from) {
         Json out = Json::object();
         for (const auto& [key, value] : from.limits) out[key] = value;
         return out.empty() ? Json() : out;
       },
       read_map_schema("bounds on the operator's metrics: kernel_h_max, stride_w_max, channels_max, ...")},
      integer("max_rank", &OpEntry::max_rank, 0, "largest rank of an operand; 0: no bound", false)};
  return fields;
}

const Fields<Energy>& energy_fields() {
  static const Fields<Energy> fields = {
      {"mac", false,
       [](const At& at, Energy& into) {
         if (!at.json.is_object()) at.fail(text("must be an object of element types; ", found(at.json)));
         for (const auto& [key, value] : at.json.items()) into.mac[key] = read_number(at.child(key), 0, kMost);
       },
       [](const Energy& from) {
         Json out = Json::object();
         for (const auto& [key, value] : from.mac) out[key] = value;
         return out.empty() ? Json() : out;
       },
       read_map_schema("pJ of one multiply-accumulate by element type")},
      number("sram_byte", &Energy::sram_byte, 0, "pJ of one byte of scratchpad traffic", false),
      number("dram_byte", &Energy::dram_byte, 0, "pJ of one byte of DRAM traffic", false),
      number("vector_op", &Energy::vector_op, 0, "pJ of one vector element", false),
      {"source",
       true,
       [](const At& at, Energy& into) { into.source = read_string(at); },
       [](const Energy& from) { return from.source.empty() ? Json() : Json(from.source); },
       {{"type", "string"}, {"description", "a sentence that says where the figures come from"}}}};
  return fields;
}

// The named parts of Spec that are JSON objects keyed by free names, lists, or wrapped.
const Fields<Spec>& spec_fields() {
  static const Fields<Spec> fields = {
      {"schema",
       true,
       [](const At& at, Spec&) {
         if (at.json != Json(1)) at.fail(text("must be 1, the version of this format; ", found(at.json)));
       },
       [](const Spec&) { return Json(1); },
       {{"const", 1}, {"description", "1, the version of the format"}}},
      {"name",
       true,
       [](const At& at, Spec& into) { into.name = read_string(at); },
       [](const Spec& from) { return Json(from.name); },
       {{"type", "string"}, {"minLength", 1}, {"description", "the device's name"}}},
      number("clock_hz", &Spec::clock_hz, 1, "cycles a second"),
      integer("cores", &Spec::cores, 1, "cores", false),
      nested("mac", &Spec::mac, mac_fields),
      {"sram",
       true,
       [](const At& at, Spec& into) {
         if (!at.json.is_array() || at.json.empty()) {
           at.fail(text("must be a list of memories, the scratchpad first; ", found(at.json)));
         }
         for (size_t k = 0; k < at.json.size(); ++k) read_object(at.item(k), sram_fields(), into.sram.emplace_back());
       },
       [](const Spec& from) {
         Json out = Json::array();
         for (const Memory& memory : from.sram) out.push_back(write_object(memory, sram_fields()));
         return out;
       },
       {{"type", "array"},
        {"items", object_schema(sram_fields())},
        {"minItems", 1},
        {"description", "a list of on-chip memories, the scratchpad first"}}},
      nested("dram", &Spec::dram, dram_fields),
      nested("dma", &Spec::dma, dma_fields, false),
      nested("vector", &Spec::vector, vector_fields),
      {"launch", false,
       [](const At& at, Spec& into) {
         Launch launch;
         read_object(at, launch_fields(), launch);
         into.launch_us = launch.host_us;
       },
       [](const Spec& from) { return write_object(Launch{from.launch_us}, launch_fields()); },
       object_schema(launch_fields())},
      {"ops",
       true,
       [](const At& at, Spec& into) {
         if (!at.json.is_object() || at.json.empty()) {
           at.fail(text("must be an object of operators that is not empty; ", found(at.json)));
         }
         for (const auto& [key, value] : at.json.items()) read_object(at.child(key), op_fields(), into.ops[key]);
       },
       [](const Spec& from) {
         Json out = Json::object();
         for (const auto& [key, entry] : from.ops) out[key] = write_object(entry, op_fields());
         return out;
       },
       {{"type", "object"},
        {"additionalProperties", object_schema(op_fields())},
        {"minProperties", 1},
        {"description", "an object of operators: name, element types, limits"}}},
      nested("numerics", &Spec::numerics, numerics_fields, false),
      {"energy_pj", false, [](const At& at, Spec& into) { read_object(at, energy_fields(), into.energy_pj); },
       [](const Spec& from) {
         return from.energy_pj.source.empty() ? Json() : write_object(from.energy_pj, energy_fields());
       },
       object_schema(energy_fields())},
      {"provenance",
       true,
       [](const At& at, Spec& into) {
         if (!at.json.is_object() || at.json.empty()) {
           at.fail(text("must be an object from paths to sources that is not empty; ", found(at.json)));
         }
         for (const auto& [key, value] : at.json.items()) into.provenance[key] = read_string(at.child(key));
       },
       [](const Spec& from) {
         Json out = Json::object();
         for (const auto& [key, value] : from.provenance) out[key] = value;
         return out;
       },
       {{"type", "object"},
        {"additionalProperties", {{"type", "string"}}},
        {"minProperties", 1},
        {"description", "an object from paths of figures to where they come from; a guess says so"}}},
  };
  return fields;
}

Json parse_document(std::string_view json, std::string_view where) {
  try {
    return Json::parse(json);
  } catch (const nlohmann::json::exception& error) {
    throw InvalidModel(text(where, ": not JSON: ", error.what(), ". Expected the data sheet of an NPU."));
  }
}

void check_whole(const Spec& spec, const At& at) {
  auto demand = [&](bool holds, const std::string& path, const std::string& message) {
    if (!holds) throw InvalidModel(text(at.where, ": ", path, " ", message));
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
  demand(spec.scratchpad().bytes <= (int64_t{1} << 32), "sram[0].bytes",
         text("must be at most 2^32, the reach of an address; found ", spec.scratchpad().bytes));
}

}  // namespace

Spec parse_spec(std::string_view json, std::string_view where) {
  const Json document = parse_document(json, where);
  const At at = {document, std::string(where), ""};
  Spec spec;
  read_object(at, spec_fields(), spec);
  check_whole(spec, at);
  return spec;
}

std::string spec_to_json(const Spec& spec) {
  Json document = write_object(spec, spec_fields());
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

std::string spec_schema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "The data sheet of an NPU"}};
  schema.update(object_schema(spec_fields()));
  return schema.dump(2) + "\n";
}

std::vector<std::string> figures_without_source(std::string_view json) {
  const Json document = parse_document(json, "spec");
  const Json provenance = document.value("provenance", Json::object());
  std::vector<std::string> uncovered;
  std::function<void(const Json&, const std::string&, bool)> visit = [&](const Json& node, const std::string& path,
                                                                         bool covered) {
    covered = covered || (!path.empty() && provenance.contains(path));
    if (node.is_number() && !covered && path != "schema") uncovered.push_back(path);
    if (node.is_array()) {
      for (size_t k = 0; k < node.size(); ++k) visit(node[k], text(path, "[", k, "]"), covered);
    } else if (node.is_object()) {
      covered = covered || node.contains("source");
      for (const auto& [key, value] : node.items()) {
        if (path.empty() && key == "provenance") continue;
        visit(value, path.empty() ? key : text(path, ".", key), covered);
      }
    }
  };
  visit(document, "", false);
  return uncovered;
}

}  // namespace hetnn::npu
