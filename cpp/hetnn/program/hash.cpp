// A fast 64-bit hash of bytes.
#include "hetnn/program/hash.h"

#include <cstdio>
#include <cstring>

namespace hetnn::program {
namespace {

// Odd constants of high entropy: the fractional bits of the square roots of 2, 3, 5 and 7.
constexpr uint64_t kLanes[4] = {0x6a09e667f3bcc909ULL, 0xbb67ae8584caa73bULL, 0x3c6ef372fe94f82bULL,
                                0xa54ff53a5f1d36f1ULL};

__extension__ using Wide = unsigned __int128;

// The product's both halves folded into one word: every input bit reaches every output bit.
uint64_t fold(uint64_t a, uint64_t b) {
  const auto product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t word(const std::byte* at) {
  uint64_t out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

}  // namespace

uint64_t hash_bytes(std::span<const std::byte> bytes) {
  uint64_t lanes[4] = {kLanes[0], kLanes[1], kLanes[2], kLanes[3]};
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  // Adding the lane keeps a zero word from erasing what came before.
  auto block = [&](const std::byte* from) {
    for (size_t k = 0; k < 4; ++k) lanes[k] = fold(lanes[k] ^ word(from + 8 * k), kLanes[(k + 1) % 4]) + lanes[k];
  };
  for (; left >= 32; at += 32, left -= 32) block(at);
  std::byte tail[32] = {};
  if (left > 0) std::memcpy(tail, at, left);
  block(tail);
  uint64_t out = bytes.size();
  for (size_t k = 0; k < 4; ++k) out = fold(out ^ lanes[k], kLanes[k]) + lanes[k];
  return out;
}

std::string content_hash(std::span<const std::byte> bytes) {
  char out[17];
  std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(hash_bytes(bytes)));
  return out;
}

}  // namespace hetnn::program
