// Short ways to say which CPU kernel computes an operator.
#include "hetnn/ops/kernel_use.h"

#include <charconv>

#include "hetnn/base/error.h"
#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

std::string exact(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

}  // namespace

KernelUse::Param as_param(const Attr& attr) {
  switch (attr_kind(attr)) {
    case AttrKind::boolean:
      return Dim(std::get<bool>(attr));
    case AttrKind::integer:
      return std::get<Dim>(attr);
    case AttrKind::real:
      return std::get<double>(attr);
    case AttrKind::string:
      return std::get<std::string>(attr);
    case AttrKind::integers:
      return std::get<std::vector<Dim>>(attr);
    case AttrKind::reals:
      return std::get<std::vector<double>>(attr);
    default:
      break;
  }
  throw InternalError(
      text("an attribute of kind ", attr_kind_name(attr_kind(attr)), " is no kernel parameter"));
}

KernelChoice unary_kernel(std::string op, std::vector<std::string> values) {
  return [op, values](const Call& call) {
    std::vector<double> constants;
    std::string step = op;
    for (const std::string& name : values) {
      constants.push_back(call.real(name));
      step += " " + exact(constants.back());
    }
    return KernelUse{
        .kernel = "unary", .params = {{"op", op}, {"values", constants}}, .step = step, .takes_steps = true};
  };
}

KernelChoice binary_kernel(std::string op, std::string step) {
  return [op, step](const Call&) {
    return KernelUse{
        .kernel = "binary", .params = {{"op", op}}, .step = step.empty() ? "" : step + " %1", .takes_steps = true};
  };
}

KernelChoice reduce_kernel(std::string op) {
  return [op](const Call& call) {
    std::vector<Dim> axes;
    for (int axis : reduced_axes(call)) axes.emplace_back(axis);
    return KernelUse{.kernel = "reduce", .params = {{"op", op}, {"axes", axes}}};
  };
}

KernelChoice named_kernel(std::string kernel, std::vector<std::string> attrs, KernelUse::Layout layout,
                          bool takes_steps) {
  return [=](const Call& call) {
    KernelUse use{.kernel = kernel, .layout = layout, .takes_steps = takes_steps};
    for (const std::string& name : attrs) use.params[name] = as_param(call.attrs.at(name));
    return use;
  };
}

}  // namespace hetnn::ops
