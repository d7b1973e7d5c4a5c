// What a store says of an executable: its graph, and the subgraphs with their devices, as JSON.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "hetnn/base/error.h"
#include "hetnn/store/store.h"

namespace hetnn::store {
namespace {

using Json = nlohmann::ordered_json;
using Indices = std::vector<std::vector<int32_t>>;

// The devices that could run each of these nodes, as the compiler told, in the order of the target's; those of reports
// that tell none are `own` and the general processor, which runs everything.
Json supports(const Json& graph, const std::set<std::string>& nodes, const std::string& own,
              const std::vector<std::string>& devices) {
  std::set<std::string> lacking;
  for (const Json& node : graph) {
    if (!nodes.contains(node.at("node").get<std::string>())) continue;
    const auto told = node.value("supported_by", std::vector{own, devices.front()});
    for (const std::string& device : devices) {
      if (std::find(told.begin(), told.end(), device) == told.end()) lacking.insert(device);
    }
  }
  Json out = Json::array({own});
  for (const std::string& device : devices) {
    if (device != own && !lacking.contains(device)) out.push_back(device);
  }
  return out;
}

// The longest way to the node from one that depends on none; nodes stand in an order in which they can run.
Json nodes_json(const Json& graph, const std::vector<std::string>& devices) {
  std::map<std::string, int64_t> depths;
  Json out = Json::array();
  for (const Json& node : graph) {
    int64_t depth = 0;
    for (const Json& input : node.at("inputs")) {
      if (const auto at = depths.find(input.get<std::string>()); at != depths.end())
        depth = std::max(depth, at->second + 1);
    }
    const auto name = node.at("node").get<std::string>();
    depths[name] = depth;
    out.push_back({{"node", name},
                   {"op", node.at("op")},
                   {"depth", depth},
                   {"supports", supports(graph, {name}, node.at("device").get<std::string>(), devices)},
                   {"depends_on", node.at("inputs")}});
  }
  return out;
}

// Of every subgraph, the earlier ones that it reads from.
Indices order_of(const Json& report, const std::string& called) {
  std::vector<std::set<int32_t>> found(report.at("subgraphs").size());
  std::map<std::string, int32_t> writers;
  for (const Json& node : report.at("graph")) {
    const auto own = node.at("subgraph").get<int32_t>();
    if (own < 0 || static_cast<size_t>(own) >= found.size()) {
      throw InvalidModel(
          text(called, ": its report names the subgraph ", own, " of ", found.size(), ". Compile the model again."));
    }
    for (const Json& input : node.at("inputs")) {
      const auto at = writers.find(input.get<std::string>());
      if (at != writers.end() && at->second != own) found[static_cast<size_t>(own)].insert(at->second);
    }
    writers[node.at("node").get<std::string>()] = own;
  }
  Indices out;
  for (const std::set<int32_t>& earlier : found) out.emplace_back(earlier.begin(), earlier.end());
  return out;
}

Json subgraphs_json(const Json& report, const std::vector<std::string>& devices, const std::string& called) {
  const Json& rows = report.at("subgraphs");
  const Indices depends_on = order_of(report, called);
  Json out = Json::array();
  for (size_t k = 0; k < rows.size(); ++k) {
    const Json& row = rows.at(k);
    out.push_back({{"index", k},
                   {"device", row.at("device")},
                   {"supports", supports(report.at("graph"), row.at("nodes").get<std::set<std::string>>(),
                                         row.at("device").get<std::string>(), devices)},
                   {"nodes", row.at("nodes")},
                   {"depends_on", depends_on[k]}});
  }
  return out;
}

// What loops repeat, each as a network of its own; an empty list where there are none.
Json bodies_json(const Json& report, const std::vector<std::string>& devices, const std::string& called) {
  Json out = Json::array();
  for (const Json& body : report.value("bodies", Json::array())) {
    const Json& inner = body.at("report");
    const std::string within = text(called, ": the body of '", body.at("node").get<std::string>(), "'");
    out.push_back({{"of", body.at("node")},
                   {"nodes", nodes_json(inner.at("graph"), devices)},
                   {"subgraphs", subgraphs_json(inner, devices, within)}});
  }
  return out;
}

}  // namespace

Description describe(const program::Program& program, const std::string& called) {
  try {
    const Json report = Json::parse(program.report_json.read()), target = Json::parse(program.target_json);
    Description out;
    for (const Json& device : target.at("devices")) out.devices.push_back(device.at("name").get<std::string>());
    if (out.devices.empty()) throw InvalidModel(text(called, " names no devices. Compile the model again."));
    out.target = report.at("target").get<std::string>();
    // A subgraph is several subprograms where sizes come out of values.
    if (const size_t told = report.at("subgraphs").size(); told > program.subprograms.size()) {
      throw InvalidModel(text(called, ": its report describes ", told, told == 1 ? " subgraph" : " subgraphs",
                              ", and it has ", program.subprograms.size(), ". Compile the model again."));
    }
    Json document = {{"nodes", nodes_json(report.at("graph"), out.devices)},
                     {"subgraphs", subgraphs_json(report, out.devices, called)}};
    if (Json bodies = bodies_json(report, out.devices, called); !bodies.empty()) document["bodies"] = std::move(bodies);
    out.document = document.dump(-1, ' ', false, Json::error_handler_t::replace);
    return out;
  } catch (const Json::exception& error) {
    throw InvalidModel(text(called, ": its report does not describe its subgraphs: ", error.what(),
                            ". Compile the model again with this hetnn."));
  }
}

std::vector<std::string> devices_of(const std::string& document) {
  std::set<std::string> out;
  const auto add = [&](const Json& network) {
    for (const Json& subgraph : network.at("subgraphs")) out.insert(subgraph.at("device").get<std::string>());
  };
  const Json parsed = Json::parse(document);
  add(parsed);
  for (const Json& body : parsed.value("bodies", Json::array())) add(body);
  return {out.begin(), out.end()};
}

}  // namespace hetnn::store
