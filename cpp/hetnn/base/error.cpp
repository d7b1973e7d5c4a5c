// The one place where internal errors are worded.
#include "hetnn/base/error.h"

#include <string_view>

namespace hetnn {

void throw_internal_error(const char* file, int line, const char* condition, const std::string& message) {
  std::string_view path = file;
  if (auto at = path.rfind("hetnn/"); at != std::string_view::npos) path.remove_prefix(at);
  throw InternalError(text("internal error at ", path, ":", line, ": ", condition, " does not hold",
                           message.empty() ? "" : ": ", message, ". This is a bug in hetnn; please report it."));
}

}  // namespace hetnn
