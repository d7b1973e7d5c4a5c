// Graph to text.
#include <algorithm>
#include <charconv>

#include "hetnn/base/error.h"
#include "hetnn/base/quoted.h"
#include "hetnn/ir/text.h"

namespace hetnn::ir {
namespace {

constexpr int64_t kInlineElems = 16;

std::string number(double value) {
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end);
}
std::string number(float value) {
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end);
}

bool is_word(std::string_view source) {
  if (source.empty() || std::isdigit(static_cast<unsigned char>(source[0]))) return false;
  for (char c : source) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
}

std::string name_text(const std::string& name) {
  const auto stands = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || kNameMarks.find(c) != std::string_view::npos;
  };
  return std::all_of(name.begin(), name.end(), stands) ? name : in_quotes(name);
}

std::string percent(const Value& value) { return "%" + name_text(value.name()); }

std::string base64(const std::byte* data, int64_t bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve(static_cast<size_t>((bytes + 2) / 3 * 4));
  for (int64_t k = 0; k < bytes; k += 3) {
    uint32_t group = 0;
    for (int64_t j = 0; j < 3; ++j) group = group << 8 | (k + j < bytes ? static_cast<uint32_t>(data[k + j]) : 0U);
    for (int64_t j = 0; j < 4; ++j) out += k + j - 1 < bytes || j < 2 ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

template <typename T>
std::string numbers(const Tensor& tensor) {
  std::string out = "{";
  for (T value : tensor.values<T>()) {
    if (out.size() > 1) out += ", ";
    if constexpr (std::is_floating_point_v<T>) {
      out += number(value);
    } else {
      out += std::to_string(value);
    }
  }
  return out + "}";
}

std::string type_text(const Tensor& tensor) {
  std::string out(dtype_name(tensor.dtype()));
  out += "[";
  for (int k = 0; k < tensor.rank(); ++k)
    out += (k ? "," : "") + std::to_string(tensor.shape()[static_cast<size_t>(k)]);
  return out + "] ";
}

std::string tensor_text(const Tensor& tensor, const PrintOptions& options) {
  const std::string out = type_text(tensor);
  if (tensor.elems() <= kInlineElems) {
    switch (tensor.dtype()) {
      case DType::f32:
        return out + numbers<float>(tensor);
      case DType::f64:
        return out + numbers<double>(tensor);
      case DType::i8:
        return out + numbers<int8_t>(tensor);
      case DType::u8:
        return out + numbers<uint8_t>(tensor);
      case DType::i16:
        return out + numbers<int16_t>(tensor);
      case DType::i32:
        return out + numbers<int32_t>(tensor);
      case DType::i64:
        return out + numbers<int64_t>(tensor);
      case DType::u16:
        return out + numbers<uint16_t>(tensor);
      case DType::u32:
        return out + numbers<uint32_t>(tensor);
      case DType::boolean:
        return out + numbers<bool>(tensor);
      default:
        break;
    }
  }
  if (options.place) return out + "at " + std::to_string(options.place(tensor));
  return out + (options.constants ? "\"" + base64(tensor.data(), tensor.bytes()) + "\"" : "...");
}

struct AttrPrinter {
  const PrintOptions& options;
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const Dim& value) const { return value.to_string(); }
  std::string operator()(double value) const { return number(value); }
  std::string operator()(const std::string& value) const { return is_word(value) ? value : in_quotes(value); }
  std::string operator()(DType value) const { return std::string(dtype_name(value)); }
  std::string operator()(const std::vector<Dim>& value) const { return to_string(value); }
  std::string operator()(const std::vector<double>& value) const {
    std::string out = "[";
    for (size_t k = 0; k < value.size(); ++k) out += (k ? "," : "") + number(value[k]);
    return out + "]";
  }
  std::string operator()(const Tensor& value) const { return tensor_text(value, options); }
};

std::string location(const Loc& loc) {
  if (loc == Loc{}) return {};
  std::string out = " loc(" + in_quotes(loc.scope);
  if (!loc.file.empty()) out += ", " + in_quotes(loc.file) + ":" + std::to_string(loc.line);
  return out + ")";
}

std::string also(const std::vector<std::string>& aliases) {
  std::string out;
  for (const std::string& alias : aliases) out += (out.empty() ? " also(" : ", ") + in_quotes(alias);
  return out.empty() ? out : out + ")";
}

std::string node_text(const Node& node, const PrintOptions& options) {
  std::string out = "  ";
  for (size_t k = 0; k < node.outputs().size(); ++k) out += (k ? ", " : "") + percent(*node.output(k));
  out += text(" = ", node.op().name, "(");
  for (size_t k = 0; k < node.inputs().size(); ++k) {
    out += k ? ", " : "";
    out += node.input(k) ? percent(*node.input(k)) : "_";
  }
  out += ")";
  std::string attrs;
  for (const ops::AttrDef& def : node.op().attrs) {
    const Attr& attr = node.attrs().find(def.name)->second;
    if (def.default_value && ops::same(attr, *def.default_value)) continue;
    attrs += text(attrs.empty() ? " {" : ", ", def.name, " = ", std::visit(AttrPrinter{options}, attr));
  }
  for (std::string_view name : ops::kQuantAttrs) {
    auto at = node.attrs().find(name);
    if (at == node.attrs().end()) continue;
    const auto* zeros = std::get_if<std::vector<Dim>>(&at->second);
    attrs +=
        text(attrs.empty() ? " {" : ", ", name, " = ",
             zeros && zeros->size() == 1 ? zeros->front().to_string() : std::visit(AttrPrinter{options}, at->second));
  }
  if (!attrs.empty()) out += attrs + "}";
  out += " : ";
  for (size_t k = 0; k < node.outputs().size(); ++k) out += (k ? ", " : "") + to_string(node.output(k)->type());
  if (!node.device.empty()) out += " on " + name_text(node.device);
  if (node.subgraph >= 0) out += text(" in ", node.subgraph);
  if (node.launch >= 0) out += text(" launch ", node.launch);
  if (options.locations) out += location(node.loc()) + also(node.aliases);
  return out + "\n";
}

}  // namespace

std::string print(const Graph& graph, const PrintOptions& options) {
  std::string out = text("graph @", is_word(graph.name()) ? graph.name() : in_quotes(graph.name()),
                         " {stage = ", stage_name(graph.stage));
  if (!graph.symbols.empty()) {
    out += ", symbols = [";
    for (size_t k = 0; k < graph.symbols.size(); ++k) {
      const Symbol& s = graph.symbols[k];
      out += text(k ? ", " : "", s.name, ": ", s.min, "..", s.max, " = ", s.hint);
    }
    out += "]";
  }
  for (const Mutation& m : graph.mutations) {
    out += text(", mutates ", in_quotes(m.input), " by ", in_quotes(m.output), " from ",
                options.place ? type_text(m.initial) + "kept" : tensor_text(m.initial, options));
  }
  out += "} (";
  const std::vector<Value*> inputs = graph.inputs();
  for (size_t k = 0; k < inputs.size(); ++k)
    out += text(k ? ", " : "", percent(*inputs[k]), ": ", to_string(inputs[k]->type()));
  out += ") -> (";
  for (size_t k = 0; k < graph.outputs().size(); ++k) {
    out += (k ? ", " : "") + percent(*graph.outputs()[k]);
    if (graph.output_names[k] != graph.outputs()[k]->name()) out += " as " + in_quotes(graph.output_names[k]);
  }
  out += ") {\n";
  for (const Node* node : graph.nodes()) out += node_text(*node, options);
  return out + "}\n";
}

}  // namespace hetnn::ir
