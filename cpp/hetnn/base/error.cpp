// The one place where internal errors are worded.
#include "hetnn/base/error.h"

#include <sstream>
#include <string_view>

namespace hetnn {

void detail::print_characters(std::ostream& out, const void* value) { out << static_cast<const char*>(value); }

std::string detail::join(std::initializer_list<Printed> parts) {
  std::ostringstream out;
  for (const Printed& part : parts) part.print(out, part.value);
  return out.str();
}

void throw_internal_error(const char* file, int line, const char* condition, const std::string& message) {
  std::string_view path = file;
  if (auto at = path.rfind("hetnn/"); at != std::string_view::npos) path.remove_prefix(at);
  throw InternalError(text("internal error at ", path, ":", line, ": ", condition, " does not hold",
                           message.empty() ? "" : ": ", message, ". This is a bug in hetnn; please report it."));
}

}  // namespace hetnn
