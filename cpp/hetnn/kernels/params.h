// The parameters of a kernel call: an ordered map from names to numbers, texts and lists of numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hetnn::kernels {

using ParamValue = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;

/// Getters with a fallback return it when the name is absent; all throw InvalidModel when the value has another type
/// (an integer is accepted where a real is asked for) and, without a fallback, when the name is absent.
class Params {
 public:
  Params() = default;
  Params(std::initializer_list<std::pair<const std::string, ParamValue>> values) : values_(values) {}

  void set(std::string name, ParamValue value) { values_.insert_or_assign(std::move(name), std::move(value)); }
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }

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

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  size_t size() const { return values_.size(); }
  bool operator==(const Params&) const = default;

 private:
  std::map<std::string, ParamValue, std::less<>> values_;
};

}  // namespace hetnn::kernels
