// Planning problems as JSON: reading with errors that name the node and the field, and writing.
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "hetnn/base/error.h"
#include "hetnn/plan/partition/problem/problem.h"

namespace hetnn::plan {
namespace {

using Json = nlohmann::json;

std::string short_text(const Json& value) {
  std::string dump = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr size_t kMost = 60;
  if (dump.size() > kMost) dump = dump.substr(0, kMost) + "...";
  return dump;
}

[[noreturn]] void throw_field(const std::string& where, const char* field, const char* wanted, const Json& got) {
  throw InvalidModel(text(where, ": ", field, " must be ", wanted, ", got ", short_text(got), "."));
}

double number(const Json& value, const std::string& where, const char* field) {
  if (!value.is_number()) throw_field(where, field, "a number", value);
  const auto v = value.get<double>();
  if (!std::isfinite(v)) throw_field(where, field, "a finite number", value);
  return v;
}

bool boolean(const Json& value, const std::string& where, const char* field) {
  if (!value.is_boolean()) throw_field(where, field, "true or false", value);
  return value.get<bool>();
}

const std::string& string(const Json& value, const std::string& where, const char* field) {
  if (!value.is_string()) throw_field(where, field, "a string", value);
  return value.get_ref<const std::string&>();
}

/// Fills a problem piece by piece. Nodes may come before or after the devices; their inputs are resolved at the end.
class Reader {
 public:
  bool has_devices() const { return !problem_.devices.empty(); }

  void devices(const Json& list) {
    if (!list.is_array()) throw_field("problem", "devices", "a list", list);
    for (const Json& item : list) {
      const std::string where = text("devices[", problem_.devices.size(), "]");
      if (!item.is_object()) throw_field("problem", where.c_str(), "an object", item);
      ProblemDevice device;
      if (!item.contains("name")) throw InvalidModel(text(where, ": has no `name`; name every device."));
      device.name = string(item["name"], where, "name");
      if (item.contains("launch_us")) device.launch_us = number(item["launch_us"], where, "launch_us");
      if (item.contains("connected")) device.connected = boolean(item["connected"], where, "connected");
      if (item.contains("budget_bytes") && !item["budget_bytes"].is_null()) {
        device.budget_bytes = number(item["budget_bytes"], where, "budget_bytes");
        if (device.budget_bytes < 0) throw_field(where, "budget_bytes", "at least 0", item["budget_bytes"]);
      }
      problem_.devices.push_back(std::move(device));
    }
    if (problem_.devices.empty()) {
      throw InvalidModel("problem: `devices` is empty; name at least the general processor, which comes first.");
    }
  }

  void node(const Json& item) {
    std::string where = text("nodes[", problem_.size(), "]");
    if (!item.is_object()) throw_field("problem", where.c_str(), "an object", item);
    if (!item.contains("id")) throw InvalidModel(text(where, ": has no `id`; give every node one."));
    const int32_t v = problem_.add_node(string(item["id"], where, "id"), {});
    where = text("node '", problem_.ids.back(), "'");
    if (item.contains("inputs")) {
      if (!item["inputs"].is_array()) throw_field(where, "inputs", "a list of ids", item["inputs"]);
      for (const Json& input : item["inputs"]) inputs_.push_back(string(input, where, "inputs"));
    }
    inputs_end_.push_back(inputs_.size());
    if (!item.contains("time_us") || !item["time_us"].is_object()) {
      throw InvalidModel(text(where, ": time_us must be an object from device to microseconds",
                              item.contains("time_us") ? ", got " + short_text(item["time_us"]) : "", "."));
    }
    for (const auto& [name, time] : item["time_us"].items()) {
      problem_.time_of(v, device(name, where, "time_us")) = number(time, where, "time_us");
    }
    if (item.contains("output_bytes"))
      problem_.output_bytes.back() = number(item["output_bytes"], where, "output_bytes");
    if (item.contains("macs")) problem_.macs.back() = number(item["macs"], where, "macs");
    if (item.contains("compute")) problem_.compute.back() = boolean(item["compute"], where, "compute") ? 1 : 0;
    if (item.contains("exportable")) exportable(v, item["exportable"], where);
    optional_fields(v, item, where);
  }

