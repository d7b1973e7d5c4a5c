// The data sheet of a CPU as JSON.
#include <array>

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
using kernels::CoreFigure;
using kernels::Machine;

constexpr std::array<std::string_view, kernels::kMemoryLevels> kLevels = {"first_level", "second_level", "third_level",
                                                                          "memory"};

const Fields<CoreFigure>& figure_fields() {
  static const Fields<CoreFigure> fields = {
      {"one", &CoreFigure::one, number({.least = 0, .above = true}), "of one core"},
      {"all", &CoreFigure::all, number({.least = 0, .above = true}), "of all threads together"}};
  return fields;
}

// A figure for each level of memory; those that are absent stay as guessed.
template <typename V, size_t kCount>
Convert<std::array<V, kCount>> levels(Convert<V> figure) {
  Convert<std::array<V, kCount>> out;
  out.read = [=](const At& at, std::array<V, kCount>& into) {
    const std::vector<std::string_view> known(kLevels.begin(), kLevels.begin() + kCount);
    at.each_entry([&](const std::string& name, const At& entry) {
      const auto level = std::ranges::find(known, name);
      if (level == known.end()) at.unknown("level", name, known);
      figure.read(entry, into[static_cast<size_t>(level - known.begin())]);
    });
  };
  out.write = [=](const std::array<V, kCount>& from) {
    Json made = Json::object();
    for (size_t k = 0; k < kCount; ++k) made[std::string(kLevels[k])] = figure.write(from[k]);
    return made;
  };
  Json properties = Json::object();
  for (size_t k = 0; k < kCount; ++k) properties[std::string(kLevels[k])] = figure.schema;
  out.schema = {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  return out;
}

// A member of the machine.
template <typename V>
Convert<Speeds> of_machine(V Machine::*member, Convert<V> as) {
  return {[=](const At& at, Speeds& into) { as.read(at, into.machine.*member); },
          [=](const Speeds& from) { return as.write(from.machine.*member); }, as.schema};
}

// What only people read.
template <typename V>
Convert<Speeds> remark(Convert<V> as) {
  return {[=](const At& at, Speeds&) { as.value(at); }, [](const Speeds&) { return Json(); }, as.schema};
}

const Fields<Speeds>& speeds_fields() {
  static const Fields<Speeds> fields = {
      {"schema", json::constant<Speeds>(2), "2, the version of the format"},
      {"cpu", remark(json::any_text()), "the processor that was measured", Presence::optional},
      {"threads", of_machine(&Machine::threads, json::integer<int>(1, 4096)), "of the runs that were measured",
       Presence::optional},
      {"kernel_us", &Speeds::kernel_us, number({.least = 0}), "a kernel's dispatch", Presence::optional},
      {"launch_us", &Speeds::launch_us, number({.least = 0}), "a parallel region and the caller's work",
       Presence::optional},
      {"barrier_us", of_machine(&Machine::barrier_us, number({.least = 0})), "where threads meet inside a kernel",
       Presence::optional},
      {"macs_per_us", of_machine(&Machine::macs_per_us, json::object(figure_fields)),
       "multiply-adds of f32 in a microsecond", Presence::optional},
      {"bytes_per_us",
       of_machine(&Machine::bytes_per_us, levels<CoreFigure, kernels::kMemoryLevels>(json::object(figure_fields))),
       "bytes read in a microsecond, by the cache that they are in", Presence::optional},
      {"cache_bytes", of_machine(&Machine::cache_bytes, levels<int64_t, kernels::kMemory>(json::integer<int64_t>(1))),
       "sizes of the caches", Presence::optional}};
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
