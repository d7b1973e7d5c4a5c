// The list of device kinds, from all_backends.inc and what was registered.
#include "hetnn/backends/backend.h"

#include <map>
#include <mutex>
#include <utility>

#include "hetnn/base/error.h"

namespace hetnn::backends {

#define HETNN_BACKEND(kind) std::unique_ptr<Backend> make_##kind##_backend(const DeviceSpec& spec);
#include "hetnn/backends/all_backends.inc"
#undef HETNN_BACKEND

namespace {

struct Kinds {
  std::mutex mutex;
  std::map<std::string, BackendMaker, std::less<>> makers = {
#define HETNN_BACKEND(kind) {#kind, make_##kind##_backend},
#include "hetnn/backends/all_backends.inc"
#undef HETNN_BACKEND
  };
};

Kinds& kinds() {
  static Kinds all;
  return all;
}

}  // namespace

void register_backend(const std::string& kind, BackendMaker maker) {
  const std::lock_guard lock(kinds().mutex);
  kinds().makers[kind] = std::move(maker);
}

std::vector<std::string> backend_kinds() {
  const std::lock_guard lock(kinds().mutex);
  std::vector<std::string> out;
  for (const auto& [kind, maker] : kinds().makers) out.push_back(kind);
  return out;
}

std::unique_ptr<Backend> make_backend(const DeviceSpec& spec) {
  BackendMaker maker;
  {
    const std::lock_guard lock(kinds().mutex);
    if (auto at = kinds().makers.find(spec.kind); at != kinds().makers.end()) maker = at->second;
  }
  if (maker) return maker(spec);
  std::string known;
  for (const std::string& kind : backend_kinds()) known += text(known.empty() ? "" : ", ", kind);
  throw InvalidModel(text("device '", spec.name, "' is of kind '", spec.kind, "'; the kinds are ", known,
                          ". Install the package that brings it, or name one of these."));
}

}  // namespace hetnn::backends
