// The constants of a program: bytes in pieces, so that what is added later leaves the earlier bytes where they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hetnn/base/tensor.h"

namespace hetnn::program {

inline constexpr int64_t kAlignment = 64;
/// The first multiple of the alignment from `bytes` on.
constexpr int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Bytes that may be mapped from a file; `owner` keeps them alive.
struct Blob {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;

  Blob() = default;
  Blob(std::shared_ptr<const void> owned_by, std::span<const std::byte> at) : owner(std::move(owned_by)), bytes(at) {}
  template <typename T>
  explicit Blob(std::vector<T> made) : Blob(std::make_shared<const std::vector<T>>(std::move(made))) {}
  explicit Blob(const Tensor& tensor) : Blob(tensor.owner(), tensor.span()) {}

 private:
  template <typename T>
  explicit Blob(const std::shared_ptr<const std::vector<T>>& made) : Blob(made, std::as_bytes(std::span(*made))) {}
};

/// One space of bytes made of blobs, each beginning at a multiple of the alignment. Copies share the bytes. What
/// belongs together lies in one blob.
class Weights {
 public:
  Weights() = default;
  explicit Weights(Blob blob) { append(std::move(blob)); }

  /// Returns where the blob begins.
  int64_t append(Blob blob);
  /// Puts as many other bytes in the place of a range that is held and begins at a multiple of the alignment; what else
  /// lay in its blob stays where it is.
  void replace(int64_t offset_bytes, Blob blob);
  int64_t size_bytes() const { return size_bytes_; }
  /// Whether the range lies in one blob.
  bool holds(int64_t offset_bytes, int64_t bytes) const;
  /// A range that is held.
  std::span<const std::byte> at(int64_t offset_bytes, int64_t bytes) const;
  /// The blobs from `begin_bytes` on, which is where one begins.
  std::vector<Blob> blobs_from(int64_t begin_bytes) const;

 private:
  struct Piece {
    int64_t offset_bytes;
    Blob blob;
  };
  const Piece* piece_at(int64_t offset_bytes) const;

  std::vector<Piece> pieces_;
  int64_t size_bytes_ = 0;
};

}  // namespace hetnn::program
