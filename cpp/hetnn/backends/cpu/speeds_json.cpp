// The data sheet of a CPU as JSON.
#include "hetnn/backends/cpu/roofline.h"
#include "hetnn/base/json_fields.h"

namespace hetnn::backends::cpu {
namespace {

using json::At;
using json::Convert;
using json::Fields;
using json::Json;
using json::number;
using json::Presence;
using Families = decltype(Speeds::families);

const Fields<FamilySpeed>& family_fields() {
  static const Fields<FamilySpeed> fields = {
      {"macs_per_us", &FamilySpeed::macs_per_us, number({.least = 0, .above = true}),
       "multiply-accumulates in a microsecond", Presence::optional},
      {"flops_per_us", &FamilySpeed::flops_per_us, number({.least = 0, .above = true}),
       "other operations in a microsecond", Presence::optional},
      {"bytes_per_us", &FamilySpeed::bytes_per_us, number({.least = 0, .above = true}), "bytes moved in a microsecond",
       Presence::optional}};
  return fields;
}

// Families are those there are; figures that are absent stay as guessed.
Convert<Families> families() {
  Convert<Families> out = json::map_of<Families>(json::object(family_fields));
  out.read = [read = out.read](const At& at, Families& into) {
    std::vector<std::string_view> known;
    for (const auto& [name, speed] : into) known.push_back(name);
    at.each_entry([&](const std::string& name, const At&) {
      if (!into.contains(name)) at.unknown("family", name, known);
    });
    read(at, into);
  };
  return out;
}

// What only people read.
template <typename V>
Convert<Speeds> remark(Convert<V> as) {
  return {[=](const At& at, Speeds&) { as.value(at); }, [](const Speeds&) { return Json(); }, as.schema};
}

const Fields<Speeds>& speeds_fields() {
  static const Fields<Speeds> fields = {
      {"schema", json::constant<Speeds>(1), "1, the version of the format"},
      {"cpu", remark(json::any_text()), "the processor that was measured", Presence::optional},
      {"threads", remark(json::integer(1)), "of the runs that were measured", Presence::optional},
      {"kernel_us", &Speeds::kernel_us, number({.least = 0}), "a kernel's barrier and dispatch", Presence::optional},
      {"launch_us", &Speeds::launch_us, number({.least = 0}), "a parallel region and the caller's work",
       Presence::optional},
      {"families", &Speeds::families, families(), "speeds by family of kernels", Presence::optional}};
  return fields;
}

}  // namespace

Speeds parse_speeds(std::string_view text, std::string_view where) {
  if (text.empty()) return {};
  const Json document = json::parse(text, kCpuSheetJson, where);
  return speeds_fields().value({document, kCpuSheetJson, where});
}

std::string speeds_schema() { return json::schema_text("The data sheet of a CPU", speeds_fields().schema()); }

}  // namespace hetnn::backends::cpu
