// The data sheet of a CPU as JSON.
#include <cmath>
#include <nlohmann/json.hpp>

#include "hetnn/backends/cpu/roofline.h"
#include "hetnn/base/error.h"

namespace hetnn::backends::cpu {
namespace {

using Json = nlohmann::json;

[[noreturn]] void fail(std::string_view where, const std::string& key, const std::string& expected, const Json& found) {
  throw InvalidModel(text(where, ": ", key, " must be ", expected, "; got ", found.dump(), "."));
}

// Reads a figure where it is present. Speeds must be above 0; overheads may be 0.
void read_figure(const Json& object, const std::string& key, std::string_view where, const std::string& path,
                 bool may_be_zero, double& figure) {
  auto at = object.find(key);
  if (at == object.end()) return;
  const double value = at->is_number() ? at->get<double>() : -1;
  if (!std::isfinite(value) || value < 0 || (value == 0 && !may_be_zero))
    fail(where, path + key, may_be_zero ? "a finite number, 0 or more" : "a finite number above 0", *at);
  figure = value;
}

void refuse_other_keys(const Json& object, std::initializer_list<std::string_view> known, std::string_view where,
                       const std::string& path) {
  if (!object.is_object()) fail(where, path.empty() ? "the sheet" : path, "an object", object);
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string names;
    for (std::string_view name : known) names += text(names.empty() ? "" : ", ", name);
    throw InvalidModel(text(where, ": there is no key '", path, key, "'; keys are ", names, "."));
  }
}

}  // namespace

Speeds parse_speeds(std::string_view json, std::string_view where) {
  Speeds out;
  if (json.empty()) return out;
  Json sheet;
  try {
    sheet = Json::parse(json);
  } catch (const Json::exception& error) {
    throw InvalidModel(text(where, ": this is no JSON: ", error.what(), "."));
  }
  refuse_other_keys(sheet, {"schema", "cpu", "threads", "kernel_us", "launch_us", "families"}, where, "");
  if (!sheet.contains("schema") || sheet["schema"] != 1) {
    fail(where, "schema", "1", sheet.value("schema", Json()));
  }
  read_figure(sheet, "kernel_us", where, "", true, out.kernel_us);
  read_figure(sheet, "launch_us", where, "", true, out.launch_us);
  const Json families = sheet.value("families", Json::object());
  if (!families.is_object()) fail(where, "families", "an object", families);
  for (const auto& [name, figures] : families.items()) {
    auto at = out.families.find(name);
    if (at == out.families.end()) {
      std::string names;
      for (const auto& [known, speed] : out.families) names += (names.empty() ? "" : ", ") + known;
      throw InvalidModel(text(where, ": there is no family '", name, "'; families are ", names, "."));
    }
    const std::string path = "families." + name + ".";
    refuse_other_keys(figures, {"macs_per_us", "flops_per_us", "bytes_per_us"}, where, path);
    read_figure(figures, "macs_per_us", where, path, false, at->second.macs_per_us);
    read_figure(figures, "flops_per_us", where, path, false, at->second.flops_per_us);
    read_figure(figures, "bytes_per_us", where, path, false, at->second.bytes_per_us);
  }
  return out;
}

}  // namespace hetnn::backends::cpu
