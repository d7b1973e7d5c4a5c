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

// The longest way to the node from one that depends on none; nodes stand in an order in which they can run.
Json nodes_json(const Json& graph) {
  std::map<std::string, int64_t> depths;
  Json out = Json::array();
  for (const Json& node : graph) {
    int64_t depth = 0;
    for (const Json& input : node.at("inputs")) {
      if (const auto at = depths.find(input.get<std::string>()); at != depths.end())
        depth = std::max(depth, at->second + 1);
    }
    depths[node.at("node").get<std::string>()] = depth;
    out.push_back(
        {{"node", node.at("node")}, {"op", node.at("op")}, {"depth", depth}, {"depends_on", node.at("inputs")}});
  }
  return out;
}

// Devices of the target on which each of the nodes could run: one stands against a node with reasons, or not at all.
Json supports(const Json& report, const Json& subgraph, const std::vector<std::string>& devices) {
  std::set<std::string> against;
  for (const Json& row : report.at("not_on_preferred")) {
    const Json& nodes = subgraph.at("nodes");
    if (std::find(nodes.begin(), nodes.end(), row.at("node")) == nodes.end()) continue;
    for (const Json& reason : row.at("reasons")) against.insert(reason.at("device").get<std::string>());
  }
  const auto own = subgraph.at("device").get<std::string>();
  Json out = Json::array({own});
  for (const std::string& device : devices) {
    // The first is the general processor, which runs everything; another accelerator was not asked about these nodes.
    const bool can = device == devices.front() || (own == devices.front() && !against.contains(device));
    if (device != own && can) out.push_back(device);
  }
  return out;
}

}  // namespace

Description describe(const program::Program& program, const std::string& called) {
  try {
    const Json report = Json::parse(program.report_json), target = Json::parse(program.target_json);
    Description out;
    for (const Json& device : target.at("devices")) out.devices.push_back(device.at("name").get<std::string>());
    if (out.devices.empty()) throw InvalidModel(text(called, " names no devices. Compile the model again."));
    out.target = report.at("target").get<std::string>();
    Json subgraphs = Json::array();
    if (report.at("subgraphs").size() != program.subprograms.size()) {
      throw InvalidModel(text(called, ": its report describes ", report.at("subgraphs").size(),
                              " subgraphs, and it has ", program.subprograms.size(), ". Compile the model again."));
    }
    for (size_t k = 0; k < program.subprograms.size(); ++k) {
      const Json& row = report.at("subgraphs").at(k);
      subgraphs.push_back({{"index", k},
                           {"device", program.subprograms[k].device},
                           {"supports", supports(report, row, out.devices)},
                           {"nodes", row.at("nodes")},
                           {"depends_on", program.subprograms[k].depends_on}});
    }
    out.document = Json{{"nodes", nodes_json(report.at("graph"))}, {"subgraphs", subgraphs}}.dump(
        -1, ' ', false, Json::error_handler_t::replace);
    return out;
  } catch (const Json::exception& error) {
    throw InvalidModel(text(called, ": its report does not describe its subgraphs: ", error.what(),
                            ". Compile the model again with this hetnn."));
  }
}

std::vector<std::string> devices_of(const std::string& document) {
  std::set<std::string> out;
  const Json parsed = Json::parse(document);
  for (const Json& subgraph : parsed.at("subgraphs")) out.insert(subgraph.at("device").get<std::string>());
  return {out.begin(), out.end()};
}

}  // namespace hetnn::store
