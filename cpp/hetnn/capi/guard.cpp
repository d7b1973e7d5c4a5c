// The text of each thread's last failure.
#include "hetnn/capi/guard.h"

#include <new>

namespace hetnn::capi {
namespace {

// Where memory is short the text is cut, never lost.
struct Message {
  std::string all;
  char cut[256] = "";
  bool whole = true;
  const char* text() const { return whole ? all.c_str() : cut; }
};
thread_local Message last;

}  // namespace

hetnn_status remember(hetnn_status status, const char* message) noexcept {
  if (!message) message = "";
  try {
    last.all = message;
    last.whole = true;
  } catch (...) {
    std::strncpy(last.cut, message, sizeof(last.cut) - 1);
    last.whole = false;
  }
  return status;
}

hetnn_status remember_current() noexcept {
  try {
    throw;
  } catch (const InvalidModel& error) {
    return remember(HETNN_INVALID_MODEL, error.what());
  } catch (const Unsupported& error) {
    return remember(HETNN_UNSUPPORTED, error.what());
  } catch (const DoesNotFit& error) {
    return remember(HETNN_DOES_NOT_FIT, error.what());
  } catch (const Unavailable& error) {
    return remember(HETNN_UNAVAILABLE, error.what());
  } catch (const Cancelled& error) {
    return remember(HETNN_CANCELLED, error.what());
  } catch (const std::bad_alloc&) {
    return remember(HETNN_DOES_NOT_FIT, "there is not enough memory. Run less at once, or on smaller inputs.");
  } catch (const std::exception& error) {
    return remember(HETNN_INTERNAL, error.what());
  } catch (...) {
    return remember(HETNN_INTERNAL, "something was thrown that is no error.");
  }
}

void raise(hetnn_status status, const std::string& message) {
  switch (status) {
    case HETNN_INVALID_MODEL:
      throw InvalidModel(message);
    case HETNN_UNSUPPORTED:
      throw Unsupported(message);
    case HETNN_DOES_NOT_FIT:
      throw DoesNotFit(message);
    case HETNN_UNAVAILABLE:
      throw Unavailable(message);
    case HETNN_CANCELLED:
      throw Cancelled(message);
    default:
      throw InternalError(message);
  }
}

}  // namespace hetnn::capi

using hetnn::capi::remember;

const char* hetnn_version(void) noexcept { return HETNN_VERSION; }

const char* hetnn_error_message(void) noexcept { return hetnn::capi::last.text(); }

hetnn_status hetnn_fail(hetnn_status status, const char* message) noexcept { return remember(status, message); }
