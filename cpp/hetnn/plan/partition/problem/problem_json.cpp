// Planning problems as JSON: nodes are read one by one by a table of fields, and dropped.
#include <algorithm>
#include <unordered_map>

#include "hetnn/base/json_fields.h"
#include "hetnn/plan/partition/problem/problem.h"

namespace hetnn::plan {
namespace {

using json::At;
using json::Convert;
using json::Fields;
using json::Json;
using json::Presence;
using Times = std::map<std::string, double>;

constexpr Presence kOptional = Presence::optional;

const Fields<ProblemDevice>& device_fields() {
  static const Fields<ProblemDevice> fields = {
      {"name", &ProblemDevice::name, json::word(), "the device's name"},
      {"launch_us", &ProblemDevice::launch_us, json::number({.least = 0}), "paid once per subgraph", kOptional},
      {"connected", &ProblemDevice::connected, json::truth(), "whether a subgraph must be connected", kOptional},
      {"budget_bytes", &ProblemDevice::budget_bytes, json::number({.least = 0}),
       "the most bytes of weights that may be placed here", Presence::nullable}};
  return fields;
}

template <typename Link>
const Fields<Link>& speed_fields() {
  static const Fields<Link> fields = {
      {"bytes_per_us", &Link::bytes_per_us, json::number({.least = 0, .above = true}), "bytes moved in a microsecond",
       kOptional},
      {"latency_us", &Link::latency_us, json::number({.least = 0}), "time of an empty transfer", kOptional}};
  return fields;
}

struct ListedLink : ProblemLink {
  std::string from, to;
};
const Fields<ListedLink>& listed_link_fields() {
  static const Fields<ListedLink> fields = {{"from", &ListedLink::from, json::word(), "the name of a device"},
                                            {"to", &ListedLink::to, json::word(), "the name of a device"},
                                            speed_fields<ListedLink>().rows()[0],
                                            speed_fields<ListedLink>().rows()[1]};
  return fields;
}

struct PinText {
  std::string device;
  bool hard = false;
};
const Fields<PinText>& pin_fields() {
  static const Fields<PinText> fields = {
      {"device", &PinText::device, json::word(), "the name of a device"},
      {"hard", &PinText::hard, json::truth(), "an error where it is impossible; else kept wherever it is possible",
       kOptional}};
  return fields;
}

// Links, times and cuts take memory and time by pairs of devices.
constexpr size_t kMostDevices = 256;
constexpr int64_t kMostDepth = int64_t{1} << 30;
constexpr int32_t kNoDepth = -1;
constexpr uint8_t kUnstated = 2;

/// Fills a problem piece by piece. Nodes may come before or after the devices; their inputs are resolved at the end.
class Reader {
 public:
  bool has_devices() const { return !problem_.devices.empty(); }

  void devices(const At& at) {
    at.each_item([&](const At& item) { problem_.devices.push_back(device_fields().value(item)); }, 1, "devices");
    if (problem_.devices.size() > kMostDevices)
      at.fail(text("holds ", problem_.devices.size(), " devices; at most ", kMostDevices, " are expected"));
  }

  /// A node that is an item of `list`.
  void node(const At& list, const Json& value);

