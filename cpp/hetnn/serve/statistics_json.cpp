// Counts as a row of the protocol's statistics.
#include "hetnn/base/json_fields.h"
#include "hetnn/serve/counters.h"

namespace hetnn::serve {
namespace {

using json::Json;

Json duration(const Taken& taken) { return {{"count", taken.first}, {"ns", taken.second}}; }

}  // namespace

std::string statistics_json(std::string_view network, std::string_view version, const Counted& counted) {
  Json parts = Json::object(), batches = Json::array();
  for (size_t k = 0; k < kParts.size(); ++k) parts[std::string(kParts[k])] = duration(counted.parts[k]);
  parts["cache_hit"] = parts["cache_miss"] = duration({});
  int64_t runs = 0;
  for (const auto& [size, taken] : counted.batches) {
    runs += taken.first;
    batches.push_back({{"batch_size", size},
                       {"compute_input", duration({taken.first, 0})},
                       {"compute_infer", duration(taken)},
                       {"compute_output", duration({taken.first, 0})}});
  }
  return json::to_text({{"name", network},
                        {"version", version},
                        {"last_inference", counted.last_ms},
                        {"inference_count", counted.inferences},
                        {"execution_count", runs},
                        {"inference_stats", std::move(parts)},
                        {"batch_stats", std::move(batches)},
                        {"memory_usage", Json::array()}});
}

}  // namespace hetnn::serve
