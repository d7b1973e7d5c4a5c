// Types as text, and quantization as attributes.
#include "hetnn/ops/type.h"

#include <charconv>

namespace hetnn::ops {
namespace {

std::string number(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

}  // namespace

Attrs quant_attrs(const Quant& quant) {
  Attrs out{{std::string(kQuantScale), quant.scales}};
  if (quant.zero_point != 0) out.emplace(kQuantZero, Dim(quant.zero_point));
  return out;
}

std::string to_string(const Type& type) {
  std::string out(dtype_name(type.dtype));
  if (type.quant) {
    out += "{";
    for (size_t k = 0; k < type.quant->scales.size(); ++k) out += (k ? "," : "") + number(type.quant->scales[k]);
    if (type.quant->zero_point != 0) out += ":" + std::to_string(type.quant->zero_point);
    out += "}";
  }
  return out + to_string(type.shape);
}

}  // namespace hetnn::ops