  void id(const At& at) { problem_.add_node(json::read_text(at, 1), {}); }
  void inputs(const At& at) {
    at.each_item([&](const At& input) { inputs_.push_back(json::read_text(input, 1)); }, 0, "ids");
  }
  void time_us(const At& at) {
    at.each_entry([&](const std::string& name, const At& time) {
      problem_.time_of(problem_.size() - 1, device(name, at)) = json::read_number(time, {.least = 0});
    });
  }
  void output_bytes(const At& at) { problem_.output_bytes.back() = json::read_number(at, {.least = 0}); }
  void macs(const At& at) { problem_.macs.back() = json::read_number(at, {.least = 0}); }
  void compute(const At& at) { problem_.compute.back() = json::read_truth(at) ? 1 : 0; }
  void exportable(const At& at) {
    const size_t n = problem_.devices.size(), row = (problem_.ids.size() - 1) * n;
    if (at.json.is_boolean()) {
      for (size_t d = 0; d < n; ++d) problem_.exportable[row + d] = at.json.get<bool>() ? 1 : 0;
      return;
    }
    at.each_entry([&](const std::string& name, const At& flag) {
      problem_.exportable[row + static_cast<size_t>(device(name, at))] = json::read_truth(flag) ? 1 : 0;
    });
  }
  void weight_bytes(const At& at) {
    problem_.weight_bytes.resize(problem_.ids.size(), 0);
    problem_.weight_bytes.back() = json::read_number(at, {.least = 0});
  }
  void simd(const At& at) {
    simd_.resize(problem_.ids.size(), kUnstated);
    simd_.back() = json::read_truth(at) ? 1 : 0;
  }
  void depth(const At& at) {
    problem_.depths.resize(problem_.ids.size(), kNoDepth);
    problem_.depths.back() = static_cast<int32_t>(json::read_integer(at, 0, kMostDepth));
  }
  void op(const At& at) {
    problem_.ops.resize(problem_.ids.size());
    problem_.ops.back() = json::read_text(at, 0);
  }
  void pin(const At& at) {
    const PinText pin = pin_fields().value(at);
    problem_.pins.resize(problem_.ids.size());
    problem_.pins.back() = {device(pin.device, at), pin.hard};
  }
  void what_if_time_us(const At& at) {
    const size_t n = problem_.devices.size(), row = (problem_.ids.size() - 1) * n;
    problem_.what_if_time_us.resize(row + n, kUnsupported);
    at.each_entry([&](const std::string& name, const At& time) {
      problem_.what_if_time_us[row + static_cast<size_t>(device(name, at))] = json::read_number(time, {.least = 0});
    });
  }

  void links(const At& at) {
    has_links_ = true;
    if (at.json.is_object()) {
      problem_.set_links(speed_fields<ProblemLink>().value(at));
      return;
    }
    const size_t n = problem_.devices.size();
    problem_.set_links({});
    std::vector<uint8_t> given(n * n, 0);
    at.each_item([&](const At& item) {
      const ListedLink link = listed_link_fields().value(item);
      const size_t k = static_cast<size_t>(device(link.from, item)) * n + static_cast<size_t>(device(link.to, item));
      problem_.links[k] = link;
      given[k] = 1;
    });
    fill_missing_links(given);
  }

  Problem finish() {
    if (!has_links_) problem_.set_links({});
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
    require_all_depths();
    fill_simd();
    if (!problem_.ops.empty()) problem_.ops.resize(n);
    if (!problem_.what_if_time_us.empty()) problem_.what_if_time_us.resize(n * problem_.devices.size(), kUnsupported);
    return std::move(problem_);
  }

 private:
  int32_t device(const std::string& name, const At& at) const {
    const int32_t d = problem_.device_index(name);
    if (d >= 0) return d;
    std::string names;
    for (const ProblemDevice& known : problem_.devices) names += (names.empty() ? "" : ", ") + known.name;
    at.fail(text("names device '", name, "'; the problem has ", names));
  }

  /// Depths are told by comparing: those of some nodes alone say nothing.
  void require_all_depths() {
    if (problem_.depths.empty()) return;
    problem_.depths.resize(problem_.ids.size(), kNoDepth);
    const auto without = std::find(problem_.depths.begin(), problem_.depths.end(), kNoDepth);
    if (without == problem_.depths.end()) return;
    const auto at = static_cast<size_t>(without - problem_.depths.begin());
    throw InvalidModel(text("node '", problem_.ids[at],
                            "': has no depth, while other nodes have one. Give a depth to every node or to none."));
  }

