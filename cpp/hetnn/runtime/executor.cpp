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
  ExecutorFinder finder;
};

Kinds& kinds() {
  static Kinds all;
  return all;
}

ExecutorLoader loader_of(const std::string& kind) {
  const std::lock_guard lock(kinds().mutex);
  const auto at = kinds().loaders.find(kind);
  return at == kinds().loaders.end() ? nullptr : at->second;
}

}  // namespace

std::unique_ptr<const Executor> load_executor(const Load& load) {
  ExecutorLoader loader = loader_of(load.code.kind);
  if (!loader) {
    ExecutorFinder finder;
    {
      const std::lock_guard lock(kinds().mutex);
      finder = kinds().finder;
    }
    if (finder) finder(load.code.kind);
    loader = loader_of(load.code.kind);
  }
  if (loader) return loader(load);
  std::string known;
  for (const std::string& kind : executor_kinds()) known += text(known.empty() ? "" : ", ", kind);
  throw InvalidModel(text(load.called, ": its code is for a device of kind '", load.code.kind,
                          "'; the kinds that run here are ", known,
                          ". Install the package that brings it, or compile for one of these."));
}

std::vector<std::string> executor_kinds() {
  const std::lock_guard lock(kinds().mutex);
  std::vector<std::string> out;
  for (const auto& [kind, loader] : kinds().loaders) out.push_back(kind);
  return out;
}

void set_executor_finder(ExecutorFinder finder) {
  const std::lock_guard lock(kinds().mutex);
  kinds().finder = std::move(finder);
}

void register_executor(const std::string& kind, ExecutorLoader loader) {
  const std::lock_guard lock(kinds().mutex);
  kinds().loaders[kind] = std::move(loader);
}

}  // namespace hetnn::runtime
