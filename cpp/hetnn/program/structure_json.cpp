// The program's structure as JSON text and back.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>

#include "hetnn/base/error.h"
#include "hetnn/program/pack.h"

namespace hetnn::program {
namespace {

using Json = nlohmann::ordered_json;

Json dims_json(const Shape& shape) {
  Json out = Json::array();
  for (const Dim& dim : shape) out.push_back(dim.is_static() ? Json(dim.value()) : Json(dim.to_string()));
  return out;
}

// Integers are numbers, expressions texts; reals stand in {"real": x} and texts in {"text": s} to tell them apart.
Json param_json(const Param& param) {
  if (auto* dim = std::get_if<Dim>(&param)) return dim->is_static() ? Json(dim->value()) : Json(dim->to_string());
  if (auto* dims = std::get_if<std::vector<Dim>>(&param)) return dims_json(*dims);
  if (auto* text = std::get_if<std::string>(&param)) return {{"text", *text}};
  auto number = [](double value) {
    // JSON has no infinities and no NaN.
    return std::isfinite(value) ? Json(value) : Json(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
  };
  if (auto* real = std::get_if<double>(&param)) return {{"real", number(*real)}};
  Json reals = Json::array();
  for (double value : std::get<std::vector<double>>(param)) reals.push_back(number(value));
  return {{"reals", reals}};
}

Json bindings_json(const Bindings& bindings) {
  Json out = Json::object();
  for (const auto& [name, value] : bindings) out[name] = value;
  return out;
}

Json ports_json(const std::vector<NpuPort>& ports) {
  Json out = Json::array();
  for (const NpuPort& port : ports) {
    out.push_back({{"buffer", port.buffer},
                   {"offset_bytes", port.offset_bytes},
                   {"dtype", dtype_name(port.dtype)},
                   {"layout", layout_name(port.layout)}});
  }
  return out;
}

Json variant_json(const NpuVariant& v) {
  Json layers = Json::array();
  for (const NpuLayer& l : v.layers) {
    layers.push_back({{"node", l.node},
                      {"op", l.op},
                      {"first_word", l.first_word},
                      {"last_word", l.last_word},
                      {"cycles", l.cycles},
                      {"dma_bytes", l.dma_bytes},
                      {"macs", l.macs}});
  }
  return {{"bindings", bindings_json(v.bindings)},
          {"words_offset_bytes", v.words_offset_bytes},
          {"word_count", v.word_count},
          {"image_offset_bytes", v.image_offset_bytes},
          {"image_bytes", v.image_bytes},
          {"dram_bytes", v.dram_bytes},
          {"sram_peak_bytes", v.sram_peak_bytes},
          {"cycles", v.cycles},
          {"inputs", ports_json(v.inputs)},
          {"outputs", ports_json(v.outputs)},
          {"layers", layers}};
}

Json code_json(const Subprogram& subprogram) {
  if (auto* cpu = std::get_if<CpuCode>(&subprogram.code)) {
    Json commands = Json::array();
    for (const Command& c : cpu->commands) {
      Json params = Json::object();
      for (const auto& [name, value] : c.params) params[name] = param_json(value);
      commands.push_back(
          {{"kernel", c.kernel}, {"inputs", c.inputs}, {"outputs", c.outputs}, {"params", params}, {"node", c.node}});
    }
    return {{"cpu", {{"commands", commands}}}};
  }
  if (auto* npu = std::get_if<NpuCode>(&subprogram.code)) {
    Json variants = Json::array();
    for (const NpuVariant& variant : npu->variants) variants.push_back(variant_json(variant));
    return {{"npu", {{"spec", npu->spec_json}, {"batch_symbol", npu->batch_symbol}, {"variants", variants}}}};
  }
  if (auto* reference = std::get_if<ReferenceCode>(&subprogram.code)) {
    return {
        {"reference", {{"text_offset_bytes", reference->text_offset_bytes}, {"text_bytes", reference->text_bytes}}}};
  }
  return {{"null", Json::object()}};
}

// Reads values by key, and keeps the path to them for messages.
class Reader {
 public:
  Reader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  Reader operator[](const char* key) const {
    if (!json_.is_object()) wrong("an object");
    auto at = json_.find(key);
    if (at == json_.end())
      throw InvalidModel(text(path_, ": key '", key, "' is missing. The file is damaged or of another version."));
    return {*at, text(path_, ".", key)};
  }
  // Refuses keys besides these, which all must be there.
  const Reader& only(std::initializer_list<std::string_view> keys) const {
    if (!json_.is_object()) wrong("an object");
    for (const auto& [key, value] : json_.items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        throw InvalidModel(text(path_, ": key '", key, "' is unknown. The file is damaged or of another version."));
    }
    return *this;
  }
  bool has(const char* key) const { return json_.is_object() && json_.contains(key); }
  template <typename F>
  auto map(F f) const {
    if (!json_.is_array()) wrong("a list");
    std::vector<decltype(f(*this))> out;
    for (size_t k = 0; k < json_.size(); ++k) out.push_back(f(Reader(json_[k], text(path_, "[", k, "]"))));
    return out;
  }
  template <typename F>
  void each(F f) const {
    if (!json_.is_object()) wrong("an object");
    for (const auto& [key, value] : json_.items()) f(key, Reader(value, text(path_, ".", key)));
  }
  int64_t integer() const {
    if (!json_.is_number_integer()) wrong("an integer");
    return json_.get<int64_t>();
  }
  int32_t id() const {
    const int64_t value = integer();
    if (value < -1 || value > INT32_MAX) wrong("an index");
    return static_cast<int32_t>(value);
  }
  bool boolean() const {
    if (!json_.is_boolean()) wrong("true or false");
    return json_.get<bool>();
  }
  double real() const {
    if (json_.is_string()) {
      const auto name = json_.get<std::string>();
      if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
      if (name == "inf") return std::numeric_limits<double>::infinity();
      if (name == "-inf") return -std::numeric_limits<double>::infinity();
    }
    if (!json_.is_number()) wrong("a number");
    return json_.get<double>();
  }
  std::string string() const {
    if (!json_.is_string()) wrong("a text");
    return json_.get<std::string>();
  }
  Dim dim() const {
    if (json_.is_string()) return Dim::parse(json_.get_ref<const std::string&>());
    return integer();
  }
  std::vector<int32_t> ids() const {
    return map([](const Reader& r) { return r.id(); });
  }
  Shape shape() const {
    return map([](const Reader& r) { return r.dim(); });
  }
  DType dtype() const {
    auto found = dtype_from_name(string());
    if (!found) wrong("an element type");
    return *found;
  }
  Layout layout() const {
    auto found = layout_from_name(string());
    if (!found) wrong("plain or nhwc");
    return *found;
  }
  Param param() const {
    if (has("text")) return (*this)["text"].string();
    if (has("real")) return (*this)["real"].real();
    if (has("reals")) {
      return (*this)["reals"].map([](const Reader& r) { return r.real(); });
    }
    if (json_.is_array()) return shape();
    return dim();
  }
  [[noreturn]] void wrong(std::string_view wanted) const {
    throw InvalidModel(text(path_, ": expected ", wanted, "; got ",
                            json_.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 60),
                            ". The file is damaged or of another version."));
  }

 private:
  const Json& json_;
  std::string path_;
};

Bindings bindings_of(const Reader& r) {
  Bindings out;
  r.each([&](const std::string& name, const Reader& value) { out[name] = value.integer(); });
  return out;
}

NpuPort port_of(const Reader& r) {
  r.only({"buffer", "offset_bytes", "dtype", "layout"});
  return {r["buffer"].id(), r["offset_bytes"].integer(), r["dtype"].dtype(), r["layout"].layout()};
}

NpuVariant variant_of(const Reader& r) {
  r.only({"bindings", "words_offset_bytes", "word_count", "image_offset_bytes", "image_bytes", "dram_bytes",
          "sram_peak_bytes", "cycles", "inputs", "outputs", "layers"});
  return {.bindings = bindings_of(r["bindings"]),
          .words_offset_bytes = r["words_offset_bytes"].integer(),
          .word_count = r["word_count"].integer(),
          .image_offset_bytes = r["image_offset_bytes"].integer(),
          .image_bytes = r["image_bytes"].integer(),
          .dram_bytes = r["dram_bytes"].integer(),
          .sram_peak_bytes = r["sram_peak_bytes"].integer(),
          .cycles = r["cycles"].integer(),
          .inputs = r["inputs"].map(port_of),
          .outputs = r["outputs"].map(port_of),
          .layers = r["layers"].map([](const Reader& l) {
            l.only({"node", "op", "first_word", "last_word", "cycles", "dma_bytes", "macs"});
            return NpuLayer{l["node"].string(),       l["op"].string(),      l["first_word"].integer(),
                            l["last_word"].integer(), l["cycles"].integer(), l["dma_bytes"].integer(),
                            l["macs"].integer()};
          })};
}

Command command_of(const Reader& r) {
  r.only({"kernel", "inputs", "outputs", "params", "node"});
  Command out{r["kernel"].string(), r["inputs"].ids(), r["outputs"].ids(), {}, r["node"].string()};
  r["params"].each([&](const std::string& name, const Reader& value) { out.params[name] = value.param(); });
  return out;
}

Subprogram subprogram_of(const Reader& r) {
  r.only({"name", "device", "kind", "inputs", "outputs", "depends_on", "code"});
  Subprogram out{r["name"].string(),
                 r["device"].string(),
                 r["kind"].string(),
                 r["inputs"].ids(),
                 r["outputs"].ids(),
                 r["depends_on"].ids(),
                 {}};
  const Reader code = r["code"];
  if (code.has("cpu")) {
    out.code = CpuCode{code.only({"cpu"})["cpu"].only({"commands"})["commands"].map(command_of)};
  } else if (code.has("npu")) {
    const Reader npu = code.only({"npu"})["npu"];
    npu.only({"spec", "batch_symbol", "variants"});
    out.code = NpuCode{npu["spec"].string(), npu["variants"].map(variant_of), npu["batch_symbol"].string()};
  } else if (code.has("reference")) {
    const Reader reference = code.only({"reference"})["reference"];
    reference.only({"text_offset_bytes", "text_bytes"});
    out.code = ReferenceCode{reference["text_offset_bytes"].integer(), reference["text_bytes"].integer()};
  } else if (code.has("null")) {
    out.code = NullCode{};
  } else {
    code.wrong("code for cpu, npu, reference or null");
  }
  return out;
}

constexpr std::string_view kPlaces[] = {"input", "output", "arena", "constant"};

Buffer buffer_of(const Reader& r) {
  r.only({"name", "dtype", "shape", "layout", "pitch", "place", "offset_bytes", "size_bytes", "packed"});
  Buffer out{.name = r["name"].string(),
             .dtype = r["dtype"].dtype(),
             .shape = r["shape"].shape(),
             .layout = r["layout"].layout(),
             .pitch = r["pitch"].dim(),
             .offset_bytes = r["offset_bytes"].integer(),
             .size_bytes = r["size_bytes"].integer(),
             .packed = r["packed"].boolean()};
  const std::string place = r["place"].string();
  size_t at = 0;
  while (at < std::size(kPlaces) && kPlaces[at] != place) ++at;
  if (at == std::size(kPlaces)) r["place"].wrong("input, output, arena or constant");
  out.place = static_cast<Place>(at);
  return out;
}

}  // namespace

std::string structure_json(const Program& program) {
  Json symbols = Json::array(), buffers = Json::array(), inputs = Json::array(), outputs = Json::array(),
       states = Json::array(), subprograms = Json::array();
  for (const Symbol& s : program.symbols)
    symbols.push_back({{"name", s.name}, {"min", s.min}, {"max", s.max}, {"hint", s.hint}});
  for (const Buffer& b : program.buffers) {
    buffers.push_back({{"name", b.name},
                       {"dtype", dtype_name(b.dtype)},
                       {"shape", dims_json(b.shape)},
                       {"layout", layout_name(b.layout)},
                       {"pitch", b.pitch.is_static() ? Json(b.pitch.value()) : Json(b.pitch.to_string())},
                       {"place", kPlaces[static_cast<size_t>(b.place)]},
                       {"offset_bytes", b.offset_bytes},
                       {"size_bytes", b.size_bytes},
                       {"packed", b.packed}});
  }
  for (const Port& p : program.inputs) inputs.push_back({{"name", p.name}, {"buffer", p.buffer}});
  for (const Port& p : program.outputs) outputs.push_back({{"name", p.name}, {"buffer", p.buffer}});
  for (const State& s : program.states) {
    states.push_back({{"name", s.name},
                      {"input", s.input},
                      {"output", s.output},
                      {"offset_bytes", s.offset_bytes},
                      {"size_bytes", s.size_bytes}});
  }
  for (const Subprogram& s : program.subprograms) {
    subprograms.push_back({{"name", s.name},
                           {"device", s.device},
                           {"kind", s.kind},
                           {"inputs", s.inputs},
                           {"outputs", s.outputs},
                           {"depends_on", s.depends_on},
                           {"code", code_json(s)}});
  }
  return Json{{"symbols", symbols}, {"buffers", buffers}, {"inputs", inputs},
              {"outputs", outputs}, {"states", states},   {"subprograms", subprograms}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);  // names that are no UTF-8 are made so
}

Program parse_structure(std::string_view json, const std::string& called) {
  Json parsed;
  try {
    parsed = Json::parse(json);
  } catch (const Json::exception& error) {
    throw InvalidModel(text(called, ": its program is no JSON: ", error.what(), ". The file is damaged."));
  }
  const Reader r(parsed, called + ": program");
  r.only({"symbols", "buffers", "inputs", "outputs", "states", "subprograms"});
  auto port = [](const Reader& p) { return Port{p.only({"name", "buffer"})["name"].string(), p["buffer"].id()}; };
  Program out;
  out.symbols = r["symbols"].map([](const Reader& s) {
    s.only({"name", "min", "max", "hint"});
    return Symbol{s["name"].string(), s["min"].integer(), s["max"].integer(), s["hint"].integer()};
  });
  out.buffers = r["buffers"].map(buffer_of);
  out.inputs = r["inputs"].map(port);
  out.outputs = r["outputs"].map(port);
  out.states = r["states"].map([](const Reader& s) {
    s.only({"name", "input", "output", "offset_bytes", "size_bytes"});
    return State{s["name"].string(), s["input"].id(), s["output"].id(), s["offset_bytes"].integer(),
                 s["size_bytes"].integer()};
  });
  out.subprograms = r["subprograms"].map(subprogram_of);
  return out;
}

}  // namespace hetnn::program
