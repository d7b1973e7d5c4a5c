// SHA-256 by OpenSSL's code; the fast sum here.
#include "hetnn/program/hash.h"

// The functions of one algorithm: those that serve all of them would link all of OpenSSL.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "hetnn/base/parallel.h"

namespace hetnn::program {
namespace {

constexpr size_t kLanes = 8;
constexpr size_t kBlock_bytes = kLanes * sizeof(uint64_t);
constexpr size_t kPiece_bytes = size_t{1} << 20;  // of one thread's work

// Odd constants of high entropy: the fractional bits of the square roots of the first primes.
constexpr uint64_t kOdd[kLanes] = {0x6a09e667f3bcc909ULL, 0xbb67ae8584caa73bULL, 0x3c6ef372fe94f82bULL,
                                   0xa54ff53a5f1d36f1ULL, 0x510e527fade682d1ULL, 0x9b05688c2b3e6c1fULL,
                                   0x1f83d9abfb41bd6bULL, 0x5be0cd19137e2179ULL};

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

uint64_t sum_of(std::span<const std::byte> bytes) {
  uint64_t lanes[kLanes];
  std::copy_n(kOdd, kLanes, lanes);
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  // Adding the lane keeps a zero word from erasing what came before.
  const auto block = [&](const std::byte* from) {
    for (size_t k = 0; k < kLanes; ++k)
      lanes[k] = fold(lanes[k] ^ word(from + 8 * k), kOdd[(k + 1) % kLanes]) + lanes[k];
  };
  for (; left >= kBlock_bytes; at += kBlock_bytes, left -= kBlock_bytes) block(at);
  std::byte tail[kBlock_bytes] = {};
  if (left > 0) std::memcpy(tail, at, left);
  block(tail);
  uint64_t out = bytes.size();
  for (size_t k = 0; k < kLanes; ++k) out = fold(out ^ lanes[k], kOdd[k]) + lanes[k];
  return out;
}

}  // namespace

struct ContentHash::State {
  SHA256_CTX context;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) { SHA256_Init(&state_->context); }
ContentHash::~ContentHash() = default;

void ContentHash::add(std::span<const std::byte> bytes) { SHA256_Update(&state_->context, bytes.data(), bytes.size()); }

std::string ContentHash::digits() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256_Final(digest.data(), &state_->context);
  std::string out;
  for (const unsigned char each : digest) {
    for (const int half : {each >> 4, each & 15}) out += "0123456789abcdef"[half];
  }
  return out;
}

std::string content_hash(std::span<const std::byte> bytes) {
  ContentHash hash;
  hash.add(bytes);
  return hash.digits();
}

std::string quick_sum(std::span<const std::byte> bytes) {
  std::vector<uint64_t> sums((bytes.size() + kPiece_bytes - 1) / kPiece_bytes);
  parallel_each(std::ssize(sums), [&](int64_t k) {
    const size_t begin = static_cast<size_t>(k) * kPiece_bytes;
    sums[static_cast<size_t>(k)] = sum_of(bytes.subspan(begin, std::min(kPiece_bytes, bytes.size() - begin)));
  });
  char out[17];
  std::snprintf(out, sizeof out, "%016llx",
                static_cast<unsigned long long>(sum_of(std::as_bytes(std::span<const uint64_t>(sums)))));
  return out;
}

}  // namespace hetnn::program