  void links(const Json& value) {
    const size_t n = problem_.devices.size();
    if (value.is_object()) {
      problem_.set_links(link(value, "links"));
      return;
    }
    if (!value.is_array()) throw_field("problem", "links", "an object or a list of objects", value);
    problem_.set_links({});
    std::vector<uint8_t> given(n * n, 0);
    for (const Json& item : value) {
      if (!item.is_object() || !item.contains("from") || !item.contains("to"))
        throw_field("links", "an entry", "an object with `from` and `to`", item);
      const int32_t from = device(string(item["from"], "links", "from"), "links", "from");
      const int32_t to = device(string(item["to"], "links", "to"), "links", "to");
      const size_t k = static_cast<size_t>(from) * n + static_cast<size_t>(to);
      problem_.links[k] = link(item, text("link '", problem_.devices[static_cast<size_t>(from)].name, "' -> '",
                                          problem_.devices[static_cast<size_t>(to)].name, "'"));
      given[k] = 1;
    }
    fill_missing_links(given);
  }

  Problem finish(bool has_links) {
    if (!has_devices()) throw InvalidModel("problem: has no `devices`; the first one is the general processor.");
    if (!has_links) problem_.set_links({});
    std::unordered_map<std::string_view, int32_t> index;
    index.reserve(problem_.ids.size());
    for (int32_t v = 0; v < problem_.size(); ++v) {
      const std::string& id = problem_.ids[static_cast<size_t>(v)];
      if (!index.emplace(id, v).second) {
        throw InvalidModel(text("node '", id, "': this id is used twice; ids must differ."));
      }
    }
    problem_.inputs.clear();
    problem_.inputs.reserve(inputs_.size());
    size_t next = 0;
    for (size_t v = 0; v < problem_.ids.size(); ++v) {
      for (; next < inputs_end_[v]; ++next) {
        const auto found = index.find(inputs_[next]);
        if (found == index.end()) {
          throw InvalidModel(text("node '", problem_.ids[v], "': input '", inputs_[next],
                                  "' is not a node of the problem. Add that node or remove the input."));
        }
        problem_.inputs.push_back(found->second);
      }
      problem_.input_begin[v + 1] = static_cast<int64_t>(next);
    }
    const size_t n = problem_.ids.size();
    if (!problem_.weight_bytes.empty()) problem_.weight_bytes.resize(n, 0);
    if (!problem_.pins.empty()) problem_.pins.resize(n);
    if (!problem_.ops.empty()) problem_.ops.resize(n);
    if (!problem_.what_if_time_us.empty()) problem_.what_if_time_us.resize(n * problem_.devices.size(), kUnsupported);
    return std::move(problem_);
  }

 private:
  int32_t device(const std::string& name, const std::string& where, const char* field) const {
    const int32_t d = problem_.device_index(name);
    if (d >= 0) return d;
    std::string names;
    for (const ProblemDevice& known : problem_.devices) names += (names.empty() ? "" : ", ") + known.name;
    throw InvalidModel(text(where, ": ", field, " names device '", name, "'; the problem has ", names, "."));
  }

  static ProblemLink link(const Json& item, const std::string& where) {
    ProblemLink l;
    if (item.contains("bytes_per_us")) l.bytes_per_us = number(item["bytes_per_us"], where, "bytes_per_us");
    if (item.contains("latency_us")) l.latency_us = number(item["latency_us"], where, "latency_us");
    return l;
  }

