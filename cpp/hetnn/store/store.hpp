// Runs networks by their id from C++20: a store's executables on the runtime of hetnn.hpp.
//
//   hetnn::Store store("DIR");
//   std::vector<hetnn::Tensor> y = store.run("mlp", {hetnn::Tensor(x.data(), {1, 16})});
#ifndef HETNN_STORE_HPP
#define HETNN_STORE_HPP

#include <map>
#include <mutex>

#include "hetnn.hpp"
#include "store.h"

namespace hetnn::inline api_v1 {

/// A folder of executables by network id and version. Thread-safe.
class Store {
 public:
  /// Opens the folder, or makes it. Unsupported when a newer hetnn wrote it.
  explicit Store(const std::string& folder) : handle_(nullptr, &hetnn_store_close) {
    hetnn_store* made = nullptr;
    char said[1024] = "";
    check(hetnn_store_open(folder.c_str(), &made, said, sizeof said), said);
    handle_.reset(made);
  }
  /// The executable of a network, opened once; version 0 is the one that runs. InvalidModel when there is none.
  Executable& load(const std::string& id, std::int64_t version = 0) {
    char path[4096] = "", said[1024] = "";
    const std::lock_guard lock(mutex_);
    check(hetnn_store_find(handle_.get(), id.c_str(), version, path, sizeof path, said, sizeof said), said);
    const auto found = opened_.find(path);
    return found != opened_.end() ? found->second : opened_.emplace(path, Executable::load(path)).first->second;
  }
  /// Runs a network on its inputs in the model's order.
  std::vector<Tensor> run(const std::string& id, const std::vector<Tensor>& inputs, std::int64_t version = 0) {
    return load(id, version).run(inputs);
  }

 private:
  static void check(int status, const char* said) {
    if (status != HETNN_OK) std::rethrow_exception(detail::error_of(static_cast<hetnn_status>(status), said));
  }
  std::unique_ptr<hetnn_store, void (*)(hetnn_store*)> handle_;
  std::mutex mutex_;
  std::map<std::string, Executable> opened_;
};

}  // namespace hetnn::inline api_v1

#endif
