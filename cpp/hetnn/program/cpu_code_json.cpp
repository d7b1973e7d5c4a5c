// Code of the general processor as JSON text and back.
#include <cmath>
#include <nlohmann/json.hpp>

#include "hetnn/base/error.h"
#include "hetnn/base/json_reader.h"
#include "hetnn/program/cpu_code.h"
#include "hetnn/program/validate.h"

namespace hetnn::program {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kVersion = 1;

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

Param param_of(const JsonReader& r) {
  if (r.has("text")) return r["text"].string();
  if (r.has("real")) return r["real"].real();
  if (r.has("reals")) return r["reals"].map([](const JsonReader& value) { return value.real(); });
  if (r.is_list()) return r.shape();
  return r.dim();
}

Command command_of(const JsonReader& r) {
  r.only({"kernel", "inputs", "outputs", "params", "node"});
  Command out{r["kernel"].string(), r["inputs"].ids(), r["outputs"].ids(), {}, r["node"].string()};
  r["params"].each([&](const std::string& name, const JsonReader& value) { out.params[name] = param_of(value); });
  return out;
}

}  // namespace

Code write_cpu_code(const CpuCode& code) {
  Json commands = Json::array();
  for (const Command& c : code.commands) {
    Json params = Json::object();
    for (const auto& [name, value] : c.params) params[name] = param_json(value);
    commands.push_back(
        {{"kernel", c.kernel}, {"inputs", c.inputs}, {"outputs", c.outputs}, {"params", params}, {"node", c.node}});
  }
  return Code::of_text("cpu", kVersion,
                       Json{{"commands", commands}}.dump(-1, ' ', false, Json::error_handler_t::replace));
}

CpuCode read_cpu_code(const Code& code, const Program& program, const std::string& called) {
  const Json parsed = parse_json(code.as_text(kVersion, called), called + ": its code");
  CpuCode out{JsonReader(parsed, called).only({"commands"})["commands"].map(command_of)};
  const References references(program, called);
  for (size_t k = 0; k < out.commands.size(); ++k) {
    const std::string at = text("commands[", k, "]");
    for (int32_t buffer : out.commands[k].inputs) references.read(buffer, at);
    for (int32_t buffer : out.commands[k].outputs) references.written(buffer, at);
    for (const auto& [name, param] : out.commands[k].params) {
      if (auto* dim = std::get_if<Dim>(&param)) references.known(*dim, at);
      if (auto* dims = std::get_if<std::vector<Dim>>(&param)) {
        for (const Dim& dim : *dims) references.known(dim, at);
      }
    }
  }
  return out;
}

}  // namespace hetnn::program
