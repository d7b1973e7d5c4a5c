// Checks the report and the target of an executable.
#include "hetnn/base/json_fields.h"
#include "hetnn/program/describe.h"

namespace hetnn::program {
namespace {

using json::Json;

constexpr const char* kTargetSchema = R"({"type": "object", "required": ["devices"], "properties": {
  "name": {"type": "string"}, "links": {},
  "devices": {"type": "array", "items": {"type": "object", "required": ["name", "kind"], "additionalProperties": false,
    "properties": {"name": {"type": "string"}, "kind": {"type": "string"}, "spec": {"type": "object"}}}}}})";

void check(const std::string& text, const JsonFormat& format, const Json& schema, const std::string& called) {
  const Json document = json::parse(text, format, called);
  if (document.is_object() && document.empty()) return;
  json::check_schema({document, format, called}, schema);
}

}  // namespace

void check_report(const std::string& json, const std::string& called) {
  static const Json schema = Json::parse(kReportSchema);
  check(json, kReportJson, schema, called);
}

void check_target(const std::string& json, const std::string& called) {
  static const Json schema = Json::parse(kTargetSchema);
  check(json, kTargetJson, schema, called);
}

}  // namespace hetnn::program
