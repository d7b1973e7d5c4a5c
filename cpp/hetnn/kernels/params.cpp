// Typed access to kernel parameters.
#include "hetnn/kernels/params.h"

#include "hetnn/base/error.h"

namespace hetnn::kernels {
namespace {

constexpr const char* kKinds[] = {"an integer", "a real", "a text", "a list of integers", "a list of reals"};

template <typename T>
constexpr int kKindOf = -1;
template <>
constexpr int kKindOf<int64_t> = 0;
template <>
constexpr int kKindOf<double> = 1;
template <>
constexpr int kKindOf<std::string> = 2;
template <>
constexpr int kKindOf<std::vector<int64_t>> = 3;
template <>
constexpr int kKindOf<std::vector<double>> = 4;

template <typename T>
T value_as(std::string_view name, const ParamValue& value) {
  if (const T* found = std::get_if<T>(&value)) return *found;
  if constexpr (std::is_same_v<T, double>) {
    if (const int64_t* found = std::get_if<int64_t>(&value)) return static_cast<double>(*found);
  }
  if constexpr (std::is_same_v<T, std::vector<double>>) {
    if (const auto* found = std::get_if<std::vector<int64_t>>(&value)) return {found->begin(), found->end()};
  }
  if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
    // An empty list has no element type of its own.
    if (const auto* found = std::get_if<std::vector<double>>(&value); found && found->empty()) return {};
  }
  throw InvalidModel(text("kernel parameter '", name, "' must be ", kKinds[kKindOf<T>], "; got ", kKinds[value.index()],
                          ". Pass it with the type the kernel's header gives."));
}

template <typename T, typename Map>
T required(const Map& values, std::string_view name) {
  const auto at = values.find(name);
  if (at == values.end())
    throw InvalidModel(text("kernel parameter '", name, "' (", kKinds[kKindOf<T>],
                            ") is missing. Set it before the kernel ", "is made."));
  return value_as<T>(name, at->second);
}

template <typename T, typename Map>
T optional(const Map& values, std::string_view name, T fallback) {
  const auto at = values.find(name);
  return at == values.end() ? fallback : value_as<T>(name, at->second);
}

}  // namespace

int64_t Params::integer(std::string_view name) const { return required<int64_t>(values_, name); }
int64_t Params::integer(std::string_view name, int64_t fallback) const { return optional(values_, name, fallback); }
double Params::real(std::string_view name) const { return required<double>(values_, name); }
double Params::real(std::string_view name, double fallback) const { return optional<double>(values_, name, fallback); }
std::string Params::text(std::string_view name) const { return required<std::string>(values_, name); }
std::string Params::text(std::string_view name, std::string fallback) const {
  return optional(values_, name, std::move(fallback));
}
std::vector<int64_t> Params::integers(std::string_view name) const {
  return required<std::vector<int64_t>>(values_, name);
}
std::vector<int64_t> Params::integers(std::string_view name, std::vector<int64_t> fallback) const {
  return optional(values_, name, std::move(fallback));
}
std::vector<double> Params::reals(std::string_view name) const { return required<std::vector<double>>(values_, name); }
std::vector<double> Params::reals(std::string_view name, std::vector<double> fallback) const {
  return optional(values_, name, std::move(fallback));
}

}  // namespace hetnn::kernels
