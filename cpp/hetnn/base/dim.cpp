// Canonical integer expressions: sums of products of atoms.
#include "hetnn/base/dim.h"

#include <algorithm>
#include <cctype>

#include "hetnn/base/dim_substitute.h"
#include "hetnn/base/error.h"

namespace hetnn {

struct Dim::Atom {
  enum class Kind : uint8_t { symbol, floor_div, mod, max, min };
  Kind kind;
  std::string name;  // of a symbol
  Dim a, b;          // operands of the others
  int64_t parts = 0;
};

struct Dim::Term {
  std::vector<std::shared_ptr<const Atom>> atoms;  // sorted; a square holds its atom twice
  int64_t coefficient;
};

namespace {

using Atom = Dim::Atom;
using Term = Dim::Term;
using AtomPtr = std::shared_ptr<const Atom>;

[[noreturn]] void overflow() {
  throw InvalidModel("a dimension exceeds 64-bit integers. Check the model's shapes and the ranges of its symbols.");
}
int64_t add64(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_add_overflow(a, b, &out)) overflow();
  return out;
}
int64_t mul64(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_mul_overflow(a, b, &out)) overflow();
  return out;
}
// Terms, and symbols and operations in them, all together: what a canonical form has at most.
constexpr int64_t kMostParts = 256;
[[noreturn]] void too_long() {
  throw InvalidModel(text("a dimension has more than ", kMostParts,
                          " parts when it is written as a sum of products. Check the model's sizes."));
}
int64_t parts_of(const std::vector<Term>& terms) {
  int64_t out = 0;
  for (const Term& term : terms) {
    ++out;
    for (const AtomPtr& atom : term.atoms) out += atom->parts;
  }
  return out;
}

int64_t floor_div64(int64_t a, int64_t b) {
  if (b == 0) throw InvalidModel("a dimension is divided by zero. Check strides and group counts of the model.");
  if (b == -1) return mul64(a, -1);  // the processor's division traps on the least integer
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

int64_t mod64(int64_t a, int64_t b) { return b == -1 ? 0 : a - mul64(floor_div64(a, b), b); }

std::strong_ordering compare(const Atom& a, const Atom& b) {
  if (&a == &b) return std::strong_ordering::equal;
  if (auto c = a.kind <=> b.kind; c != 0) return c;
  if (auto c = a.name.compare(b.name); c != 0) return c <=> 0;
  if (auto c = a.a <=> b.a; c != 0) return c;
  return a.b <=> b.b;
}
bool less(const AtomPtr& a, const AtomPtr& b) { return compare(*a, *b) < 0; }

std::strong_ordering compare_atoms(const std::vector<AtomPtr>& a, const std::vector<AtomPtr>& b) {
  for (size_t k = 0; k < a.size() && k < b.size(); ++k) {
    if (auto c = compare(*a[k], *b[k]); c != 0) return c;
  }
  return a.size() <=> b.size();
}

std::string atom_text(const Atom& atom) {
  switch (atom.kind) {
    case Atom::Kind::symbol:
      return atom.name;
    case Atom::Kind::floor_div:
      return text("floordiv(", atom.a, ", ", atom.b, ")");
    case Atom::Kind::mod:
      return text("mod(", atom.a, ", ", atom.b, ")");
    case Atom::Kind::max:
      return text("max(", atom.a, ", ", atom.b, ")");
    case Atom::Kind::min:
      return text("min(", atom.a, ", ", atom.b, ")");
  }
  return {};
}

using Values = std::map<std::string, Dim, std::less<>>;

// Recursive-descent reader of to_string's grammar; `*` binds tighter than `+` and `-`.
class Reader {
 public:
  explicit Reader(std::string_view source, const Values* values = nullptr) : source_(source), values_(values) {}

  Dim whole() {
    Dim dim = sum();
    if (skip_space(); at_ != source_.size()) fail();
    return dim;
  }

 private:
  Dim sum() {
    Dim dim = product();
    for (;;) {
      if (take('+')) {
        dim = dim + product();
      } else if (take('-')) {
        dim = dim - product();
      } else {
        return dim;
      }
    }
  }
  Dim product() {
    Dim dim = factor();
    while (take('*')) dim = dim * factor();
    return dim;
  }
  Dim factor() {
    if (++depth_ > 200) fail();
    Dim dim = unnested_factor();
    --depth_;
    return dim;
  }
  Dim unnested_factor() {
    if (take('-')) return -factor();
    if (take('(')) {
      Dim dim = sum();
      expect(')');
      return dim;
    }
    skip_space();
    if (at_ < source_.size() && std::isdigit(static_cast<unsigned char>(source_[at_]))) return number();
    const std::string_view name = identifier();
    if (!take('(')) return symbol(name);
    Dim a = sum();
    expect(',');
    Dim b = sum();
    expect(')');
    if (name == "floordiv") return floor_div(a, b);
    if (name == "mod") return mod(a, b);
    if (name == "max") return max(a, b);
    if (name == "min") return min(a, b);
    fail();
  }
  Dim symbol(std::string_view name) const {
    if (values_ != nullptr) {
      if (const auto at = values_->find(name); at != values_->end()) return at->second;
    }
    return Dim::symbol(name);
  }
  Dim number() {
    int64_t value = 0;
    while (at_ < source_.size() && std::isdigit(static_cast<unsigned char>(source_[at_]))) {
      value = add64(mul64(value, 10), source_[at_++] - '0');
    }
    return value;
  }
  // Of any script: what UTF-8 writes in several bytes counts as letters.
  static bool is_letter(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return std::isalnum(byte) || c == '_' || byte >= 0x80;
  }
  std::string_view identifier() {
    const size_t begin = at_;
    while (at_ < source_.size() && is_letter(source_[at_])) ++at_;
    if (at_ == begin) fail();
    return source_.substr(begin, at_ - begin);
  }
  bool take(char c) {
    skip_space();
    if (at_ < source_.size() && source_[at_] == c) {
      ++at_;
      return true;
    }
    return false;
  }
  void expect(char c) {
    if (!take(c)) fail();
  }
  void skip_space() {
    while (at_ < source_.size() && source_[at_] == ' ') ++at_;
  }
  [[noreturn]] void fail() const {
    throw InvalidModel(text("dimension '", source_, "': cannot read it at character ", at_,
                            ". Expected an integer, a symbol, or + - * floordiv mod max min of them."));
  }

  std::string_view source_;
  const Values* values_;  // of symbols; null where they stay
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Dim Dim::from_terms(int64_t constant, Terms terms) {
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return compare_atoms(a.atoms, b.atoms) < 0; });
  Terms merged;
  for (Term& term : terms) {
    if (!merged.empty() && compare_atoms(merged.back().atoms, term.atoms) == 0) {
      merged.back().coefficient = add64(merged.back().coefficient, term.coefficient);
    } else {
      merged.push_back(std::move(term));
    }
  }
  std::erase_if(merged, [](const Term& t) { return t.coefficient == 0; });
  if (parts_of(merged) > kMostParts) too_long();
  Dim dim(constant);
  if (!merged.empty()) dim.terms_ = std::make_shared<const Terms>(std::move(merged));
  return dim;
}

