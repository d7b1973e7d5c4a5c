// A file of schedules: a section for each subgraph, and for each value of its sizes, with the text that its backend
// wrote.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hetnn/base/dim.h"

namespace hetnn::backends {

struct ScheduleSection {
  std::string subgraph;
  Bindings bindings;
  std::string body;
};

/// `subgraph "npu 0"` and the sizes as NAME=VALUE begin a section.
std::string write_sections(const std::vector<ScheduleSection>& sections);

/// Throws InvalidModel naming the line for what stands before the first section, or is none.
std::vector<ScheduleSection> read_sections(std::string_view source);

}  // namespace hetnn::backends
