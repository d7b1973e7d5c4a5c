// Reads gradient rules by recursive descent.
#include "hetnn/passes/gradient_rules.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "hetnn/base/error.h"

namespace hetnn::passes {
namespace {

class Reader {
 public:
  Reader(std::string_view op, std::string_view source) : op_(op), source_(source) {}

  GradientRule rule() {
    GradientRule out;
    for (skip(); at_ < source_.size(); skip()) {
      Statement statement{word(), false, {}, {}};
      if (statement.name == "d" && take("(")) {
        statement = {word(), true, {}, {}};
        expect(")");
      }
      expect("=");
      statement.value = condition();
      if (take_word("if")) statement.condition.push_back(condition());
      skip();
      if (at_ < source_.size() && at_ > 0 && source_[at_ - 1] != '\n') fail("a statement at the start of a line");
      out.push_back(std::move(statement));
    }
    return out;
  }

 private:
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  void skip() {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == '#') {
        at_ = std::min(source_.find('\n', at_), source_.size());
      } else if (c == ' ' || c == '\n') {
        ++at_;
      } else {
        return;
      }
    }
  }
  bool peek(std::string_view mark) {
    skip();
    return source_.substr(at_).starts_with(mark);
  }
  bool take(std::string_view mark) {
    if (!peek(mark)) return false;
    at_ += mark.size();
    return true;
  }
  void expect(std::string_view mark) {
    if (!take(mark)) fail(mark);
  }
  std::string word() {
    skip();
    const size_t begin = at_;
    while (at_ < source_.size() && (is_letter(source_[at_]) || (at_ > begin && is_digit(source_[at_])))) ++at_;
    if (at_ == begin) fail("a name");
    return std::string(source_.substr(begin, at_ - begin));
  }
  bool take_word(std::string_view wanted) {
    skip();
    const size_t begin = at_;
    if (at_ < source_.size() && is_letter(source_[at_]) && word() == wanted) return true;
    at_ = begin;
    return false;
  }
  [[noreturn]] void fail(std::string_view wanted) const {
    throw InternalError(
        text("the gradient rule of ", op_, ": expected ", wanted, " at \"", source_.substr(at_, 40), "\""));
  }

  // What `next` reads, joined by any of the marks from the left on.
  template <size_t N>
  Term joined(const std::array<std::string_view, N>& marks, Term (Reader::*next)()) {
    Term left = (this->*next)();
    for (;;) {
      const auto* mark = std::find_if(marks.begin(), marks.end(),
                                      [&](auto each) { return is_letter(each[0]) ? take_word(each) : take(each); });
      if (mark == marks.end()) return left;
      Term both{.kind = Term::Kind::infix, .text = std::string(*mark)};
      both.in.push_back(std::move(left));
      both.in.push_back((this->*next)());
      left = std::move(both);
    }
  }
  Term condition() { return joined(std::array<std::string_view, 1>{"and"}, &Reader::comparison); }
  Term comparison() { return joined(std::array<std::string_view, 2>{"==", "!="}, &Reader::sum); }
  Term sum() { return joined(std::array<std::string_view, 2>{"+", "-"}, &Reader::product); }
  Term product() { return joined(std::array<std::string_view, 2>{"*", "/"}, &Reader::unary); }
  Term unary() {
    if (take("-")) return {.kind = Term::Kind::negate, .in = {unary()}};
    return behind(primary());
  }

  Term behind(Term term) {
    for (;;) {
      if (take(".")) {
        term = Term{.kind = Term::Kind::field, .text = word(), .in = {std::move(term)}};
      } else if (take("[")) {
        term = Term{.kind = Term::Kind::entry, .in = {std::move(term), sum()}};
        if (take(":")) {
          term.kind = Term::Kind::cut;
          term.in.push_back(sum());
        }
        expect("]");
      } else {
        return term;
      }
    }
  }

  std::vector<Term> terms(std::string_view end) {
    std::vector<Term> out;
    if (take(end)) return out;
    do out.push_back(condition());
    while (take(","));
    expect(end);
    return out;
  }

  Term primary() {
    skip();
    if (at_ < source_.size() && is_digit(source_[at_])) return number();
    if (take("(")) {
      Term out = condition();
      expect(")");
      return out;
    }
    if (take("[")) return {.kind = Term::Kind::list, .in = terms("]")};
    if (take("\"")) {
      const size_t end = source_.find('"', at_);
      if (end == std::string_view::npos) fail("a closing quote");
      Term out{.kind = Term::Kind::string, .text = std::string(source_.substr(at_, end - at_))};
      std::ranges::replace(out.text, '\n', ' ');
      at_ = end + 1;
      return out;
    }
    Term out{.kind = Term::Kind::name, .text = word()};
    if (!take("(")) return out;
    out.kind = Term::Kind::call;
    out.in = terms(")");
    if (!take("{")) return out;
    do {
      std::string attr = word();
      expect("=");
      out.attrs.emplace_back(std::move(attr), condition());
    } while (take(","));
    expect("}");
    return out;
  }

  Term number() {
    Term out;
    const char* const begin = source_.data() + at_;
    const auto [end, error] = std::from_chars(begin, source_.data() + source_.size(), out.number);
    if (error != std::errc()) fail("a number");
    const std::string_view digits(begin, static_cast<size_t>(end - begin));
    if (digits.find_first_of(".e") != std::string_view::npos) out.kind = Term::Kind::real;
    at_ += digits.size();
    return out;
  }

  std::string_view op_, source_;
  size_t at_ = 0;
};

struct Source {
  std::string_view op, text;
};
constexpr Source kSources[] = {
#define HETNN_GRADIENT(name, ...) {#name, __VA_ARGS__},
#include "hetnn/passes/all_gradients.inc"
#undef HETNN_GRADIENT
};

}  // namespace

GradientRule read_gradient_rule(std::string_view op, std::string_view source) { return Reader(op, source).rule(); }

const GradientRule* gradient_rule(std::string_view op) {
  static const auto* const rules = [] {
    auto* out = new std::map<std::string_view, GradientRule>;
    for (const Source& source : kSources) out->emplace(source.op, read_gradient_rule(source.op, source.text));
    return out;
  }();
  const auto found = rules->find(op);
  return found == rules->end() ? nullptr : &found->second;
}

}  // namespace hetnn::passes
