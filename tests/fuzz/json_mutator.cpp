// The mutator of fuzzers whose inputs begin with JSON, up to a byte 0 if there is one: half by bytes, half by values.
#include <algorithm>
#include <cstring>

#include "fuzz.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  const uint8_t* end = std::find(data, data + size, uint8_t{0});
  const std::string rest(end, const_cast<const uint8_t*>(data + size));
  if (seed % 4 == 0 || end == data) return LLVMFuzzerMutate(data, size, max_size);
  const std::string altered =
      hetnn::fuzz::alter_json(hetnn::fuzz::text_of(data, static_cast<size_t>(end - data)), seed) + rest;
  if (altered.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, altered.data(), altered.size());
  return altered.size();
}
