// The list of kinds that run: KIND.cpp of executors/ defines load_KIND, and what was registered.
#include "hetnn/runtime/executor.h"

#include <map>
#include <mutex>

#include "hetnn/base/error.h"

namespace hetnn::runtime {

#define HETNN_EXECUTOR(kind) std::unique_ptr<const Executor> load_##kind(const Load& load);
#include "hetnn/runtime/all_executors.inc"
#undef HETNN_EXECUTOR

namespace {

struct Kinds {
  std::mutex mutex;
  std::map<std::string, ExecutorLoader, std::less<>> loaders = {
#define HETNN_EXECUTOR(kind) {#kind, load_##kind},
#include "hetnn/runtime/all_executors.inc"
#undef HETNN_EXECUTOR
  };
};

Kinds& kinds() {
  static Kinds all;
  return all;
}

}  // namespace

std::unique_ptr<const Executor> load_executor(const Load& load) {
  ExecutorLoader loader;
  {
    const std::lock_guard lock(kinds().mutex);
    if (auto at = kinds().loaders.find(load.code.kind); at != kinds().loaders.end()) loader = at->second;
    if (!loader) {
      std::string known;
      for (const auto& [kind, other] : kinds().loaders) known += text(known.empty() ? "" : ", ", kind);
      throw InvalidModel(text(load.called, ": its code is for a device of kind '", load.code.kind,
                              "'; the kinds that run here are ", known, ". Compile for one of them."));
    }
  }
  return loader(load);
}

void register_executor(const std::string& kind, ExecutorLoader loader) {
  const std::lock_guard lock(kinds().mutex);
  kinds().loaders[kind] = std::move(loader);
}

}  // namespace hetnn::runtime
