// Names in quotation marks, as the IR's text and schedules write them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hetnn {

/// `"` and `\` behind a `\`, a line break as `\n`.
std::string in_quotes(std::string_view source);

/// Takes a name in quotation marks from the front of `rest`; nothing where it has no end. It begins with one.
std::optional<std::string> take_quoted(std::string_view& rest);

}  // namespace hetnn
