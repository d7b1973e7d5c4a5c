// Errors are tested by their kind and their text together.
#pragma once

#include <gmock/gmock.h>

#include "hetnn/base/error.h"

/// `statement` throws a `Kind` of hetnn whose text has all of the words that follow, each a string or a matcher.
#define EXPECT_ERROR(statement, Kind, ...)           \
  EXPECT_THAT([&] { static_cast<void>(statement); }, \
              ::testing::ThrowsMessage<::hetnn::Kind>(::hetnn::has_words(__VA_ARGS__)))

namespace hetnn {

inline testing::Matcher<std::string> has_word(const char* word) { return testing::HasSubstr(word); }
inline testing::Matcher<std::string> has_word(const std::string& word) { return testing::HasSubstr(word); }
inline testing::Matcher<std::string> has_word(const testing::Matcher<std::string>& words) { return words; }

template <typename... Words>
testing::Matcher<std::string> has_words(const Words&... words) {
  return testing::AllOf(has_word(words)...);
}

}  // namespace hetnn
