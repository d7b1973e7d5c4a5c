// What clients see of a network's ports: where the model's caller passes or gets texts, one tensor in place of two
// ports.
#include <algorithm>
#include <utility>

#include "hetnn/base/error.h"
#include "hetnn/base/json_fields.h"
#include "hetnn/serve/inference.h"

namespace hetnn::serve {
namespace {

using json::Json;
using Pair = std::pair<size_t, size_t>;  // the ports of bytes and of spans

// The texts of the trees within a value (docs/format.md), which was checked when the program was loaded.
void collect_texts(const Json& value, std::vector<Pair>& to) {
  if (!value.is_structured()) return;
  if (const auto text = value.is_object() ? value.find("text") : value.end(); text != value.end()) {
    to.emplace_back(text->at(0).get<size_t>(), text->at(1).get<size_t>());
  } else {
    for (const Json& inner : value) collect_texts(inner, to);
  }
}

// Importers call the two ports NAME.bytes and NAME.spans.
std::string name_of_texts(const std::string& bytes) {
  constexpr std::string_view kEnd = ".bytes";
  return bytes.ends_with(kEnd) ? bytes.substr(0, bytes.size() - kEnd.size()) : bytes;
}

std::vector<Signature::Port> seen(const program::Program& program, const std::vector<program::Port>& ports,
                                  const std::vector<Pair>& texts, const std::string& network) {
  std::vector<Signature::Port> out;
  for (size_t k = 0; k < ports.size(); ++k) {
    if (std::ranges::find(texts, k, &Pair::second) != texts.end()) continue;
    const std::string& name = ports[k].name;
    if (const auto pair = std::ranges::find(texts, k, &Pair::first); pair != texts.end()) {
      out.push_back({name_of_texts(name), std::nullopt, k, pair->second});
      continue;
    }
    const DType dtype = program.buffers[static_cast<size_t>(ports[k].buffer)].dtype;
    if (kserve_name(dtype).empty())
      throw Unsupported(
          text("'", name, "' of '", network, "' is ", dtype_name(dtype), ", which the protocol has no name for."));
    out.push_back({name, dtype, k});
  }
  return out;
}

}  // namespace

Signature signature_of(std::string network, const program::Program& program) {
  std::vector<Pair> given, made;
  if (!program.signature_json.empty()) {
    const Json document = json::parse(program.signature_json, kProgramJson, network);
    collect_texts(document.at("args"), given);
    collect_texts(document.at("kwargs"), given);
    collect_texts(document.at("outputs"), made);
  }
  auto inputs = seen(program, program.inputs, given, network);
  auto outputs = seen(program, program.outputs, made, network);
  return {std::move(network), std::move(inputs), std::move(outputs)};
}

}  // namespace hetnn::serve
