// What an executable says of itself besides the program: the report and the target.
#pragma once

#include <string>

namespace hetnn::program {

/// docs/report-schema.json.
extern const char* const kReportSchema;

/// Throw InvalidModel naming `called` and the key unless the text is an empty object, which says nothing, or as the
/// report's schema has it; and likewise for the target.
void check_report(const std::string& json, const std::string& called);
void check_target(const std::string& json, const std::string& called);

}  // namespace hetnn::program
