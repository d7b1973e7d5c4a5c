// Regular expressions on whole texts, by a simulation of all ways at once: no pattern takes more than linear time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace hetnn::ops {

class TextPattern {
 public:
  /// InvalidModel saying what is wrong with a pattern that is none, too large or of a form that is not known.
  explicit TextPattern(std::string_view source);
  /// Whether the pattern matches the whole text, in UTF-8.
  bool matches(std::string_view text) const;
  /// How long the longest match is that begins at a byte of the text; npos where there is none.
  size_t longest(std::string_view text, size_t at) const;

  struct Range {
    char32_t first, last;
  };
  enum class Action : uint8_t { take, fork, jump, begin, end, edge, no_edge, done };
  struct Instruction {
    Action action = Action::done;
    size_t a = 0, b = 0;  // where to go: fork to both, jump to a; take: the set
  };
  struct Set {
    std::vector<Range> ranges;
    bool negated = false;
  };

 private:
  bool takes(const Set& set, char32_t character) const;
  template <typename See>
  void walk(std::string_view text, size_t at, See&& see) const;

  std::vector<Instruction> program_;
  std::vector<Set> sets_;
  bool any_case_ = false;
};

}  // namespace hetnn::ops
