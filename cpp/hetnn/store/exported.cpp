// What libhetnn_store gives C: no exception crosses.
#include "hetnn/store/exported.h"

#include <cstdio>
#include <exception>

#include "hetnn/base/error.h"
#include "hetnn/store/store.h"

struct hetnn_store {
  hetnn::store::Store store;
};

namespace hetnn::store {
namespace {

// As hetnn_status has them.
enum Status { ok, invalid_model, unsupported, does_not_fit, internal };

template <typename F>
int guard(char* said, size_t said_bytes, F&& body) noexcept {
  const auto say = [&](Status status, const std::exception& error) {
    if (said != nullptr && said_bytes > 0) std::snprintf(said, said_bytes, "%s", error.what());
    return static_cast<int>(status);
  };
  try {
    body();
    return ok;
  } catch (const InvalidModel& error) {
    return say(invalid_model, error);
  } catch (const Unsupported& error) {
    return say(unsupported, error);
  } catch (const DoesNotFit& error) {
    return say(does_not_fit, error);
  } catch (const std::exception& error) {
    return say(internal, error);
  }
}

void require(const void* pointer, const char* called) {
  if (pointer == nullptr) throw InvalidModel(text(called, " is null. Pass a pointer to one."));
}

}  // namespace
}  // namespace hetnn::store

using hetnn::store::guard;
using hetnn::store::require;

int hetnn_store_open(const char* folder, hetnn_store** store, char* said, size_t said_bytes) {
  return guard(said, said_bytes, [&] {
    require(folder, "folder");
    require(store, "store");
    *store = new hetnn_store{hetnn::store::Store(folder)};
  });
}

int hetnn_store_find(hetnn_store* store, const char* id, int64_t version, char* path, size_t path_bytes, char* said,
                     size_t said_bytes) {
  return guard(said, said_bytes, [&] {
    require(store, "store");
    require(id, "id");
    require(path, "path");
    const auto found = store->store.find(id, version == 0 ? std::nullopt : std::optional(version));
    if (!found)
      throw hetnn::InvalidModel(hetnn::text("the store holds no network '", id, "' of that version. Add it."));
    const std::string file = store->store.file(*found);
    if (file.size() >= path_bytes)
      throw hetnn::InvalidModel(hetnn::text("the path takes ", file.size() + 1, " bytes; there are ", path_bytes, "."));
    file.copy(path, file.size());
    path[file.size()] = '\0';
  });
}

void hetnn_store_close(hetnn_store* store) { delete store; }
