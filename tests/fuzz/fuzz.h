// What every fuzzer shares: an input may be refused by hetnn's own errors, and by nothing else.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "hetnn/base/stop.h"

namespace hetnn::fuzz {

inline constexpr int64_t kMostBytes = int64_t{1} << 26;  // of what an input may make a run allocate
inline constexpr std::chrono::seconds kMostSeconds{5};   // of one run

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Calls f. An error that says something of the input is an answer; a bug of hetnn, or of another kind, ends the
/// process.
template <typename F>
void attempt(const F& f) {
  try {
    f();
  } catch (const InternalError& error) {
    std::fprintf(stderr, "InternalError: %s\n", error.what());
    std::abort();
  } catch (const Error&) {
  } catch (const std::bad_alloc&) {  // DoesNotFit in Python
  } catch (const std::length_error&) {
  }
}

/// Ends a run after kMostSeconds.
inline Stop deadline() { return Stop(Stop::Clock::now() + kMostSeconds); }

/// A JSON text with one value altered by the random number `seed`; the same text where it is no JSON.
std::string alter_json(std::string_view text, unsigned seed);

}  // namespace hetnn::fuzz
