// Targets and options from the JSON that the Python functions pass.
#include <algorithm>

#include "hetnn/base/json_fields.h"
#include "hetnn/compiler/compile.h"
#include "hetnn/plan/partition/strategies/plan_json.h"

namespace hetnn {
namespace {

using json::At;
using json::Convert;
using json::Fields;
using json::Json;
using json::Presence;

constexpr Presence kOptional = Presence::optional;

template <typename Link>
const Fields<Link>& speed_fields() {
  static const Fields<Link> fields = {
      {"bytes_per_us", &Link::bytes_per_us, json::number({.least = 0, .above = true}), "bytes moved in a microsecond"},
      {"latency_us", &Link::latency_us, json::number({.least = 0}), "time of an empty transfer", kOptional}};
  return fields;
}

const Fields<target::Link>& link_fields() {
  static const Fields<target::Link> fields = {{"from", &target::Link::from, json::word(), "the name of a device"},
                                              {"to", &target::Link::to, json::word(), "the name of a device"},
                                              speed_fields<target::Link>().rows()[0],
                                              speed_fields<target::Link>().rows()[1]};
  return fields;
}

const Fields<backends::DeviceSpec>& device_fields() {
  using backends::DeviceSpec;
  static const Fields<DeviceSpec> fields = {
      {"name", &DeviceSpec::name, json::word(), "what plans and reports call it; its kind, where absent", kOptional},
      {"kind", &DeviceSpec::kind, json::word(),
       "the kind of device, of which `hetnn targets` lists those that need no sheet"},
      {"spec", &DeviceSpec::spec_json, json::any_value(), "the data sheet, where the kind needs one", kOptional}};
  return fields;
}

// One speed for all links, or a list of links.
Convert<TargetSpec> links() {
  const Convert<std::vector<target::Link>> listed = json::list_of(json::object(link_fields));
  return {[=](const At& at, TargetSpec& into) {
            if (at.json.is_array()) {
              listed.read(at, into.links);
            } else {
              speed_fields<TargetSpec>().read(at, into);
            }
          },
          [=](const TargetSpec& from) { return listed.write(from.links); },
          {{"anyOf", {speed_fields<TargetSpec>().schema(), listed.schema}}}};
}

const Fields<TargetSpec>& target_fields() {
  static const Fields<TargetSpec> fields = {
      {"name", &TargetSpec::name, json::word(), "what reports call it", kOptional},
      {"devices", &TargetSpec::devices, json::list_of(json::object(device_fields), 1, "devices"),
       "the devices, the general processor first"},
      {"links", links(), "how fast values move between devices: one speed, or a list of links", kOptional}};
  return fields;
}

Convert<passes::RewriteMode> rewrite_mode() {
  using passes::RewriteMode;
  return json::one_of<RewriteMode>(
      {{"auto", RewriteMode::automatic}, {"always", RewriteMode::always}, {"off", RewriteMode::off}});
}

Convert<Denormals> denormals_mode() {
  return json::one_of<Denormals>({{"flush", Denormals::flush}, {"keep", Denormals::keep}});
}

Convert<bool> on_or_off() {
  return {[](const At& at, bool& into) {
            if (at.json == Json("on") || at.json == Json("off")) {
              into = at.json == Json("on");
            } else if (at.json.is_boolean()) {
              into = at.json.get<bool>();
            } else {
              at.wrong("true, false, \"on\" or \"off\"");
            }
          },
          [](const bool& from) { return Json(from); },
          {{"enum", {true, false, "on", "off"}}}};
}

constexpr std::pair<std::string_view, plan::NodeRule::By> kRuleKinds[] = {{"name", plan::NodeRule::By::name},
                                                                          {"regex", plan::NodeRule::By::regex},
                                                                          {"op", plan::NodeRule::By::op},
                                                                          {"module", plan::NodeRule::By::module}};

// A wish may be hard or soft; where a result may be is none.
enum class OfRule : uint8_t { wish, place };

// {"conv1": "cpu"}, or rows with a pattern of one kind.
Convert<std::vector<plan::NodeRule>> node_rules(OfRule kind) {
  using plan::NodeRule;
  constexpr size_t kKinds = std::size(kRuleKinds);
  const auto read_row = [kind](const At& at) {
    std::vector<std::string_view> keys;
    for (const auto& [key, by] : kRuleKinds) keys.push_back(key);
    keys.emplace_back("device");
    if (kind == OfRule::wish) keys.emplace_back("hard");
    std::array<const Json*, kKinds + 2> found = {};
    at.find(keys, std::span(found).first(keys.size()));
    if (kKinds - std::count(found.begin(), found.begin() + kKinds, nullptr) != 1 || !found[kKinds]) {
      at.fail(R"(must name a device and one of name, regex, op, module, as in {"regex": "layer1.*", "device": "cpu"})");
    }
    NodeRule out;
    for (size_t k = 0; k < kKinds; ++k) {
      if (!found[k]) continue;
      out.by = kRuleKinds[k].second;
      out.pattern = json::read_text(at.child(keys[k], *found[k]), 0);
    }
    out.device = json::read_text(at.child("device", *found[kKinds]), 0);
    if (found[kKinds + 1]) out.hard = json::read_truth(at.child("hard", *found[kKinds + 1]));
    return out;
  };
  return {[=](const At& at, std::vector<NodeRule>& into) {
            if (at.json.is_object()) {
              at.each_entry([&](const std::string& name, const At& device) {
                into.push_back({.pattern = name, .device = json::read_text(device, 0)});
              });
            } else {
              at.each_item([&](const At& row) { into.push_back(read_row(row)); });
            }
          },
          [kind](const std::vector<NodeRule>& from) {
            Json out = Json::array();
            for (const NodeRule& row : from) {
              const std::string key(kRuleKinds[static_cast<size_t>(row.by)].first);
              out.push_back({{key, row.pattern}, {"device", row.device}});
              if (kind == OfRule::wish) out.back()["hard"] = row.hard;
            }
            return out;
          },
          {{"anyOf",
            {{{"type", "object"}, {"additionalProperties", {{"type", "string"}}}},
             {{"type", "array"}, {"items", {{"type", "object"}}}}}}}};
}

// Kept as text for the strategy's own table.
Convert<std::string> strategy_options() {
  Convert<std::string> out = json::any_value();
  out.read = [read = out.read](const At& at, std::string& into) {
    at.each_entry([](const std::string&, const At&) {});
    read(at, into);
  };
  out.schema = {{"type", "object"}};
  return out;
}

const Fields<CompileOptions>& option_fields() {
  static const Fields<CompileOptions> fields = {
#define HETNN_OPTION(type, name, preset, convert, flag, doc) \
  {#name, &CompileOptions::name, convert, doc, Presence::nullable},
#include "hetnn/compiler/options.inc"
#undef HETNN_OPTION
  };
  return fields;
}

}  // namespace

TargetSpec parse_target(std::string_view text) {
  const Json document = json::parse(text, kTargetJson, "target");
  TargetSpec out = target_fields().value({document, kTargetJson, "target"});
  nlohmann::json written(document);
  for (size_t k = 0; k < out.devices.size(); ++k) {
    backends::DeviceSpec& device = out.devices[k];
    if (device.name.empty()) written["devices"][k]["name"] = device.name = device.kind;
  }
  out.json = written.dump();
  return out;
}

CompileOptions parse_options(std::string_view text) {
  const Json document = json::parse(text, kOptionsJson, "options");
  CompileOptions out = option_fields().value({document, kOptionsJson, "options"});
  passes::check_disabled_rules(out.disabled_rules);
  network_options(out);
  return out;
}

std::string options_json(const CompileOptions& options) { return option_fields().write(options).dump(); }

std::vector<OptionRow> option_rows() {
  const Json schema = option_fields().schema();
  return {
#define HETNN_OPTION(type, name, preset, convert, flag, doc) {#name, flag, doc, schema["properties"][#name].dump()},
#include "hetnn/compiler/options.inc"
#undef HETNN_OPTION
  };
}

std::string target_schema() { return json::schema_text("A target", target_fields().schema()); }
std::string options_schema() { return json::schema_text("Options", option_fields().schema()); }

plan::NetworkOptions network_options(const CompileOptions& options) {
  Json of_strategy = json::parse(options.options, kStrategyJson, "options");
  if (options.overlap) of_strategy["overlap"] = true;
  plan::NetworkOptions out{.partition = plan::parse_plan_options(options.strategy, of_strategy.dump()),
                           .pins = options.pin,
                           .non_exportable = options.non_exportable,
                           .measured_us = options.measured_us,
                           .memory_budget_bytes = options.memory_budget,
                           .fusion = options.fusion,
                           .deterministic = options.deterministic};
  if (options.strict) out.partition.strict = *options.strict;
  return out;
}

backends::LowerOptions lower_options(const CompileOptions& options) {
  const int64_t threads = options.tune ? options.threads.value_or(0) : 0;
  return {.fusion = options.fusion,
          .deterministic = options.deterministic,
          .keep_denormals = options.denormals == Denormals::keep || options.deterministic,
          .schedule = options.schedule,
          .tune_threads = static_cast<int>(threads)};
}

}  // namespace hetnn
