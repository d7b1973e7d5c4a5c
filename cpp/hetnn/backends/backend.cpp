// The list of device kinds, from all_backends.inc.
#include "hetnn/backends/backend.h"

#include "hetnn/base/error.h"

namespace hetnn::backends {

#define HETNN_BACKEND(kind) std::unique_ptr<Backend> make_##kind##_backend(const DeviceSpec& spec);
#include "hetnn/backends/all_backends.inc"
#undef HETNN_BACKEND

std::unique_ptr<Backend> make_backend(const DeviceSpec& spec) {
  std::string known;
#define HETNN_BACKEND(name)                                   \
  if (spec.kind == #name) return make_##name##_backend(spec); \
  known += known.empty() ? #name : ", " #name;
#include "hetnn/backends/all_backends.inc"
#undef HETNN_BACKEND
  throw InvalidModel(text("device '", spec.name, "' is of kind '", spec.kind, "'; the kinds are ", known, "."));
}

}  // namespace hetnn::backends
