// Reads and writes inferences in HTTP bodies.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "hetnn/base/counted.h"
#include "hetnn/base/error.h"
#include "hetnn/base/json_fields.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/base/visit_dtype.h"
#include "hetnn/serve/http_form.h"

namespace hetnn::serve {
namespace {

using json::Json;

std::string_view kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::object:
      return "object";
    case Json::value_t::array:
      return "list";
    case Json::value_t::string:
      return "text";
    case Json::value_t::boolean:
      return "bool";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return "int";
    case Json::value_t::number_float:
      return "float";
    default:
      return "null";
  }
}

// The values of some keys, null where they are absent; what has others is refused.
template <size_t N>
std::array<const Json*, N> fields(const Json& value, std::string_view called,
                                  const std::array<std::string_view, N>& keys) {
  if (!value.is_object()) throw InvalidModel(text(called, " must be an object; got ", kind_of(value), "."));
  std::array<const Json*, N> out{};
  for (const auto& [key, entry] : value.get_ref<const Json::object_t&>()) {
    const auto at = std::ranges::find(keys, std::string_view(key));
    if (at == keys.end()) {
      std::string known;
      for (const std::string_view each : keys) known += text(known.empty() ? "" : ", ", each);
      throw InvalidModel(
          text(called, " has the unknown key '", std::string_view(key).substr(0, 100), "'; it takes ", known, "."));
    }
    out[static_cast<size_t>(at - keys.begin())] = &entry;
  }
  return out;
}

const std::string& name_in(const Json* value, std::string_view called) {
  if (!value || !value->is_string())
    throw InvalidModel(text(called, " must be a text; got ", value ? kind_of(*value) : "null", "."));
  return value->get_ref<const std::string&>();
}

Parameters parameters_in(const Json* value, std::string_view called) {
  Parameters out;
  if (!value || value->is_null()) return out;
  if (!value->is_object())
    throw InvalidModel(text(called, ": its parameters must be an object; got ", kind_of(*value), "."));
  for (const auto& [key, entry] : value->get_ref<const Json::object_t&>()) {
    Parameter parameter{{}, kind_of(entry)};
    if (entry.is_boolean()) parameter.value = entry.get<bool>();
    if (entry.is_number_unsigned()) {
      parameter.value = entry.get<uint64_t>();
    } else if (entry.is_number_integer()) {
      parameter.value = entry.get<int64_t>();
    } else if (entry.is_number_float()) {
      parameter.value = entry.get<double>();
    }
    if (const auto* words = entry.get_ptr<const std::string*>()) parameter.value = *words;
    out.emplace_back(key, std::move(parameter));
  }
  return out;
}

std::vector<int64_t> shape_in(const Json* value, std::string_view called) {
  if (!value || !value->is_array())
    throw InvalidModel(
        text(called, ": its shape must be a list of sizes; got ", value ? kind_of(*value) : "null", "."));
  std::vector<int64_t> out;
  out.reserve(value->size());
  for (const Json& size : *value) {
    const bool fits =
        size.is_number_integer() && !(size.is_number_unsigned() && size.get<uint64_t>() > uint64_t{INT64_MAX});
    if (!fits)
      throw InvalidModel(
          text(called, ": its shape must be a list of integers, none negative; got ", kind_of(size), " among them."));
    out.push_back(size.get<int64_t>());
  }
  return out;
}

