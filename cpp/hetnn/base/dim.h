// A dimension: an integer, or an exact integer expression over named symbols (batch, height, width).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hetnn {

/// Values of symbols, by name.
using Bindings = std::map<std::string, int64_t, std::less<>>;

/// An integer expression kept in canonical form: a constant plus integer multiples of products of atoms, where an
/// atom is a symbol or one of floordiv, mod, max and min of two expressions. Two dims that canonicalize alike
/// compare equal; unequal forms may still be equal in value. Arithmetic throws InvalidModel on 64-bit overflow and
/// on a division by zero. Immutable and cheap to copy.
class Dim {
 public:
  Dim(int64_t value = 0) : constant_(value) {}  // NOLINT(google-explicit-constructor): integers are dims

  static Dim symbol(std::string_view name);
  /// Reads the form that to_string writes. Throws InvalidModel with the offending text.
  static Dim parse(std::string_view source);

  bool is_static() const { return terms_ == nullptr; }
  /// The integer of a static dim; InternalError otherwise.
  int64_t value() const;
  /// The value under `bindings`; InvalidModel when a symbol is missing.
  int64_t evaluate(const Bindings& bindings) const;
  void collect_symbols(std::set<std::string>& into) const;
  /// Whether the form shows that no symbols of at least 0 make it negative; false where it does not show it.
  bool never_negative() const;
  std::string to_string() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  Dim operator-() const { return Dim(0) - *this; }
  friend Dim floor_div(const Dim& a, const Dim& b);
  friend Dim ceil_div(const Dim& a, const Dim& b) { return -floor_div(-a, b); }
  friend Dim mod(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);

  friend std::strong_ordering operator<=>(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b) { return (a <=> b) == std::strong_ordering::equal; }
  friend std::ostream& operator<<(std::ostream& out, const Dim& dim) { return out << dim.to_string(); }

  struct Atom;
  struct Term;

 private:
  using Terms = std::vector<Term>;
  static Dim from_terms(int64_t constant, Terms terms);
  static Dim atom(Atom atom);

  int64_t constant_ = 0;
  std::shared_ptr<const Terms> terms_;  // null when static; sorted, without zero coefficients
};

Dim floor_div(const Dim& a, const Dim& b);
Dim ceil_div(const Dim& a, const Dim& b);
Dim mod(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);

using Shape = std::vector<Dim>;

/// Product of the dims of `shape` over [first, last); last < 0 means the rank.
Dim elements(const Shape& shape, int first = 0, int last = -1);
bool is_static(const Shape& shape);
std::vector<int64_t> evaluate(const Shape& shape, const Bindings& bindings);
/// The integers of a static shape; InternalError otherwise.
std::vector<int64_t> values(const Shape& shape);
/// `[1,3,h,w]`.
std::string to_string(const Shape& shape);

/// A symbol of a model: its range (inclusive) and the value of the example, which cost models use.
struct Symbol {
  std::string name;
  int64_t min = 1;
  int64_t max = INT64_MAX;
  int64_t hint = 1;
  bool operator==(const Symbol&) const = default;
};

}  // namespace hetnn
