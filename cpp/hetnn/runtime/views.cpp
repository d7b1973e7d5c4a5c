// Views of views lie in the memory of the first.
#include "hetnn/runtime/views.h"

namespace hetnn::runtime {

Views::Views(const std::vector<BoundBuffer>& buffers, const std::function<bool(int32_t)>& has_place)
    : buffers_(buffers) {
  for (size_t k = 0; k < buffers.size(); ++k) {
    const auto id = static_cast<int32_t>(k);
    has_place_.push_back(has_place(id));
    at_.push_back({id, id, 0});
  }
}

void Views::add(const BufferView& view) {
  const auto buffer = static_cast<size_t>(view.buffer);
  const BufferView& from = at_[static_cast<size_t>(view.of)];
  const int32_t holder = from.of;
  const int64_t offset = from.offset_bytes + view.offset_bytes;
  if (at_[buffer].of != view.buffer || holder == view.buffer) return;
  if (!has_place_[buffer]) {
    for (BufferView& each : at_) {
      if (each.of == view.buffer) each = {each.buffer, holder, offset + each.offset_bytes};
    }
    return;
  }
  const bool whole = offset == 0 && buffers_[buffer].size_bytes == buffers_[static_cast<size_t>(holder)].size_bytes;
  if (!whole || has_place_[static_cast<size_t>(holder)]) return;
  for (BufferView& each : at_) {
    if (each.of == holder) each.of = view.buffer;
  }
}

void Views::move(int32_t buffer, int32_t to) {
  const int32_t memory = holder(to);
  for (BufferView& each : at_) {
    if (each.of == buffer) each.of = memory;
  }
}

std::vector<BufferView> Views::all() const {
  std::vector<BufferView> out;
  for (const BufferView& each : at_) {
    if (each.of != each.buffer) out.push_back(each);
  }
  return out;
}

}  // namespace hetnn::runtime
