// A fast 64-bit hash of bytes, for integrity: it finds accidents, not forgeries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hetnn::program {

/// Four lanes of multiply-and-fold over 32-byte blocks. The same bytes give the same hash on every machine of little-
/// endian order; every byte and the length count.
uint64_t hash_bytes(std::span<const std::byte> bytes);

/// The name of these bytes among all others, as hexadecimal digits.
std::string content_hash(std::span<const std::byte> bytes);

}  // namespace hetnn::program
