// The parameters of a kernel call: attributes with concrete sizes, and what the kernel's family adds to them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hetnn/ops/attr.h"

namespace hetnn::kernels {

/// An attribute from what a caller has at hand.
struct ParamValue {
  ops::Attr attr;
  // NOLINTBEGIN(google-explicit-constructor): so that lists of parameters read as such
  ParamValue(int64_t value) : attr(Dim(value)) {}
  ParamValue(double value) : attr(value) {}
  ParamValue(std::string value) : attr(std::move(value)) {}
  ParamValue(const char* value) : attr(std::string(value)) {}
  ParamValue(const std::vector<int64_t>& values) : attr(std::vector<Dim>(values.begin(), values.end())) {}
  ParamValue(std::vector<double> values) : attr(std::move(values)) {}
  // NOLINTEND(google-explicit-constructor)
};

/// Getters with a fallback return it when the name is absent; all throw InvalidModel when the value has another type
/// and, without a fallback, when the name is absent. An integer is taken where a real is asked for, a boolean as 0 or
/// 1, a tensor of i8 as a list of integers.
class Params {
 public:
  // Compiled once: maps of attributes are much code.
  Params();
  explicit Params(ops::Attrs attrs);
  Params(std::initializer_list<std::pair<const std::string, ParamValue>> values);
  Params(const Params&);
  Params(Params&&) noexcept;
  Params& operator=(const Params&);
  Params& operator=(Params&&) noexcept;
  ~Params();

  void set(std::string name, ParamValue value);
  void set(const ops::Attrs& attrs);
  const ops::Attrs& attrs() const { return attrs_; }
  bool has(std::string_view name) const { return attrs_.contains(name); }

  int64_t integer(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t fallback) const;
  double real(std::string_view name) const;
  double real(std::string_view name, double fallback) const;
  std::string text(std::string_view name) const;
  std::string text(std::string_view name, std::string fallback) const;
  std::vector<int64_t> integers(std::string_view name) const;
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> fallback) const;
  std::vector<double> reals(std::string_view name) const;
  std::vector<double> reals(std::string_view name, std::vector<double> fallback) const;

 private:
  ops::Attrs attrs_;
};

}  // namespace hetnn::kernels
