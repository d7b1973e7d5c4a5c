// Targets and options from the JSON that the Python functions pass.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "hetnn/base/error.h"
#include "hetnn/compiler/compile.h"
#include "hetnn/plan/partition/strategies/plan_json.h"

namespace hetnn {
namespace {

using Json = nlohmann::json;

Json read(std::string_view json, std::string_view what) {
  try {
    return Json::parse(json);
  } catch (const Json::exception& error) {
    throw InvalidModel(text(what, " is no JSON: ", error.what(), "."));
  }
}

void check_keys(const Json& object, std::string_view what, std::initializer_list<std::string_view> known) {
  if (!object.is_object()) throw InvalidModel(text(what, " must be an object; got ", object.type_name(), "."));
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string list;
    for (std::string_view name : known) list += text(list.empty() ? "" : ", ", name);
    throw InvalidModel(text(what, " has no key '", key, "'. Its keys are: ", list, "."));
  }
}

template <typename T>
T get(const Json& object, const char* key, std::string_view what, T fallback) {
  auto at = object.find(key);
  if (at == object.end()) return fallback;
  try {
    return at->get<T>();
  } catch (const Json::exception&) {
    throw InvalidModel(text(what, ", key '", key, "': got ", at->dump(), ", which is of another type."));
  }
}

target::Link link(const Json& json) {
  check_keys(json, "a link", {"from", "to", "bytes_per_us", "latency_us"});
  target::Link out{get<std::string>(json, "from", "a link", ""), get<std::string>(json, "to", "a link", ""),
                   get(json, "bytes_per_us", "a link", 0.0), get(json, "latency_us", "a link", 0.0)};
  if (!(out.bytes_per_us > 0))
    throw InvalidModel(text("a link must have bytes_per_us > 0; got ", out.bytes_per_us, "."));
  return out;
}

// "order=min" and its like; the partitioner's own reader knows names and ranges.
plan::PinRule pin(const Json& json) {
  check_keys(json, "a pin", {"by", "pattern", "device", "hard"});
  const std::string by = get<std::string>(json, "by", "a pin", "name");
  plan::PinRule out{.by = plan::PinRule::By::name,
                    .pattern = get<std::string>(json, "pattern", "a pin", ""),
                    .device = get<std::string>(json, "device", "a pin", ""),
                    .hard = get(json, "hard", "a pin", true)};
  if (by == "regex") {
    out.by = plan::PinRule::By::regex;
  } else if (by == "op") {
    out.by = plan::PinRule::By::op;
  } else if (by == "module") {
    out.by = plan::PinRule::By::module;
  } else if (by != "name") {
    throw InvalidModel(text("a pin goes by name, regex, op or module; got '", by, "'."));
  }
  return out;
}

}  // namespace

TargetSpec parse_target(std::string_view json) {
  const Json target = read(json, "the target");
  check_keys(target, "a target", {"name", "devices", "links"});
  TargetSpec out;
  out.json = target.dump();
  out.name = get<std::string>(target, "name", "a target", "target");
  for (const Json& device : target.value("devices", Json::array())) {
    check_keys(device, "a device", {"name", "kind", "spec"});
    const auto kind = get<std::string>(device, "kind", "a device", "");
    out.devices.push_back({get<std::string>(device, "name", "a device", kind), kind,
                           device.contains("spec") ? device["spec"].dump() : ""});
  }
  if (auto links = target.find("links"); links != target.end()) {
    if (links->is_array()) {
      for (const Json& row : *links) out.links.push_back(link(row));
    } else {
      const target::Link all = link(*links);
      out.bytes_per_us = all.bytes_per_us;
      out.latency_us = all.latency_us;
    }
  }
  return out;
}

CompileOptions parse_options(std::string_view json) {
  const Json options = read(json, "the options");
  check_keys(options, "options",
             {"strategy", "options", "pins", "strict", "rewrite", "disabled_rules", "fusion", "deterministic",
              "tune_threads", "measured_us", "memory_budget", "shapes"});
  CompileOptions out;
  out.strategy = get<std::string>(options, "strategy", "options", "cost");
  out.network.partition = plan::parse_plan_options(out.strategy, options.value("options", Json::object()).dump());
  out.network.partition.strict = get<std::string>(options, "strict", "options", "");
  for (const Json& row : options.value("pins", Json::array())) out.network.pins.push_back(pin(row));
  out.network.measured_us =
      get<std::map<std::string, std::map<std::string, double>>>(options, "measured_us", "options", {});
  out.shapes = get<std::vector<Bindings>>(options, "shapes", "options", {});
  out.network.memory_budget_bytes = get<std::map<std::string, double>>(options, "memory_budget", "options", {});
  const auto rewrite = get<std::string>(options, "rewrite", "options", "auto");
  const auto mode = passes::rewrite_mode_from_name(rewrite);
  if (!mode) throw InvalidModel(text("rewrite must be auto, always or off; got '", rewrite, "'."));
  out.rewrite = *mode;
  out.disabled_rules = get<std::vector<std::string>>(options, "disabled_rules", "options", {});
  passes::check_disabled_rules(out.disabled_rules);
  out.lower.fusion = out.network.fusion = get(options, "fusion", "options", true);
  out.lower.deterministic = out.network.in_order = get(options, "deterministic", "options", false);
  out.lower.tune_threads = get(options, "tune_threads", "options", 0);
  if (out.lower.tune_threads < 0)
    throw InvalidModel(text("tune_threads must not be negative; got ", out.lower.tune_threads, "."));
  return out;
}

}  // namespace hetnn
