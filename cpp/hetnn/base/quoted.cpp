#include "hetnn/base/quoted.h"

namespace hetnn {

std::string in_quotes(std::string_view source) {
  std::string out = "\"";
  for (const char c : source) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

std::optional<std::string> take_quoted(std::string_view& rest) {
  std::string out;
  for (size_t at = 1; at < rest.size(); ++at) {
    if (rest[at] == '"') {
      rest.remove_prefix(at + 1);
      return out;
    }
    if (rest[at] == '\\' && ++at < rest.size())
      out += rest[at] == 'n' ? '\n' : rest[at];
    else if (at < rest.size())
      out += rest[at];
  }
  return std::nullopt;
}

}  // namespace hetnn