Dim Dim::atom(Atom atom) {
  atom.parts = 1;
  for (const Dim* operand : {&atom.a, &atom.b}) atom.parts += operand->terms_ ? parts_of(*operand->terms_) : 0;
  return from_terms(0, {Term{{std::make_shared<const Atom>(std::move(atom))}, 1}});
}

Dim Dim::symbol(std::string_view name) { return atom({Atom::Kind::symbol, std::string(name), {}, {}}); }

Dim Dim::parse(std::string_view source) { return Reader(source).whole(); }

// By the text: what an expression is made of, the reader makes again.
Dim substitute(const Dim& dim, const std::map<std::string, Dim, std::less<>>& values) {
  return Reader(dim.to_string(), &values).whole();
}

int64_t Dim::value() const {
  HETNN_ASSERT(is_static(), "the dimension ", *this, " has no fixed value");
  return constant_;
}

int64_t Dim::evaluate(const Bindings& bindings) const {
  int64_t sum = constant_;
  if (!terms_) return sum;
  for (const Term& term : *terms_) {
    int64_t product = term.coefficient;
    for (const AtomPtr& atom : term.atoms) {
      int64_t value = 0;
      if (atom->kind == Atom::Kind::symbol) {
        auto at = bindings.find(atom->name);
        if (at == bindings.end()) {
          throw InvalidModel(
              text("the symbol '", atom->name, "' of dimension ", *this, " has no value. Give one for it."));
        }
        value = at->second;
      } else {
        const int64_t a = atom->a.evaluate(bindings), b = atom->b.evaluate(bindings);
        switch (atom->kind) {
          case Atom::Kind::floor_div:
            value = floor_div64(a, b);
            break;
          case Atom::Kind::mod:
            value = mod64(a, b);
            break;
          case Atom::Kind::max:
            value = std::max(a, b);
            break;
          default:
            value = std::min(a, b);
        }
      }
      product = mul64(product, value);
    }
    sum = add64(sum, product);
  }
  return sum;
}

