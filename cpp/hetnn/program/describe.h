// What an executable says of itself besides what runs: the report, the target and the caller's signature.
#pragma once

#include <string>

#include "hetnn/program/program.h"

namespace hetnn::program {

/// docs/report-schema.json.
extern const char* const kReportSchema;

/// Throw InvalidModel naming `called` and the key unless the text is an empty object, which says nothing, or as the
/// report's schema has it; and likewise for the target.
void check_report(const std::string& json, const std::string& called);
void check_target(const std::string& json, const std::string& called);

/// Throws InvalidModel naming `called` and the place unless the program's signature is none, or trees that take every
/// input once and give outputs that there are.
void check_signature(const Program& program, const std::string& called);

}  // namespace hetnn::program
