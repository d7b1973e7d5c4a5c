// Regions of POSIX shared memory that clients register, for values that they do not send. Read and written by
// descriptor, not mapped: where a client cuts its region short, a request ends with an error and the server meets no
// signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "hetnn/base/tensor.h"
#include "hetnn/serve/inference.h"

namespace hetnn::serve {

/// Bytes [offset, offset + bytes) of the shared memory of that key, as shm_open takes it.
struct Region {
  std::string name, key;
  uint64_t offset = 0, bytes = 0;
  bool operator==(const Region&) const = default;
};

/// By name. Thread-safe: who unregisters a region waits until nothing is copied to or from it. All throw InvalidModel
/// with the region's name, what was found and what was expected.
class Regions {
 public:
  Regions();
  ~Regions();
  Regions(const Regions&) = delete;
  Regions& operator=(const Regions&) = delete;

  /// Opens it. The name must be free, and the memory there and as long as that.
  void add(const Region& region);
  /// Forgets a region, or all for an empty name. A name that is not there is no error.
  void remove(const std::string& name);
  /// One region, or all for an empty name, in the order in which they came.
  std::vector<Region> status(const std::string& name) const;

  /// A copy of the bytes at a place.
  Bytes read(const SharedSpan& place) const;
  /// Values no longer than the place.
  void write(const SharedSpan& place, std::span<const std::byte> values) const;

  /// Gives the request the inputs that lie here.
  void read_inputs(Inference& request) const;
  /// Writes those of a network's outputs that are wanted here.
  void write_outputs(const Bound& bound, const std::vector<Tensor>& outputs) const;

 private:
  struct Opened;
  const Opened& at(const SharedSpan& place) const;

  mutable std::shared_mutex mutex_;
  std::vector<std::unique_ptr<const Opened>> opened_;
};

}  // namespace hetnn::serve
