// Looking up ranges in the pieces of a program's constants.
#include "hetnn/program/weights.h"

#include <algorithm>

#include "hetnn/base/error.h"

namespace hetnn::program {

int64_t Weights::append(Blob blob) {
  const int64_t offset = aligned(size_bytes_);
  if (blob.bytes.empty()) return offset;
  size_bytes_ = offset + static_cast<int64_t>(blob.bytes.size());
  pieces_.push_back({offset, std::move(blob)});
  return offset;
}

void Weights::replace(int64_t offset_bytes, Blob blob) {
  const auto bytes = static_cast<int64_t>(blob.bytes.size());
  HETNN_ASSERT(holds(offset_bytes, bytes) && offset_bytes % kAlignment == 0, "bytes [", offset_bytes, ", +", bytes,
               ") are none to replace");
  if (bytes == 0) return;
  const auto at = pieces_.begin() + (piece_at(offset_bytes) - pieces_.data());
  const Piece whole = *at;
  const auto before = static_cast<size_t>(offset_bytes - whole.offset_bytes),
             behind = before + static_cast<size_t>(aligned(bytes));
  std::vector<Piece> parts;
  if (before > 0) parts.push_back({whole.offset_bytes, {whole.blob.owner, whole.blob.bytes.first(before)}});
  parts.push_back({offset_bytes, std::move(blob)});
  if (behind < whole.blob.bytes.size())
    parts.push_back({offset_bytes + aligned(bytes), {whole.blob.owner, whole.blob.bytes.subspan(behind)}});
  pieces_.insert(pieces_.erase(at), parts.begin(), parts.end());
}

const Weights::Piece* Weights::piece_at(int64_t offset_bytes) const {
  auto after = std::upper_bound(pieces_.begin(), pieces_.end(), offset_bytes,
                                [](int64_t offset, const Piece& piece) { return offset < piece.offset_bytes; });
  return after == pieces_.begin() ? nullptr : &*std::prev(after);
}

bool Weights::holds(int64_t offset_bytes, int64_t bytes) const {
  if (offset_bytes < 0 || bytes < 0) return false;
  if (bytes == 0) return offset_bytes <= aligned(size_bytes_);
  const Piece* piece = piece_at(offset_bytes);
  if (!piece) return false;
  const auto size = static_cast<int64_t>(piece->blob.bytes.size()), within = offset_bytes - piece->offset_bytes;
  return within <= size && bytes <= size - within;
}

std::span<const std::byte> Weights::at(int64_t offset_bytes, int64_t bytes) const {
  HETNN_ASSERT(holds(offset_bytes, bytes), "bytes [", offset_bytes, ", +", bytes, ") are not in one piece of ",
               size_bytes_, " bytes of weights");
  if (bytes == 0) return {};
  const Piece* piece = piece_at(offset_bytes);
  return piece->blob.bytes.subspan(static_cast<size_t>(offset_bytes - piece->offset_bytes), static_cast<size_t>(bytes));
}

std::vector<Blob> Weights::blobs_from(int64_t begin_bytes) const {
  std::vector<Blob> out;
  for (const Piece& piece : pieces_) {
    if (piece.offset_bytes >= begin_bytes) out.push_back(piece.blob);
  }
  return out;
}

}  // namespace hetnn::program