  /// A direction that is not listed is like its opposite; a pair that is not listed goes through the general processor.
  void fill_missing_links(std::vector<uint8_t>& given) {
    const size_t n = problem_.devices.size();
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = 0; b < n; ++b) {
        if (given[a * n + b] != 0 || given[b * n + a] != 1 || a == b) continue;
        problem_.links[a * n + b] = problem_.links[b * n + a];
        given[a * n + b] = 2;
      }
    }
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = 0; b < n; ++b) {
        if (given[a * n + b] != 0 || a == b) continue;
        if (given[a * n] == 0 || given[b] == 0 || a == 0 || b == 0) {
          throw InvalidModel(text("links: nothing connects '", problem_.devices[a].name, "' to '",
                                  problem_.devices[b].name, "', not even through '", problem_.devices[0].name,
                                  "'. List that link."));
        }
        const ProblemLink& up = problem_.links[a * n];
        const ProblemLink& down = problem_.links[b];
        problem_.links[a * n + b] = {1 / (1 / up.bytes_per_us + 1 / down.bytes_per_us),
                                     up.latency_us + down.latency_us};
      }
    }
  }

  void exportable(int32_t v, const Json& value, const std::string& where) {
    const size_t row = static_cast<size_t>(v) * problem_.devices.size();
    if (value.is_boolean()) {
      for (size_t d = 0; d < problem_.devices.size(); ++d) problem_.exportable[row + d] = value.get<bool>() ? 1 : 0;
      return;
    }
    if (!value.is_object()) throw_field(where, "exportable", "an object from device to true or false", value);
    for (const auto& [name, flag] : value.items()) {
      const int32_t d = device(name, where, "exportable");
      problem_.exportable[row + static_cast<size_t>(d)] = boolean(flag, where, "exportable") ? 1 : 0;
    }
  }

  void optional_fields(int32_t v, const Json& item, const std::string& where) {
    const size_t n = static_cast<size_t>(v) + 1;
    if (item.contains("weight_bytes")) {
      problem_.weight_bytes.resize(n, 0);
      problem_.weight_bytes.back() = number(item["weight_bytes"], where, "weight_bytes");
    }
    if (item.contains("op")) {
      problem_.ops.resize(n);
      problem_.ops.back() = string(item["op"], where, "op");
    }
    if (item.contains("pin") && !item["pin"].is_null()) {
      const Json& pin = item["pin"];
      if (!pin.is_object() || !pin.contains("device"))
        throw_field(where, "pin", "an object {\"device\", \"hard\"}", pin);
      problem_.pins.resize(n);
      problem_.pins.back().device = device(string(pin["device"], where, "pin.device"), where, "pin");
      if (pin.contains("hard")) problem_.pins.back().hard = boolean(pin["hard"], where, "pin.hard");
    }
    if (item.contains("what_if_time_us")) {
      const Json& times = item["what_if_time_us"];
      if (!times.is_object()) throw_field(where, "what_if_time_us", "an object from device to microseconds", times);
      problem_.what_if_time_us.resize(n * problem_.devices.size(), kUnsupported);
      for (const auto& [name, time] : times.items()) {
        const auto d = static_cast<size_t>(device(name, where, "what_if_time_us"));
        const double us = number(time, where, "what_if_time_us");
        if (us < 0) throw_field(where, "what_if_time_us", "at least 0", time);
        problem_.what_if_time_us[static_cast<size_t>(v) * problem_.devices.size() + d] = us;
      }
    }
  }

  Problem problem_;
  std::vector<std::string> inputs_;
  std::vector<size_t> inputs_end_;
};

}  // namespace

Problem parse_problem(std::string_view json) {
  Reader reader;
  std::string key;
  // Nodes that come after the devices are read and dropped one by one, so that no document of a million nodes is kept.
  const auto drop_nodes = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1) key = parsed.get_ref<const std::string&>();
    if (event == Json::parse_event_t::array_end && depth == 1 && key == "devices") reader.devices(parsed);
    if (event == Json::parse_event_t::object_end && depth == 2 && key == "nodes" && reader.has_devices()) {
      reader.node(parsed);
      return false;
    }
    return true;
  };
  Json rest;
  try {
    rest = Json::parse(json.begin(), json.end(), drop_nodes);
  } catch (const Json::parse_error& error) {
    throw InvalidModel(text("problem: this is not JSON: ", error.what(), "."));
  }
  if (!rest.is_object()) throw_field("problem", "it", "an object with devices, links and nodes", rest);
  if (!reader.has_devices() && rest.contains("devices")) reader.devices(rest["devices"]);
  if (!reader.has_devices()) throw InvalidModel("problem: has no `devices`; the first one is the general processor.");
  if (!rest.contains("nodes")) throw InvalidModel("problem: has no `nodes`; an empty problem has an empty list.");
  if (!rest["nodes"].is_array()) throw_field("problem", "nodes", "a list", rest["nodes"]);
  for (const Json& node : rest["nodes"]) reader.node(node);
  if (rest.contains("links")) reader.links(rest["links"]);
  return reader.finish(rest.contains("links"));
}

