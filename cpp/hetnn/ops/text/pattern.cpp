// Reading patterns into programs of takes and forks, and running them.
#include "hetnn/ops/text/pattern.h"

#include <algorithm>
#include <utility>

#include "hetnn/base/error.h"
#include "hetnn/ops/text/text.h"

namespace hetnn::ops {
namespace {

using Set = TextPattern::Set;
using Action = TextPattern::Action;

constexpr size_t kMostSteps = 5000, kMostRepeats = 1000;
constexpr int kDeepest = 100;

bool is_word(char32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

// Code whose targets are relative to its own beginning, so that it can be repeated.
using Code = std::vector<TextPattern::Instruction>;

class Reader {
 public:
  Reader(std::string_view source, std::vector<Set>& sets) : rest_(source), sets_(sets) {}

  bool any_case = false;

  Code read() {
    while (rest_.starts_with("(?i)") || rest_.starts_with("(?s)")) {
      (rest_[2] == 'i' ? any_case : dot_takes_all_) = true;
      rest_.remove_prefix(4);
    }
    Code out = either(0);
    if (!rest_.empty()) throw InvalidModel("a ')' closes nothing");
    out.push_back({Action::done});
    return out;
  }

 private:
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  static void append(Code& to, const Code& part) {
    const size_t base = to.size();
    if (base + part.size() > kMostSteps) throw InvalidModel(text("it takes more than ", kMostSteps, " steps"));
    for (TextPattern::Instruction each : part) {
      if (each.action == Action::fork || each.action == Action::jump) each.a += base;
      if (each.action == Action::fork) each.b += base;
      to.push_back(each);
    }
  }

  Code either(int depth) {
    if (depth > kDeepest) throw InvalidModel(text("its groups lie more than ", kDeepest, " deep"));
    Code out = row(depth);
    while (take('|')) {
      const Code other = row(depth);
      Code both = {{Action::fork, 1, out.size() + 2}};
      append(both, out);
      both.push_back({Action::jump, out.size() + 2 + other.size()});
      append(both, other);
      out = std::move(both);
    }
    return out;
  }

  Code row(int depth) {
    Code out;
    while (!rest_.empty() && rest_.front() != '|' && rest_.front() != ')') append(out, repeated(depth));
    return out;
  }

  Code repeated(int depth) {
    Code one = atom(depth);
    for (bool again = true; again;) {
      size_t least = 0, most = SIZE_MAX;
      if (take('+')) {
        least = 1;
      } else if (take('?')) {
        most = 1;
      } else if (!take('*') && !(again = bounds(least, most))) {
        break;
      }
      take('?');  // which of the ways comes first does not matter for whole texts
      one = repeated(one, least, most);
    }
    return one;
  }

  static Code repeated(const Code& one, size_t least, size_t most) {
    Code out;
    for (size_t k = 0; k < least; ++k) append(out, one);
    if (most == SIZE_MAX) {
      Code loop = {{Action::fork, 1, one.size() + 2}};
      append(loop, one);
      loop.push_back({Action::jump, 0});
      append(out, loop);
      return out;
    }
    for (size_t k = least; k < most; ++k) {
      Code maybe = {{Action::fork, 1, one.size() + 1}};
      append(maybe, one);
      append(out, maybe);
    }
    return out;
  }

  // {2}, {2,} or {2,3}; anything else is text.
  bool bounds(size_t& least, size_t& most) {
    const std::string_view before = rest_;
    if (!take('{')) return false;
    const bool low = number(least), open = take(','), high = open && number(most);
    if (!low || !take('}')) {
      rest_ = before;
      return false;
    }
    if (!open) most = least;
    if (open && !high) most = SIZE_MAX;
    if (least > kMostRepeats || (most != SIZE_MAX && (most > kMostRepeats || most < least)))
      throw InvalidModel(
          text("it repeats ", least, " to ", most, " times, of which at most ", kMostRepeats, " are taken"));
    return true;
  }

  bool number(size_t& out) {
    size_t found = 0, digits = 0;
    for (; !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9' && digits < 9; ++digits) {
      found = found * 10 + static_cast<size_t>(rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    if (digits > 0) out = found;
    return digits > 0;
  }

  Code one_of(Set set) {
    sets_.push_back(std::move(set));
    return {{Action::take, sets_.size() - 1}};
  }

  Code atom(int depth) {
    if (take('(')) {
      if (rest_.starts_with("?:")) {
        rest_.remove_prefix(2);
      } else if (rest_.starts_with("?P<")) {
        rest_.remove_prefix(std::min(rest_.find('>'), rest_.size() - 1) + 1);
      } else if (rest_.starts_with("?")) {
        throw InvalidModel(text("a group that begins with '(", rest_.substr(0, 3), "' is not known"));
      }
      Code out = either(depth + 1);
      if (!take(')')) throw InvalidModel("a '(' is not closed");
      return out;
    }
    if (take('[')) return one_of(set());
    if (take('^')) return {{Action::begin}};
    if (take('$')) return {{Action::end}};
    if (take('.')) return one_of(dot_takes_all_ ? Set{{}, true} : Set{{{'\n', '\n'}}, true});
    if (take('\\')) return escaped();
    if (rest_.front() == '*' || rest_.front() == '+' || rest_.front() == '?')
      throw InvalidModel(text("there is nothing that '", rest_.front(), "' repeats"));
    const char32_t character = next_character(rest_);
    return one_of({{{character, character}}});
  }

  Code escaped() {
    if (take('b')) return {{Action::edge}};
    if (take('B')) return {{Action::no_edge}};
    if (take('A')) return {{Action::begin}};
    if (take('z')) return {{Action::end}};
    Set out;
    if (!named(out)) {
      const char32_t character = literal();
      out.ranges = {{character, character}};
    }
    return one_of(std::move(out));
  }

  // \d, \w, \s and what they leave.
  bool named(Set& out) {
    if (rest_.empty()) throw InvalidModel("it ends in a '\\'");
    switch (rest_.front()) {
      case 'd':
      case 'D':
        out.ranges = {{'0', '9'}};
        break;
      case 'w':
      case 'W':
        out.ranges = {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {'_', '_'}};
        break;
      case 's':
      case 'S':
        out.ranges = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
        break;
      default:
        return false;
    }
    out.negated = rest_.front() < 'a';
    rest_.remove_prefix(1);
    return true;
  }

  // What stands behind a backslash for one character.
  char32_t literal() {
    if (rest_.empty()) throw InvalidModel("it ends in a '\\'");
    constexpr std::string_view kLetters = "nrtfva", kMeant = "\n\r\t\f\v\a";
    const char32_t character = next_character(rest_);
    const size_t at = character < 0x80 ? kLetters.find(static_cast<char>(character)) : kLetters.npos;
    if (at != kLetters.npos) return static_cast<char32_t>(kMeant[at]);
    if (is_word(character) && character != '_')
      throw InvalidModel(text("'\\", static_cast<char>(character), "' is not known"));
    return character;
  }

  Set set() {
    Set out;
    out.negated = take('^');
    for (bool first = true; first || rest_.empty() || rest_.front() != ']'; first = false) {
      if (rest_.empty()) throw InvalidModel("a '[' is not closed");
      if (rest_.starts_with("[:")) throw InvalidModel("'[:' is not known");
      Set inner;
      const bool escape = take('\\');
      if (escape && named(inner)) {
        add(out, inner);
        continue;
      }
      const char32_t low = escape ? literal() : next_character(rest_);
      char32_t high = low;
      if (rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']') {
        take('-');
        high = take('\\') ? literal() : next_character(rest_);
        if (high < low) throw InvalidModel("a range ends before it begins");
      }
      out.ranges.push_back({low, high});
    }
    take(']');
    return out;
  }

  static void add(Set& to, const Set& inner) {
    if (!inner.negated) {
      to.ranges.insert(to.ranges.end(), inner.ranges.begin(), inner.ranges.end());
      return;
    }
    std::vector<TextPattern::Range> taken = inner.ranges;
    std::ranges::sort(taken, {}, &TextPattern::Range::first);
    char32_t next = 0;
    for (const TextPattern::Range& each : taken) {
      if (each.first > next) to.ranges.push_back({next, each.first - 1});
      next = each.last + 1;
    }
    to.ranges.push_back({next, 0x10ffff});
  }

  std::string_view rest_;
  std::vector<Set>& sets_;
  bool dot_takes_all_ = false;
};

// The steps that wait for a character, each once.
class Waiting {
 public:
  explicit Waiting(size_t steps) : here_(steps) {}

  // Follows forks, jumps and conditions that hold.
  void add(const Code& program, size_t from, bool begin, bool end, bool edge) {
    todo_.push_back(from);
    while (!todo_.empty()) {
      const size_t at = todo_.back();
      todo_.pop_back();
      if (here_[at]) continue;
      here_[at] = true;
      found.push_back(at);
      const TextPattern::Instruction& each = program[at];
      const auto next_if = [&](bool holds) {
        if (holds) todo_.push_back(at + 1);
      };
      switch (each.action) {
        case Action::fork:
          todo_.push_back(each.b);
          [[fallthrough]];
        case Action::jump:
          todo_.push_back(each.a);
          break;
        case Action::begin:
          next_if(begin);
          break;
        case Action::end:
          next_if(end);
          break;
        case Action::edge:
          next_if(edge);
          break;
        case Action::no_edge:
          next_if(!edge);
          break;
        default:
          break;
      }
    }
  }
  void clear() {
    for (const size_t at : found) here_[at] = false;
    found.clear();
  }
  std::vector<size_t> found;

 private:
  std::vector<bool> here_;
  std::vector<size_t> todo_;
};

}  // namespace

TextPattern::TextPattern(std::string_view source) {
  Reader reader(source, sets_);
  program_ = reader.read();
  any_case_ = reader.any_case;
}

bool TextPattern::takes(const Set& set, char32_t character) const {
  const auto in = [&](char32_t c) {
    return std::ranges::any_of(set.ranges, [&](const Range& each) { return c >= each.first && c <= each.last; });
  };
  const bool found = in(character) || (any_case_ && (in(lower_case(character)) || in(upper_case(character))));
  return found != set.negated;
}

// Sees whether a match ends before the text, behind its first character, and so on while one may go on.
template <typename See>
void TextPattern::walk(std::string_view text, size_t at, See&& see) const {
  Waiting now(program_.size()), next(program_.size());
  const auto follow = [](std::string_view rest) { return is_word(next_character(rest)); };
  const auto done = [&] {
    return std::ranges::any_of(now.found, [&](size_t k) { return program_[k].action == Action::done; });
  };
  std::string_view rest = text.substr(at);
  bool before = at > 0 && is_word(static_cast<unsigned char>(text[at - 1]));
  now.add(program_, 0, at == 0, rest.empty(), before != follow(rest));
  see(rest, done());
  while (!rest.empty() && !now.found.empty()) {
    const char32_t character = next_character(rest);
    before = is_word(character);
    for (const size_t k : now.found) {
      if (program_[k].action == Action::take && takes(sets_[program_[k].a], character))
        next.add(program_, k + 1, false, rest.empty(), before != follow(rest));
    }
    std::swap(now, next);
    next.clear();
    see(rest, done());
  }
}

bool TextPattern::matches(std::string_view text) const {
  bool whole = false;
  walk(text, 0, [&](std::string_view rest, bool ends) { whole = ends && rest.empty(); });
  return whole;
}

size_t TextPattern::longest(std::string_view text, size_t at) const {
  size_t length = std::string_view::npos;
  walk(text, at, [&](std::string_view rest, bool ends) {
    if (ends) length = text.size() - rest.size() - at;
  });
  return length;
}

}  // namespace hetnn::ops
