// The NPU's code as JSON text and back.
#include <nlohmann/json.hpp>

#include "hetnn/base/error.h"
#include "hetnn/base/json_reader.h"
#include "hetnn/npu/code.h"

namespace hetnn::npu {
namespace {

using Json = nlohmann::ordered_json;

Json bindings_json(const Bindings& bindings) {
  Json out = Json::object();
  for (const auto& [name, value] : bindings) out[name] = value;
  return out;
}

Json ports_json(const std::vector<Port>& ports) {
  Json out = Json::array();
  for (const Port& port : ports) {
    out.push_back({{"buffer", port.buffer},
                   {"offset_bytes", port.offset_bytes},
                   {"dtype", dtype_name(port.dtype)},
                   {"layout", layout_name(port.layout)}});
  }
  return out;
}

Json variant_json(const Variant& v) {
  Json layers = Json::array();
  for (const Layer& l : v.layers) {
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
          {"dram_bytes", v.dram_bytes},
          {"sram_peak_bytes", v.sram_peak_bytes},
          {"cycles", v.cycles},
          {"inputs", ports_json(v.inputs)},
          {"outputs", ports_json(v.outputs)},
          {"layers", layers}};
}

Bindings bindings_of(const JsonReader& r) {
  Bindings out;
  r.each([&](const std::string& name, const JsonReader& value) { out[name] = value.integer(); });
  return out;
}

Port port_of(const JsonReader& r) {
  r.only({"buffer", "offset_bytes", "dtype", "layout"});
  return {r["buffer"].id(), r["offset_bytes"].integer(), r["dtype"].dtype(), r["layout"].layout()};
}

Variant variant_of(const JsonReader& r) {
  r.only({"bindings", "words_offset_bytes", "word_count", "dram_bytes", "sram_peak_bytes", "cycles", "inputs",
          "outputs", "layers"});
  return {.bindings = bindings_of(r["bindings"]),
          .words_offset_bytes = r["words_offset_bytes"].integer(),
          .word_count = r["word_count"].integer(),
          .dram_bytes = r["dram_bytes"].integer(),
          .sram_peak_bytes = r["sram_peak_bytes"].integer(),
          .cycles = r["cycles"].integer(),
          .inputs = r["inputs"].map(port_of),
          .outputs = r["outputs"].map(port_of),
          .layers = r["layers"].map([](const JsonReader& l) {
            l.only({"node", "op", "first_word", "last_word", "cycles", "dma_bytes", "macs"});
            return Layer{l["node"].string(),       l["op"].string(),      l["first_word"].integer(),
                         l["last_word"].integer(), l["cycles"].integer(), l["dma_bytes"].integer(),
                         l["macs"].integer()};
          })};
}

}  // namespace

std::string write_code(const Code& code) {
  Json constants = Json::array(), variants = Json::array();
  for (const Constant& constant : code.constants) constants.push_back({constant.offset_bytes, constant.size_bytes});
  for (const Variant& variant : code.variants) variants.push_back(variant_json(variant));
  return Json{{"spec", code.spec_json}, {"constants", constants}, {"variants", variants}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

Code read_code(std::string_view json, const std::string& called) {
  const Json parsed = parse_json(json, called + ": its code");
  const JsonReader r(parsed, called);
  r.only({"spec", "constants", "variants"});
  return {.spec_json = r["spec"].string(),
          .constants = r["constants"].map([](const JsonReader& c) {
            const std::vector<int64_t> range = c.map([](const JsonReader& value) { return value.integer(); });
            if (range.size() != 2) c.wrong("[offset, bytes]");
            return Constant{range[0], range[1]};
          }),
          .variants = r["variants"].map(variant_of)};
}

}  // namespace hetnn::npu
