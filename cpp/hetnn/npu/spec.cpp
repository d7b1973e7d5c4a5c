// The built-in family of systolic arrays, and names.
#include "hetnn/npu/spec.h"

#include <charconv>

#include "hetnn/base/error.h"
#include "hetnn/ops/op_def.h"

namespace hetnn::npu {

std::string_view dataflow_name(Dataflow dataflow) {
  switch (dataflow) {
    case Dataflow::ws:
      return "ws";
    case Dataflow::os:
      return "os";
    case Dataflow::is:
      return "is";
  }
  HETNN_ASSERT(false);
  return {};
}

Dataflow dataflow_from_name(std::string_view name) {
  for (Dataflow dataflow : {Dataflow::ws, Dataflow::os, Dataflow::is}) {
    if (dataflow_name(dataflow) == name) return dataflow;
  }
  throw InvalidModel(text("unknown dataflow '", name, "'; expected ws, os or is"));
}

Spec systolic_spec(int64_t rows, int64_t cols) {
  if (rows < 1 || rows > 4096 || cols < 1 || cols > 4096) {
    throw InvalidModel(text("systolic-", rows, "x", cols, ": rows and columns must be in [1, 4096]"));
  }
  Spec spec;
  spec.name = text("systolic-", rows, "x", cols);
  spec.clock_hz = 1e9;
  spec.mac.kind = MacKind::systolic;
  spec.mac.rows = rows;
  spec.mac.cols = cols;
  // Large enough never to stall; a bandwidth given to the tools replaces the figure.
  spec.sram.push_back({.bytes = int64_t{1} << 30, .bytes_per_cycle = 1e9});
  spec.dram = {.bytes_per_cycle = 1e9};
  spec.vector.lanes = cols;
  const std::vector<DType> dtypes = {DType::f32, DType::f16, DType::i8};
  for (const ops::OpDef* op : ops::OpTable::global().all()) {
    if (op->primitive == ops::Primitive::convolution || op->primitive == ops::Primitive::product)
      spec.ops[std::string(op->name)] = {dtypes, {}, 4};
  }
  spec.provenance["mac"] = "given by the name of the family";
  spec.provenance["clock_hz"] = "guess: a round figure; cycles do not depend on it";
  for (const char* part : {"cores", "sram", "dram", "dma", "vector", "launch", "ops", "energy_pj"}) {
    spec.provenance[part] = "definition: the array alone, never waiting for memory";
  }
  return spec;
}

std::optional<Spec> builtin_spec(std::string_view name) {
  constexpr std::string_view kPrefix = "systolic-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view size = name.substr(kPrefix.size());
  const size_t cross = size.find('x');
  if (cross == std::string_view::npos) return std::nullopt;
  auto read = [](std::string_view digits) -> std::optional<int64_t> {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return value;
  };
  const auto rows = read(size.substr(0, cross)), cols = read(size.substr(cross + 1));
  if (!rows || !cols) return std::nullopt;
  return systolic_spec(*rows, *cols);
}

}  // namespace hetnn::npu
