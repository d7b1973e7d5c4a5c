// Typed access to kernel parameters.
#include "hetnn/kernels/params.h"

#include <optional>

#include "hetnn/base/error.h"

namespace hetnn::kernels {
namespace {

using ops::Attr;
using ops::AttrKind;

// As T, where the attribute can be read as one.
template <typename T>
std::optional<T> as(const Attr& attr);

template <>
std::optional<int64_t> as(const Attr& attr) {
  if (const bool* found = std::get_if<bool>(&attr)) return int64_t{*found};
  if (const Dim* found = std::get_if<Dim>(&attr)) return found->value();
  return std::nullopt;
}

template <>
std::optional<double> as(const Attr& attr) {
  if (const double* found = std::get_if<double>(&attr)) return *found;
  const std::optional<int64_t> integer = as<int64_t>(attr);
  return integer ? std::optional(static_cast<double>(*integer)) : std::nullopt;
}

template <>
std::optional<std::string> as(const Attr& attr) {
  const auto* found = std::get_if<std::string>(&attr);
  return found ? std::optional(*found) : std::nullopt;
}

template <>
std::optional<std::vector<int64_t>> as(const Attr& attr) {
  if (const auto* found = std::get_if<std::vector<Dim>>(&attr)) return values(*found);
  if (const auto* found = std::get_if<Tensor>(&attr); found && found->dtype() == DType::i8) {
    const auto bytes = found->values<int8_t>();
    return std::vector<int64_t>(bytes.begin(), bytes.end());
  }
  // An empty list has no element type of its own.
  if (const auto* found = std::get_if<std::vector<double>>(&attr); found && found->empty())
    return std::vector<int64_t>();
  return std::nullopt;
}

template <>
std::optional<std::vector<double>> as(const Attr& attr) {
  if (const auto* found = std::get_if<std::vector<double>>(&attr)) return *found;
  const auto integers = as<std::vector<int64_t>>(attr);
  return integers ? std::optional(std::vector<double>(integers->begin(), integers->end())) : std::nullopt;
}

template <typename T>
T get(const ops::Attrs& attrs, std::string_view name, AttrKind kind, const T* fallback) {
  const auto at = attrs.find(name);
  if (at == attrs.end()) {
    if (fallback) return *fallback;
    throw InvalidModel(text("kernel parameter '", name, "' (", ops::attr_kind_name(kind),
                            ") is missing. Set it before the kernel is made."));
  }
  std::optional<T> value = as<T>(at->second);
  if (!value) {
    throw InvalidModel(text("kernel parameter '", name, "' must be ", ops::attr_kind_name(kind), "; got ",
                            ops::attr_kind_name(ops::attr_kind(at->second)),
                            ". Pass it with the type the kernel's header gives."));
  }
  return *std::move(value);
}

}  // namespace

Params::Params() = default;
Params::Params(ops::Attrs attrs) : attrs_(std::move(attrs)) {}
Params::Params(std::initializer_list<std::pair<const std::string, ParamValue>> values) {
  for (const auto& [name, value] : values) set(name, value);
}
Params::Params(const Params&) = default;
Params::Params(Params&&) noexcept = default;
Params& Params::operator=(const Params&) = default;
Params& Params::operator=(Params&&) noexcept = default;
Params::~Params() = default;

void Params::set(std::string name, ParamValue value) {
  attrs_.insert_or_assign(std::move(name), std::move(value.attr));
}
void Params::set(const ops::Attrs& attrs) {
  for (const auto& [name, attr] : attrs) attrs_.insert_or_assign(name, attr);
}

#define HETNN_GETTER(type, getter, kind)                                                                        \
  type Params::getter(std::string_view name) const { return get<type>(attrs_, name, AttrKind::kind, nullptr); } \
  type Params::getter(std::string_view name, type fallback) const {                                             \
    return get(attrs_, name, AttrKind::kind, &fallback);                                                        \
  }
HETNN_GETTER(int64_t, integer, integer)
HETNN_GETTER(double, real, real)
HETNN_GETTER(std::string, text, string)
HETNN_GETTER(std::vector<int64_t>, integers, integers)
HETNN_GETTER(std::vector<double>, reals, reals)
#undef HETNN_GETTER

}  // namespace hetnn::kernels