std::string problem_json(const Problem& problem) {
  nlohmann::ordered_json document;
  document["devices"] = Json::array();
  for (const ProblemDevice& d : problem.devices) {
    nlohmann::ordered_json device = {{"name", d.name}, {"launch_us", d.launch_us}, {"connected", d.connected}};
    if (d.budget_bytes >= 0) device["budget_bytes"] = d.budget_bytes;
    document["devices"].push_back(std::move(device));
  }
  bool uniform = true;
  const ProblemLink* first = nullptr;
  for (int32_t a = 0; a < problem.device_count(); ++a) {
    for (int32_t b = 0; b < problem.device_count(); ++b) {
      if (a == b) continue;
      const ProblemLink& l = problem.link(a, b);
      if (first == nullptr) first = &l;
      uniform = uniform && l.bytes_per_us == first->bytes_per_us && l.latency_us == first->latency_us;
    }
  }
  if (uniform) {
    const ProblemLink l = first == nullptr ? ProblemLink{} : *first;
    document["links"] = {{"bytes_per_us", l.bytes_per_us}, {"latency_us", l.latency_us}};
  } else {
    document["links"] = Json::array();
    for (int32_t a = 0; a < problem.device_count(); ++a) {
      for (int32_t b = 0; b < problem.device_count(); ++b) {
        if (a == b) continue;
        const ProblemLink& l = problem.link(a, b);
        document["links"].push_back({{"from", problem.devices[static_cast<size_t>(a)].name},
                                     {"to", problem.devices[static_cast<size_t>(b)].name},
                                     {"bytes_per_us", l.bytes_per_us},
                                     {"latency_us", l.latency_us}});
      }
    }
  }
  document["nodes"] = Json::array();
  for (int32_t v = 0; v < problem.size(); ++v) {
    const auto k = static_cast<size_t>(v);
    nlohmann::ordered_json node = {{"id", problem.ids[k]}};
    node["inputs"] = Json::array();
    for (int64_t i = problem.input_begin[k]; i < problem.input_begin[k + 1]; ++i)
      node["inputs"].push_back(problem.ids[static_cast<size_t>(problem.inputs[static_cast<size_t>(i)])]);
    node["time_us"] = Json::object();
    for (int32_t d = 0; d < problem.device_count(); ++d) {
      const std::string& name = problem.devices[static_cast<size_t>(d)].name;
      const size_t at = k * problem.devices.size() + static_cast<size_t>(d);
      if (problem.supported(v, d)) node["time_us"][name] = problem.time_of(v, d);
      if (problem.exportable[at] == 0) node["exportable"][name] = false;
      if (!problem.what_if_time_us.empty() && problem.what_if_time_us[at] < kUnsupported)
        node["what_if_time_us"][name] = problem.what_if_time_us[at];
    }
    node["output_bytes"] = problem.output_bytes[k];
    node["compute"] = problem.compute[k] != 0;
    node["macs"] = problem.macs[k];
    if (problem.weight_of(v) > 0) node["weight_bytes"] = problem.weight_of(v);
    if (!problem.ops.empty() && !problem.ops[k].empty()) node["op"] = problem.ops[k];
    if (!problem.pins.empty() && problem.pins[k].device >= 0) {
      node["pin"] = {{"device", problem.devices[static_cast<size_t>(problem.pins[k].device)].name},
                     {"hard", problem.pins[k].hard}};
    }
    document["nodes"].push_back(std::move(node));
  }
  return document.dump();
}

}  // namespace hetnn::plan
