// Digests of bytes: SHA-256, which names content, and a fast sum that only finds accidents.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace hetnn::program {

/// The name of these bytes among all others: SHA-256 (FIPS 180-4) as 64 hexadecimal digits.
std::string content_hash(std::span<const std::byte> bytes);

/// The same of bytes that come one after another.
class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  void add(std::span<const std::byte> bytes);
  /// Of all that was added; nothing can be added then.
  std::string digits();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// 16 hexadecimal digits that follow from every byte and the length, the same on every machine of little-endian order;
/// as fast as memory. Computed by the threads that are idle.
std::string quick_sum(std::span<const std::byte> bytes);

}  // namespace hetnn::program