void Dim::collect_symbols(std::set<std::string>& into) const {
  if (!terms_) return;
  for (const Term& term : *terms_) {
    for (const AtomPtr& atom : term.atoms) {
      if (atom->kind == Atom::Kind::symbol) {
        into.insert(atom->name);
      } else {
        atom->a.collect_symbols(into);
        atom->b.collect_symbols(into);
      }
    }
  }
}

std::string Dim::to_string() const {
  if (!terms_) return std::to_string(constant_);
  // The least integer has no positive.
  const auto size_of = [](int64_t value) {
    return std::to_string(value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
  };
  std::string out;
  for (const Term& term : *terms_) {
    const bool negative = term.coefficient < 0;
    out += out.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    if (term.coefficient != 1 && term.coefficient != -1) out += size_of(term.coefficient) + "*";
    for (size_t k = 0; k < term.atoms.size(); ++k) out += (k ? "*" : "") + atom_text(*term.atoms[k]);
  }
  if (constant_ != 0) out += (constant_ > 0 ? " + " : " - ") + size_of(constant_);
  return out;
}

Dim operator+(const Dim& a, const Dim& b) {
  Dim::Terms terms;
  if (a.terms_) terms = *a.terms_;
  if (b.terms_) terms.insert(terms.end(), b.terms_->begin(), b.terms_->end());
  return Dim::from_terms(add64(a.constant_, b.constant_), std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

Dim operator*(const Dim& a, const Dim& b) {
  Dim::Terms terms;
  auto scale = [&](const Dim& dim, int64_t factor) {
    if (!dim.terms_ || factor == 0) return;
    for (const Term& t : *dim.terms_) terms.push_back({t.atoms, mul64(t.coefficient, factor)});
  };
  scale(a, b.constant_);
  scale(b, a.constant_);
  if (a.terms_ && b.terms_) {
    if (a.terms_->size() * b.terms_->size() > static_cast<size_t>(kMostParts)) too_long();
    for (const Term& s : *a.terms_) {
      for (const Term& t : *b.terms_) {
        Term product{s.atoms, mul64(s.coefficient, t.coefficient)};
        product.atoms.insert(product.atoms.end(), t.atoms.begin(), t.atoms.end());
        std::sort(product.atoms.begin(), product.atoms.end(), less);
        terms.push_back(std::move(product));
      }
    }
  }
  return Dim::from_terms(mul64(a.constant_, b.constant_), std::move(terms));
}

// Divides by a monomial c·m (m a product of atoms, perhaps empty), pulling out of the floor all that divides exactly.
bool Dim::never_negative() const {
  const auto atom_is = [](const auto& atom) {
    switch (atom->kind) {
      case Atom::Kind::symbol:
        return true;
      case Atom::Kind::floor_div:
      case Atom::Kind::min:
        return atom->a.never_negative() && atom->b.never_negative();
      case Atom::Kind::mod:
        return atom->b.never_negative();
      case Atom::Kind::max:
        return atom->a.never_negative() || atom->b.never_negative();
    }
    return false;
  };
  const auto term_is = [&](const Term& term) {
    return term.coefficient > 0 && std::ranges::all_of(term.atoms, atom_is);
  };
  return constant_ >= 0 && (!terms_ || std::ranges::all_of(*terms_, term_is));
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return floor_div64(a.constant_, b.constant_);
  if (b == Dim(1)) return a;
  const bool monomial = b.is_static() || (b.constant_ == 0 && b.terms_->size() == 1);
  Dim rest = a, whole = 0;
  if (monomial) {
    const int64_t divisor = b.is_static() ? b.constant_ : b.terms_->front().coefficient;
    if (divisor == 0) floor_div64(1, 0);
    const std::vector<AtomPtr> none;
    const std::vector<AtomPtr>& atoms = b.is_static() ? none : b.terms_->front().atoms;
    Dim::Terms kept, pulled;
    if (a.terms_) {
      for (const Term& term : *a.terms_) {
        if ((divisor == -1 || term.coefficient % divisor == 0) &&
            std::includes(term.atoms.begin(), term.atoms.end(), atoms.begin(), atoms.end(), less)) {
          Term quotient{{}, floor_div64(term.coefficient, divisor)};
          std::set_difference(term.atoms.begin(), term.atoms.end(), atoms.begin(), atoms.end(),
                              std::back_inserter(quotient.atoms), less);
          pulled.push_back(std::move(quotient));
        } else {
          kept.push_back(term);
        }
      }
    }
    int64_t constant = a.constant_;
    if (b.is_static()) {
      whole = floor_div64(constant, divisor);
      constant -= mul64(whole.constant_, divisor);
    }
    // A quotient without atoms is a plain number.
    for (const Term& term : pulled) {
      whole = whole + (term.atoms.empty() ? Dim(term.coefficient) : Dim::from_terms(0, {term}));
    }
    rest = Dim::from_terms(constant, std::move(kept));
    if (rest.is_static() && (rest.constant_ == 0 || b.is_static()))
      return whole + floor_div64(rest.constant_, b.is_static() ? divisor : 1);
    // floordiv(-x, q) = -floordiv(x + q - 1, q), so that a size rounded up has one form.
    if (b.is_static() && divisor > 0 && rest.terms_->front().coefficient < 0)
      return whole - floor_div(Dim(divisor - 1) - rest, b);
    // floordiv(floordiv(x, p) + c, q) = floordiv(x + p·c, p·q) for positive integers p, q.
    if (b.is_static() && divisor > 0 && rest.terms_->size() == 1 && rest.terms_->front().coefficient == 1 &&
        rest.terms_->front().atoms.size() == 1) {
      const Atom& inner = *rest.terms_->front().atoms.front();
      if (inner.kind == Atom::Kind::floor_div && inner.b.is_static() && inner.b.constant_ > 0) {
        return whole + floor_div(inner.a + inner.b * Dim(rest.constant_), inner.b * b);
      }
    }
  } else if (a == b) {
    return 1;
  }
  return whole + Dim::atom({Atom::Kind::floor_div, {}, rest, b});
}

Dim mod(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return mod64(a.constant_, b.constant_);
  const Dim quotient = floor_div(a, b);
  const Dim rest = a - quotient * b;
  return rest.is_static() ? rest : Dim::atom({Atom::Kind::mod, {}, a, b});
}

Dim max(const Dim& a, const Dim& b) {
  if (const Dim gap = a - b; gap.is_static()) return gap.constant_ >= 0 ? a : b;
  return a < b ? Dim::atom({Atom::Kind::max, {}, a, b}) : Dim::atom({Atom::Kind::max, {}, b, a});
}

Dim min(const Dim& a, const Dim& b) {
  if (const Dim gap = a - b; gap.is_static()) return gap.constant_ <= 0 ? a : b;
  return a < b ? Dim::atom({Atom::Kind::min, {}, a, b}) : Dim::atom({Atom::Kind::min, {}, b, a});
}

std::strong_ordering operator<=>(const Dim& a, const Dim& b) {
  if (auto c = a.constant_ <=> b.constant_; c != 0) return c;
  if (a.terms_ == b.terms_) return std::strong_ordering::equal;
  if (!a.terms_ || !b.terms_) return a.terms_ ? std::strong_ordering::greater : std::strong_ordering::less;
  for (size_t k = 0; k < a.terms_->size() && k < b.terms_->size(); ++k) {
    const Term &s = (*a.terms_)[k], &t = (*b.terms_)[k];
    if (auto c = compare_atoms(s.atoms, t.atoms); c != 0) return c;
    if (auto c = s.coefficient <=> t.coefficient; c != 0) return c;
  }
  return a.terms_->size() <=> b.terms_->size();
}

Dim elements(const Shape& shape, int first, int last) {
  Dim product = 1;
  for (int k = first; k < (last < 0 ? static_cast<int>(shape.size()) : last); ++k)
    product = product * shape[static_cast<size_t>(k)];
  return product;
}

bool is_static(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_static(); });
}

std::vector<int64_t> evaluate(const Shape& shape, const Bindings& bindings) {
  std::vector<int64_t> out;
  for (const Dim& dim : shape) out.push_back(dim.evaluate(bindings));
  return out;
}

std::vector<int64_t> values(const Shape& shape) {
  std::vector<int64_t> out;
  for (const Dim& dim : shape) out.push_back(dim.value());
  return out;
}

std::string to_string(const Shape& shape) {
  std::string out = "[";
  for (size_t k = 0; k < shape.size(); ++k) out += (k ? "," : "") + shape[k].to_string();
  return out + "]";
}

}  // namespace hetnn
