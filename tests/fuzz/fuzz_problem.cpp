// Planning problems as JSON, planned by every strategy.
#include <iterator>

#include "fuzz.h"
#include "hetnn/plan/partition/explain/explain.h"
#include "hetnn/plan/partition/problem/problem.h"
#include "hetnn/plan/partition/strategies/plan_json.h"

using namespace hetnn;  // NOLINT(google-build-using-namespace): all of this file is about it

namespace {

constexpr std::pair<const char*, const char*> kPlans[] = {
    {"cost", "{}"},
    {"cost", R"({"local_search": false})"},
    {"cost", R"({"overlap": true})"},
    {"topological", R"({"order": "min"})"},
    {"topological", R"({"order": "index"})"},
    {"depth", "{}"},
    {"merge", R"({"settle": "merge", "policy": "all"})"},
    {"merge", R"({"settle": "trim", "policy": "largest"})"},
    {"merge", R"({"policy": "threshold", "threshold": 3, "measure": "time"})"},
    {"merge", R"({"policy": "balance", "measure": "macs"})"},
    {"take-all", "{}"},
    {"cpu-only", "{}"}};

void use(std::string_view json) {
  const plan::Problem problem = plan::parse_problem(json);
  HETNN_ASSERT(plan::problem_json(plan::parse_problem(plan::problem_json(problem))) == plan::problem_json(problem));
  if (problem.size() > 200 || problem.device_count() > 8) return;
  for (const auto& each : kPlans) {
    fuzz::attempt([&, strategy = each.first, text = each.second] {
      const plan::Options options = plan::parse_plan_options(strategy, text);
      const plan::PartitionResult result = plan::partition(problem, options);
      plan::plan_json(problem, options, result);
      plan::explain_json(problem, result);
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::attempt([&] { use(fuzz::text_of(data, size)); });
  return 0;
}