  void fill_simd() {
    if (simd_.empty()) return;
    problem_.simd = problem_.compute;
    for (size_t v = 0; v < simd_.size(); ++v) {
      if (simd_[v] != kUnstated) problem_.simd[v] = simd_[v];
    }
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

  Problem problem_;
  bool has_links_ = false;
  std::vector<std::string> inputs_;
  std::vector<size_t> inputs_end_;
  std::vector<uint8_t> simd_;
};

// A row of a node, which the reader puts in its vectors.
Convert<Reader> part(void (Reader::*read)(const At&), Json schema) {
  return {[read](const At& at, Reader& into) { (into.*read)(at); }, [](const Reader&) { return Json(); },
          std::move(schema)};
}

Json figure(double preset) {
  Json schema = json::number({.least = 0}).schema;
  schema["default"] = preset;
  return schema;
}

Fields<Reader> make_node_fields() {
  const Json times = json::map_of<Times>(json::number({.least = 0})).schema;
  const Json booleans = json::map_of<std::map<std::string, bool>>(json::truth()).schema;
  return {
      {"id", part(&Reader::id, json::word().schema), "the node's name, as no other node's"},
      {"inputs", part(&Reader::inputs, json::list_of(json::word()).schema), "the ids of the nodes it reads", kOptional},
      {"time_us", part(&Reader::time_us, times),
       "its time by device; a device that is missing does not support the node"},
      {"output_bytes", part(&Reader::output_bytes, figure(0)), "bytes of its output", kOptional},
      {"compute", part(&Reader::compute, {{"type", "boolean"}, {"default", true}}), "whether it does arithmetic",
       kOptional},
      {"simd", part(&Reader::simd, {{"type", "boolean"}}),
       "whether it suits SIMD, the same arithmetic on many elements; as compute where not given", kOptional},
      {"macs", part(&Reader::macs, figure(0)), "its multiply-accumulates", kOptional},
      {"exportable", part(&Reader::exportable, {{"anyOf", {{{"type", "boolean"}}, booleans}}, {"default", true}}),
       "whether it may be the output of a subgraph, of all devices or by device", kOptional},
      {"weight_bytes", part(&Reader::weight_bytes, figure(0)), "bytes of constants that it brings to its device",
       kOptional},
      {"depth", part(&Reader::depth, json::integer(0, kMostDepth).schema),
       "strategy depth: its depth, in place of the longest path to it; of every node or of none", kOptional},
      {"op", part(&Reader::op, json::any_text().schema), "its kind, which what_if groups by", kOptional},
      {"pin", part(&Reader::pin, pin_fields().schema()), "a wish for its device", Presence::nullable},
      {"what_if_time_us", part(&Reader::what_if_time_us, times), "the time a device would take if it supported it",
       kOptional}};
}
const Fields<Reader>& node_fields() {
  static const Fields<Reader> fields = make_node_fields();
  return fields;
}

void Reader::node(const At& list, const Json& value) {
  const At item = list.item(problem_.ids.size(), value);
  const auto id = value.is_object() ? value.find("id") : value.end();
  const bool named = value.is_object() && id != value.end() && id->is_string();
  node_fields().read(named ? item.called("node", id->get_ref<const std::string&>()) : item, *this);
  inputs_end_.push_back(inputs_.size());
}

const Fields<Reader>& problem_fields() {
  static const Fields<Reader> fields = {
      {"devices",
       {[](const At& at, Reader& into) {
          if (!into.has_devices()) into.devices(at);
        },
        [](const Reader&) { return Json(); }, json::list_of(json::object(device_fields), 1).schema},
       "the devices; the first one is the general processor"},
      {"links",
       part(
           &Reader::links,
           {{"anyOf", {speed_fields<ProblemLink>().schema(), json::list_of(json::object(listed_link_fields)).schema}}}),
       "how values move between devices: one speed, or a list of links", kOptional},
      {"nodes",
       {[](const At& at, Reader& into) { at.each_item([&](const At& item) { into.node(at, item.json); }); },
        [](const Reader&) { return Json(); },
        {{"type", "array"}, {"items", node_fields().schema()}}},
       "the nodes, in any order"}};
  return fields;
}

constexpr std::string_view kWhere = "problem";

}  // namespace

Problem parse_problem(std::string_view text) {
  Reader reader;
  const Json none;
  const At document(none, kProblemJson, kWhere);
  const At nodes = document.child("nodes", none);
  // Nodes that come after the devices are read and dropped one by one, so that no document of a million nodes is kept.
  const Json rest = json::parse(text, kProblemJson, kWhere, [&](std::string_view key, bool item, const Json& value) {
    if (!item && key == "devices") reader.devices(document.child(key, value));
    if (!item || key != "nodes" || !reader.has_devices()) return false;
    reader.node(nodes, value);
    return true;
  });
  problem_fields().read({rest, kProblemJson, kWhere}, reader);
  return reader.finish();
}

std::string problem_schema() { return json::schema_text("A planning problem", problem_fields().schema()); }

std::string problem_json(const Problem& problem) {
  Json document;
  document["devices"] = Json::array();
  for (const ProblemDevice& d : problem.devices) {
    Json device = {{"name", d.name}, {"launch_us", d.launch_us}, {"connected", d.connected}};
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
    Json node = {{"id", problem.ids[k]}};
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
    if (!problem.simd.empty()) node["simd"] = problem.suits_simd(v);
    node["macs"] = problem.macs[k];
    if (problem.weight_of(v) > 0) node["weight_bytes"] = problem.weight_of(v);
    if (!problem.depths.empty()) node["depth"] = problem.depths[k];
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
