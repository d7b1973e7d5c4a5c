// Plans and their options as JSON: what `plan.to_json()` and `hetnn plan --problem --json` print
// (docs/plan-schema.json).
#pragma once

#include <string>
#include <string_view>

#include "hetnn/plan/partition/strategies/partition.h"

namespace hetnn::plan {

/// Reads an object of options for a strategy. InvalidModel naming the option, its value and what it may be.
Options parse_plan_options(std::string_view strategy, std::string_view options);
/// The JSON schema (draft 2020-12) of a strategy's options.
std::string plan_options_schema(std::string_view strategy);

/// The plan as one JSON document in the keys of docs/plan-schema.json.
std::string plan_json(const Problem& problem, const Options& options, const PartitionResult& result);

}  // namespace hetnn::plan
