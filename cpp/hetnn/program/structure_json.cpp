// The program's structure as JSON text and back.
#include <nlohmann/json.hpp>

#include "hetnn/base/error.h"
#include "hetnn/base/json_reader.h"
#include "hetnn/program/pack.h"

namespace hetnn::program {
namespace {

using Json = nlohmann::ordered_json;

Json dims_json(const Shape& shape) {
  Json out = Json::array();
  for (const Dim& dim : shape) out.push_back(dim.is_static() ? Json(dim.value()) : Json(dim.to_string()));
  return out;
}

constexpr std::string_view kPlaces[] = {"input", "output", "arena", "constant"};

Json quant_json(const std::optional<ops::Quant>& quant) {
  return quant ? Json{{"scales", quant->scales}, {"zero_point", quant->zero_point}} : Json();
}

std::optional<ops::Quant> quant_of(const JsonReader& r) {
  if (r.is_null()) return std::nullopt;
  r.only({"scales", "zero_point"});
  ops::Quant out{r["scales"].map([](const JsonReader& scale) { return scale.real(); }), 0};
  const int64_t zero = r["zero_point"].integer();
  if (out.scales.empty()) r["scales"].wrong("one scale at least");
  if (zero < -128 || zero > 127) r["zero_point"].wrong("an integer in [-128, 127]");
  out.zero_point = static_cast<int32_t>(zero);
  return out;
}

Buffer buffer_of(const JsonReader& r) {
  r.only({"name", "dtype", "shape", "quant", "layout", "pitch", "place", "offset_bytes", "size_bytes", "packed"});
  Buffer out{.name = r["name"].string(),
             .dtype = r["dtype"].dtype(),
             .shape = r["shape"].shape(),
             .quant = quant_of(r["quant"]),
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
                       {"quant", quant_json(b.quant)},
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
                           {"inputs", s.inputs},
                           {"outputs", s.outputs},
                           {"depends_on", s.depends_on},
                           {"defines", s.defines},
                           {"kind", s.code.kind},
                           {"version", s.code.version},
                           {"code_bytes", s.code.bytes.size()}});
  }
  return Json{{"symbols", symbols}, {"buffers", buffers}, {"inputs", inputs},
              {"outputs", outputs}, {"states", states},   {"subprograms", subprograms}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);  // names that are no UTF-8 are made so
}

Program parse_structure(std::string_view json, std::span<const std::byte> code, const std::string& called) {
  const Json parsed = parse_json(json, called + ": its program");
  const JsonReader r(parsed, called + ": program");
  r.only({"symbols", "buffers", "inputs", "outputs", "states", "subprograms"});
  auto port = [](const JsonReader& p) { return Port{p.only({"name", "buffer"})["name"].string(), p["buffer"].id()}; };
  Program out;
  out.symbols = r["symbols"].map([](const JsonReader& s) {
    s.only({"name", "min", "max", "hint"});
    return Symbol{s["name"].string(), s["min"].integer(), s["max"].integer(), s["hint"].integer()};
  });
  out.buffers = r["buffers"].map(buffer_of);
  out.inputs = r["inputs"].map(port);
  out.outputs = r["outputs"].map(port);
  out.states = r["states"].map([](const JsonReader& s) {
    s.only({"name", "input", "output", "offset_bytes", "size_bytes"});
    return State{s["name"].string(), s["input"].id(), s["output"].id(), s["offset_bytes"].integer(),
                 s["size_bytes"].integer()};
  });
  size_t taken_bytes = 0;
  out.subprograms = r["subprograms"].map([&](const JsonReader& s) {
    s.only({"name", "device", "inputs", "outputs", "depends_on", "defines", "kind", "version", "code_bytes"});
    Subprogram made{.name = s["name"].string(),
                    .device = s["device"].string(),
                    .inputs = s["inputs"].ids(),
                    .outputs = s["outputs"].ids(),
                    .depends_on = s["depends_on"].ids(),
                    .code = {s["kind"].string(), s["version"].integer(), {}},
                    .defines = s["defines"].map([](const JsonReader& symbol) { return symbol.string(); })};
    const int64_t bytes = s["code_bytes"].integer();
    if (bytes < 0 || static_cast<size_t>(bytes) > code.size() - taken_bytes)
      s["code_bytes"].wrong(text("at most the ", code.size() - taken_bytes, " bytes of code that are left"));
    const auto own = code.subspan(taken_bytes, static_cast<size_t>(bytes));
    made.code.bytes.assign(own.begin(), own.end());
    taken_bytes += own.size();
    return made;
  });
  if (taken_bytes != code.size()) {
    throw InvalidModel(text(called, ": its subprograms take ", taken_bytes, " bytes of code; there are ", code.size(),
                            ". The file is damaged."));
  }
  return out;
}

}  // namespace hetnn::program