// What stands for a number that JSON has no form for; `bare_to_texts` made texts of Python's words.
std::optional<double> beyond_numbers(const std::string& word) {
  if (word == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (word == "Infinity") return std::numeric_limits<double>::infinity();
  if (word == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

// The text with the words NaN, Infinity and -Infinity, which Python and Triton write bare, as texts.
std::string bare_to_texts(std::string_view document) {
  constexpr std::string_view kWords[] = {"-Infinity", "Infinity", "NaN"};
  std::string out;
  bool within = false;
  for (size_t at = 0; at < document.size(); ++at) {
    const char each = document[at];
    if (within && each == '\\' && at + 1 < document.size()) {
      out += each;
      out += document[++at];
      continue;
    }
    if (each == '"') within = !within;
    const auto* word = within ? std::end(kWords) : std::ranges::find_if(kWords, [&](std::string_view one) {
      return document.substr(at, one.size()) == one;
    });
    if (word == std::end(kWords)) {
      out += each;
    } else {
      out += text('"', *word, '"');
      at += word->size() - 1;
    }
  }
  return out;
}

bool has_bare_words(std::string_view document) {
  return document.find("NaN") != document.npos || document.find("Infinity") != document.npos;
}

// Values that are written out: a list, flat or nested as regularly as a tensor is.
class Values {
 public:
  Values(Given& given, const Json& data) : given_(given) {
    given.dtype ? void(values_.emplace(given)) : void(texts_.emplace(given));
    if (!data.is_array())
      throw InvalidModel(text(given.called(), ": its data must be a list; got ", kind_of(data), "."));
    for (const Json* list = &data; list->is_array(); list = &list->front()) {
      sizes_.push_back(list->size());
      if (list->empty()) break;
    }
    add(data, 0);
  }
  void give() { texts_ ? texts_->give(given_) : void(given_.tensor = values_->take()); }

 private:
  void add(const Json& list, size_t depth) {
    const bool last = depth + 1 == sizes_.size();
    const bool regular = list.size() == sizes_[depth] &&
                         std::ranges::all_of(list, [&](const Json& each) { return each.is_array() != last; });
    if (!regular)
      throw InvalidModel(text(given_.called(), ": its data is no regular list of ", given_.datatype(), "."));
    for (const Json& each : list) last ? value(each) : add(each, depth + 1);
  }
  void value(const Json& each) {
    if (texts_) {
      if (!each.is_string()) refuse_values(given_, kind_of(each));
      return texts_->add(each.get_ref<const std::string&>());
    }
    switch (each.type()) {
      case Json::value_t::boolean:
        return values_->add(each.get<bool>());
      case Json::value_t::number_unsigned:
        return values_->add(each.get<uint64_t>());
      case Json::value_t::number_integer:
        return values_->add(each.get<int64_t>());
      case Json::value_t::number_float:
        return values_->add(each.get<double>());
      case Json::value_t::string:
        if (const auto number = beyond_numbers(each.get_ref<const std::string&>())) return values_->add(*number);
        [[fallthrough]];
      default:
        refuse_values(given_, kind_of(each));
    }
  }

  Given& given_;
  std::optional<WrittenValues> values_;
  std::optional<WrittenTexts> texts_;
  std::vector<size_t> sizes_;
};

void write_real(std::string& out, double value, auto shown) {
  if (!std::isfinite(value)) {
    out += std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
    return;
  }
  char buffer[64];
  out.append(buffer, std::to_chars(std::begin(buffer), std::end(buffer), shown).ptr);
}

template <typename T>
void write_values(std::string& out, const Tensor& tensor) {
  out += '[';
  const auto* values = reinterpret_cast<const T*>(tensor.data());
  for (int64_t k = 0; k < tensor.elems(); ++k) {
    if (k > 0) out += ',';
    if constexpr (std::is_same_v<T, bool>) {
      out += values[k] ? "true" : "false";
    } else if constexpr (std::is_floating_point_v<T>) {
      write_real(out, values[k], values[k]);
    } else {
      char buffer[32];
      out.append(buffer, std::to_chars(std::begin(buffer), std::end(buffer), values[k]).ptr);
    }
  }
  out += ']';
}

std::string texts_text(const std::vector<std::string_view>& texts, std::string_view name) {
  Json out = Json::array();
  for (const std::string_view each : texts) {
    if (!is_utf8(each)) {
      throw Unsupported(text("output '", name, "': its text ", out.size(), " is no UTF-8 and has no form in JSON. ",
                             "Ask for it as binary data."));
    }
    out.push_back(each);
  }
  return json::to_text(out);
}

std::string values_text(const Tensor& tensor, std::string_view name) {
  std::string out;
  if (is_stored(tensor.dtype()) || tensor.dtype() == DType::bf16)
    throw Unsupported(text("output '", name,
                           "': ", kserve_name(tensor.dtype()).empty() ? "its type" : kserve_name(tensor.dtype()),
                           " has no form in JSON. Ask for it as binary data."));
  visit_dtype(tensor.dtype(), [&]<typename T>(T) {
    if constexpr (kIsNarrowFloat<T>) {
      const std::span<const T> narrow = tensor.values<T>();
      write_values<float>(out, Tensor::of({tensor.elems()}, std::vector<float>(narrow.begin(), narrow.end())));
    } else {
      write_values<T>(out, tensor);
    }
  });
  return out;
}

}  // namespace

Inference read_http(std::string model, std::string version, const Bytes& body, std::optional<int64_t> head_bytes) {
  const auto whole = static_cast<int64_t>(body.data.size());
  if (head_bytes && (*head_bytes < 0 || *head_bytes > whole))
    throw InvalidModel(text("Inference-Header-Content-Length must be in [0, ", whole, "], the size of the body; got ",
                            *head_bytes, "."));
  const auto head = static_cast<size_t>(head_bytes.value_or(whole));
  const std::string_view written = body.text().substr(0, head);
  const Json document = has_bare_words(written) ? json::parse(bare_to_texts(written), kInferenceJson, "the request")
                                                : json::parse(written, kInferenceJson, "the request");
  const auto [id, parameters, inputs, outputs, model_name, model_version] =
      fields<6>(document, "the request", {"id", "parameters", "inputs", "outputs", "model_name", "model_version"});
  Inference out;
  out.model = std::move(model);
  out.version = std::move(version);
  if (id) out.id = name_in(id, "the request's id");
  take_parameters(parameters_in(parameters, "the request"), out);
  const bool lists = inputs && inputs->is_array() && (!outputs || outputs->is_array() || outputs->is_null());
  if (!lists)
    throw InvalidModel("the request must have a list 'inputs', and 'outputs' must be a list where it is there.");
  size_t at = head;
  for (const Json& row : *inputs) {
    const auto [name, datatype, shape, own, data] =
        fields<5>(row, "an input", {"name", "datatype", "shape", "parameters", "data"});
    std::string called = text("input '", name_in(name, "the name of an input").substr(0, 100), "'");
    Given made = given(name->get<std::string>(), name_in(datatype, called + ": its datatype"), shape_in(shape, called));
    const Parameters given_parameters = parameters_in(own, called);
    made.shared = place_of(given_parameters, called);
    const auto size =
        std::ranges::find(given_parameters, "binary_data_size", [](const auto& each) { return each.first; });
    const bool raw = size != given_parameters.end();
    if ((data != nullptr) + raw + made.shared.has_value() != 1)
      throw InvalidModel(text(called, " must have one of data, binary_data_size and shared_memory_region."));
    if (raw) {
      const auto bytes = static_cast<size_t>(size_of(size->second, called + ": binary_data_size"));
      const size_t left = body.data.size() - at;
      if (bytes > left)
        throw InvalidModel(text(called, ": binary_data_size is ", bytes, "; ", left, " bytes are left."));
      take_raw(made, body.part(at, bytes));
      at += bytes;
    } else if (data && made.dtype == DType::bf16) {
      throw Unsupported(text(called, ": BF16 has no form in JSON. Send it as binary data."));
    } else if (data) {
      // No more memory than values are there for.
      if (static_cast<size_t>(made.elems) > written.size())
        throw InvalidModel(
            text(called, ": its shape takes ", counted(made.elems, "value"), "; the request has fewer."));
      Values(made, *data).give();
    }
    out.inputs.push_back(std::move(made));
  }
  if (at != body.data.size())
    throw InvalidModel(
        text(body.data.size() - at, " bytes follow the last tensor; the sizes do not add up to the body."));
  if (outputs && outputs->is_array()) {
    for (const Json& row : *outputs) {
      const auto [name, own] = fields<2>(row, "an output", {"name", "parameters"});
      out.outputs.push_back(
          wanted(name_in(name, "the name of an output"), parameters_in(own, "an output"), out.binary));
    }
  }
  return out;
}

Written write_http(const Inference& inference, std::string_view version, const Bound& bound,
                   std::span<const Tensor> outputs) {
  Written out;
  out.pieces.emplace_back();  // the head
  Json document = {{"model_name", inference.model}, {"model_version", version}};
  if (!inference.id.empty()) document["id"] = inference.id;
  std::string head = json::to_text(document);
  head.pop_back();
  head += ",\"outputs\":[";
  bool first = true;
  for (const Asked& each : bound.outputs) {
    const Wanted& wanted = each.wanted;
    const Tensor& tensor = outputs[each.port];
    Json row = {{"name", wanted.name}, {"datatype", each.datatype(outputs)}, {"shape", each.shape(outputs)}};
    std::string values;
    if (wanted.shared) {
      row["parameters"] = {
          {kRegion, wanted.shared->region}, {kOffset, wanted.shared->offset}, {kBytes, wanted.shared->bytes}};
    } else if (wanted.binary && each.spans) {
      std::string raw = each.raw_texts(outputs);
      row["parameters"] = {{"binary_data_size", raw.size()}};
      out.pieces.push_back({std::move(raw), {}});
    } else if (wanted.binary) {
      row["parameters"] = {{"binary_data_size", tensor.bytes()}};
      out.pieces.push_back({{}, {tensor.data(), static_cast<size_t>(tensor.bytes())}});
    } else {
      values = each.spans ? texts_text(each.texts(outputs), wanted.name) : values_text(tensor, wanted.name);
    }
    std::string described = json::to_text(row);
    if (!values.empty()) {
      described.pop_back();
      described += text(",\"data\":", values, "}");
    }
    head += text(first ? "" : ",", described);
    first = false;
  }
  head += "]}";
  if (out.pieces.size() > 1) out.head_bytes = static_cast<int64_t>(head.size());
  out.pieces.front().text = std::move(head);
  return out;
}

}  // namespace hetnn::serve
