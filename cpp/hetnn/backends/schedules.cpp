#include "hetnn/backends/schedules.h"

#include <algorithm>
#include <charconv>

#include "hetnn/base/error.h"
#include "hetnn/base/quoted.h"

namespace hetnn::backends {
namespace {

constexpr std::string_view kHead = "subgraph ";

ScheduleSection head_of(std::string_view line, int number) {
  const auto fail = [&] {
    throw InvalidModel(text("schedule, line ", number,
                            ": a section begins with 'subgraph', its name in quotation marks ",
                            "and sizes as NAME=VALUE; got '", line, "'."));
  };
  std::string_view rest = line.substr(kHead.size());
  if (rest.empty() || rest.front() != '"') fail();
  std::optional<std::string> name = take_quoted(rest);
  if (!name) fail();
  ScheduleSection out{.subgraph = *std::move(name), .bindings = {}, .body = {}};
  while (true) {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r"), rest.size()));
    if (rest.empty()) return out;
    const std::string_view item = rest.substr(0, rest.find_first_of(" \t\r"));
    const size_t equals = item.find('=');
    int64_t value = 0;
    if (equals == std::string_view::npos) fail();
    const char* const end = item.data() + item.size();
    const auto [stop, error] = std::from_chars(item.data() + equals + 1, end, value);
    if (error != std::errc() || stop != end) fail();
    out.bindings[std::string(item.substr(0, equals))] = value;
    rest.remove_prefix(item.size());
  }
}

}  // namespace

std::string write_sections(const std::vector<ScheduleSection>& sections) {
  std::string out;
  for (const ScheduleSection& section : sections) {
    out += text(kHead, in_quotes(section.subgraph));
    for (const auto& [symbol, value] : section.bindings) out += text(" ", symbol, "=", value);
    out += "\n" + section.body;
  }
  return out;
}

std::vector<ScheduleSection> read_sections(std::string_view source) {
  std::vector<ScheduleSection> out;
  int number = 0;
  while (!source.empty()) {
    const size_t end = std::min(source.find('\n'), source.size());
    const std::string_view line = source.substr(0, end);
    source.remove_prefix(std::min(end + 1, source.size()));
    ++number;
    if (line.starts_with(kHead)) {
      ScheduleSection head = head_of(line, number);
      for (const ScheduleSection& before : out) {
        if (before.subgraph == head.subgraph && before.bindings == head.bindings)
          throw InvalidModel(text("schedule, line ", number, ": the section ", in_quotes(head.subgraph),
                                  " comes twice for the same sizes."));
      }
      out.push_back(std::move(head));
      // Lines of a body count from the beginning of the file.
      out.back().body.assign(static_cast<size_t>(number), '\n');
      continue;
    }
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || line[first] == '#') continue;
    if (out.empty())
      throw InvalidModel(text("schedule, line ", number, ": '", line, "' stands before the first 'subgraph'. Take the ",
                              "text that `hetnn schedule` prints, whole."));
    std::string& body = out.back().body;
    const auto lines = std::count(body.begin(), body.end(), '\n');
    body.append(static_cast<size_t>(number - 1 - lines), '\n');
    body += text(line, "\n");
  }
  return out;
}

}  // namespace hetnn::backends
