// Which buffers lie in the memory of others.
#pragma once

#include <functional>
#include <vector>

#include "hetnn/runtime/executor.h"

namespace hetnn::runtime {

/// Where every buffer lies: in its own memory, or in that of another that has its own.
class Views {
 public:
  /// `has_place` says of a buffer whether it is given memory from outside, so that it can lie in no other's.
  Views(const std::vector<BoundBuffer>& buffers, const std::function<bool(int32_t)>& has_place);

  /// A buffer lies in another, with what lies in it, or that one lies in it where both are the same bytes; nothing
  /// changes where neither can be, as where it lies elsewhere already.
  void add(const BufferView& view);

  /// A buffer that has its own memory, and all that lies in it, lies in another's from now on, or in that in which the
  /// other lies from its first byte on.
  void move(int32_t buffer, int32_t to);

  /// The buffer whose memory a buffer lies in: itself, where it has its own.
  int32_t holder(int32_t buffer) const { return at_[static_cast<size_t>(buffer)].of; }
  /// Those that lie in others.
  std::vector<BufferView> all() const;

 private:
  const std::vector<BoundBuffer>& buffers_;
  std::vector<bool> has_place_;
  std::vector<BufferView> at_;  // of every buffer
};

}  // namespace hetnn::runtime
