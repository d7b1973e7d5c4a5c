// What both forms of the protocol have in common: types, shapes, parameters, values, and their fit to a network.
#include "hetnn/serve/inference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "hetnn/base/bool_bytes.h"
#include "hetnn/base/error.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/base/visit_dtype.h"

namespace hetnn::serve {
namespace {

constexpr int64_t kMostElems = int64_t{1} << 40;
constexpr int64_t kSpan = int64_t{1} << 32;  // a span is where a text begins, times this, plus its length
constexpr size_t kMostTextBytes = (size_t{1} << 31) - 1;

template <typename Items, typename Name>
std::string listed(const Items& items, Name name) {
  std::string out;
  for (const auto& item : items) out += text(out.empty() ? "" : ", ", name(item));
  return out;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  constexpr size_t kFew = 8;
  const std::span few(shape.data(), std::min(shape.size(), kFew));
  return text("[", listed(few, [](int64_t size) { return size; }), shape.size() > kFew ? ", ..." : "", "]");
}

// The last of that name counts, as in protobuf's maps.
const Parameter* find(const Parameters& parameters, std::string_view key) {
  const auto at =
      std::find_if(parameters.rbegin(), parameters.rend(), [&](const auto& row) { return row.first == key; });
  return at == parameters.rend() ? nullptr : &at->second;
}

// What stands there, as messages show it.
std::string shown(const Parameter& parameter) {
  return std::visit(
      [&](const auto& value) -> std::string {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return std::string(parameter.found);
        } else if constexpr (std::is_same_v<T, bool>) {
          return value ? "true" : "false";
        } else if constexpr (std::is_same_v<T, std::string>) {
          return text("'", short_name(value), "'");
        } else {
          return text(value);
        }
      },
      parameter.value);
}

[[noreturn]] void refuse_count(const Given& given, std::string_view found) {
  throw InvalidModel(text(given.called(), ": ", given.datatype(), shape_text(given.shape), " takes ", given.elems,
                          " values; got ", found, "."));
}

void take_raw_texts(Given& given, std::string_view bytes) {
  // No more memory than texts are there for.
  if (static_cast<uint64_t>(given.elems) > bytes.size() / sizeof(uint32_t))
    refuse_count(given, text("no more than ", bytes.size() / sizeof(uint32_t), " in ", bytes.size(), " bytes"));
  WrittenTexts into(given);
  for (int64_t k = 0; !bytes.empty(); ++k) {
    uint32_t size = 0;
    if (bytes.size() < sizeof size) {
      throw InvalidModel(text(given.called(), ": a text of ", kTexts, " begins with its length in ", sizeof size,
                              " bytes; before text ", k, " ", bytes.size(), " are left."));
    }
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    if (size > bytes.size()) {
      throw InvalidModel(text(given.called(), ": the length of text ", k, " of ", kTexts, " is ", size, "; ",
                              bytes.size(), " bytes are left."));
    }
    into.add(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  into.give(given);
}

bool truth(const Parameters& parameters, std::string_view key, std::string_view called, bool otherwise) {
  const Parameter* found = find(parameters, key);
  if (!found) return otherwise;
  if (const bool* value = std::get_if<bool>(&found->value)) return *value;
  throw InvalidModel(text(called, key, " must be true or false; got ", shown(*found), "."));
}

}  // namespace

std::string short_name(std::string_view name) { return std::string(name.substr(0, 100)); }

std::string Given::called() const { return text("input '", short_name(name), "'"); }

std::string_view Given::datatype() const { return dtype ? kserve_name(*dtype) : kTexts; }

std::string Inference::sequence_called() const {
  return sequence_is_number ? sequence : text("'", short_name(sequence), "'");
}

void Inference::give(size_t input, Bytes bytes) {
  Given& to = inputs.at(input);
  take_raw(to, bytes);
  to.shared.reset();
}

int64_t size_of(const Parameter& parameter, std::string_view called) {
  if (const auto* value = std::get_if<int64_t>(&parameter.value); value && *value >= 0) return *value;
  if (const auto* value = std::get_if<uint64_t>(&parameter.value); value && *value <= uint64_t{INT64_MAX})
    return static_cast<int64_t>(*value);
  throw InvalidModel(text(called, " must be an integer that is not negative; got ", shown(parameter), "."));
}

void take_parameters(const Parameters& parameters, Inference& to) {
  if (const Parameter* id = find(parameters, "sequence_id")) {
    if (const auto* name = std::get_if<std::string>(&id->value)) {
      to.sequence = *name;
    } else if (std::holds_alternative<int64_t>(id->value) || std::holds_alternative<uint64_t>(id->value)) {
      to.sequence = shown(*id);
      to.sequence_is_number = true;
      if (to.sequence == "0") to.sequence.clear();
    } else {
      throw InvalidModel(text("sequence_id must be a number or a text; got ", shown(*id), "."));
    }
  }
  to.sequence_start = truth(parameters, "sequence_start", "", false);
  to.sequence_end = truth(parameters, "sequence_end", "", false);
  if (to.sequence.empty() && (to.sequence_start || to.sequence_end))
    throw InvalidModel("sequence_start and sequence_end need a sequence_id that is not 0 or empty.");
  if (const Parameter* found = find(parameters, "priority")) to.priority = size_of(*found, "priority");
  if (const Parameter* found = find(parameters, "timeout")) to.timeout_us = size_of(*found, "timeout");
  to.binary = truth(parameters, "binary_data_output", "", to.binary);
}

std::optional<SharedSpan> place_of(const Parameters& parameters, std::string_view called) {
  const Parameter* region = find(parameters, kRegion);
  const Parameter* offset = find(parameters, kOffset);
  const Parameter* bytes = find(parameters, kBytes);
  if (!region) {
    if (!offset && !bytes) return std::nullopt;
    throw InvalidModel(text(called, ": ", kRegion, " is missing beside the other keys of shared memory."));
  }
  const auto* name = std::get_if<std::string>(&region->value);
  if (!name) throw InvalidModel(text(called, ": ", kRegion, " must be a text; got ", shown(*region), "."));
  return SharedSpan{*name, offset ? size_of(*offset, text(called, ": ", kOffset)) : 0,
                    size_of(bytes ? *bytes : Parameter{}, text(called, ": ", kBytes))};
}

Given given(std::string name, std::string_view datatype, std::vector<int64_t> shape) {
  Given out{.name = std::move(name),
            .dtype = {},
            .shape = std::move(shape),
            .elems = 1,
            .tensor = {},
            .spans = {},
            .shared = {}};
  const auto* named = std::ranges::find(kComputedDTypes, datatype, kserve_name);
  if (named != std::end(kComputedDTypes)) {
    out.dtype = *named;
  } else if (datatype != kTexts) {
    throw InvalidModel(text(out.called(), ": unknown datatype '", datatype.substr(0, 50), "'; there are ",
                            listed(kComputedDTypes, kserve_name), ", ", kTexts, "."));
  }
  const bool empty = std::ranges::find(out.shape, 0) != out.shape.end();
  // What a size of 0 is multiplied with is bounded too.
  for (const int64_t size : out.shape) {
    if (size < 0)
      throw InvalidModel(text(out.called(), ": its shape must be a list of integers, none negative; got ",
                              shape_text(out.shape), "."));
    if (size == 0) continue;
    if (out.elems > kMostElems / size)
      throw InvalidModel(
          text(out.called(), ": its shape ", shape_text(out.shape), " has more elements than any request may."));
    out.elems *= size;
  }
  if (empty) out.elems = 0;
  return out;
}

Wanted wanted(std::string name, const Parameters& parameters, bool binary) {
  const std::string called = text("output '", short_name(name), "'");
  if (const Parameter* classes = find(parameters, "classification");
      classes && classes->value != decltype(classes->value)(int64_t{0}) &&
      classes->value != decltype(classes->value)(uint64_t{0}))
    throw Unsupported(text(called, ": the classification extension is not served. Ask for the tensor."));
  binary = truth(parameters, "binary_data", called + ": ", binary);
  return {std::move(name), binary, place_of(parameters, called)};
}

void take_raw(Given& given, const Bytes& bytes) {
  if (!given.dtype) return take_raw_texts(given, bytes.text());
  const int64_t needed = given.elems * dtype_bytes(*given.dtype);
  if (static_cast<int64_t>(bytes.data.size()) != needed)
    throw InvalidModel(text(given.called(), ": ", given.datatype(), shape_text(given.shape), " takes ", needed,
                            " bytes; got ", bytes.data.size(), "."));
  if (*given.dtype == DType::boolean && first_not_bool(bytes.data))
    throw InvalidModel(text(given.called(), ": a byte of BOOL is neither 0 nor 1."));
  const auto at = reinterpret_cast<uintptr_t>(bytes.data.data());
  if (at % static_cast<uintptr_t>(dtype_bytes(*given.dtype)) == 0) {
    given.tensor = {*given.dtype, given.shape, bytes.owner, bytes.data.data()};
    return;
  }
  std::byte* to = nullptr;
  given.tensor = Tensor::zeros(*given.dtype, given.shape, &to);
  if (needed > 0) std::memcpy(to, bytes.data.data(), static_cast<size_t>(needed));
}

void refuse_values(const Given& given, std::string_view kind) {
  throw InvalidModel(text(given.called(), ": its data must be values of ", given.datatype(), "; got ", kind, "."));
}

bool is_utf8(std::string_view text) {
  const auto* at = reinterpret_cast<const unsigned char*>(text.data());
  const auto* const end = at + text.size();
  while (at < end) {
    const unsigned char first = *at++;
    if (first < 0x80) continue;
    const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    if (first < 0xC2 || first > 0xF4 || end - at < more) return false;
    // The shortest form alone, no half of a pair, nothing beyond the last character.
    const unsigned char second = *at;
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) || (first == 0xF0 && second < 0x90) ||
        (first == 0xF4 && second > 0x8F))
      return false;
    for (int k = 0; k < more; ++k) {
      if ((*at++ & 0xC0) != 0x80) return false;
    }
  }
  return true;
}

WrittenValues::WrittenValues(const Given& given)
    : given_(given), dtype_(given.dtype.value_or(DType::f32)), step_(dtype_bytes(dtype_)) {
  HETNN_ASSERT(given.dtype, "texts are written by WrittenTexts");
  tensor_ = Tensor::zeros(dtype_, given.shape, &data_);
}

std::byte* WrittenValues::next() {
  if (count_ == given_.elems) refuse_count(given_, "more");
  return data_ + step_ * count_++;
}

template <typename T>
void WrittenValues::put(T value) {
  std::memcpy(next(), &value, sizeof value);
}

void WrittenValues::real(double value) {
  if (dtype_ == DType::f32) return put(static_cast<float>(value));
  if (dtype_ == DType::f64) return put(value);
  put(narrow_float(dtype_, static_cast<float>(value)));
}

template <typename Written>
void WrittenValues::add_integer(Written value) {
  const auto whole = [&]<typename T>(T) {
    if (!std::in_range<T>(value))
      throw InvalidModel(text(given_.called(), ": its data holds values beyond ", given_.datatype(), "."));
    put(static_cast<T>(value));
  };
  if (dtype_ == DType::boolean) refuse_values(given_, "int");
  if (is_float(dtype_)) return real(static_cast<double>(value));
  visit_dtype(dtype_, [&]<typename T>(T zero) {
    if constexpr (!kIsFloat<T> && !std::is_same_v<T, bool>) whole(zero);
  });
}

void WrittenValues::add(int64_t value) { add_integer(value); }
void WrittenValues::add(uint64_t value) { add_integer(value); }
void WrittenValues::add(double value) {
  if (!is_float(dtype_)) refuse_values(given_, "float");
  real(value);
}
void WrittenValues::add(bool value) {
  if (dtype_ != DType::boolean) refuse_values(given_, "bool");
  put(static_cast<uint8_t>(value));
}

Tensor WrittenValues::take() {
  if (count_ != given_.elems) refuse_count(given_, text(count_));
  return std::move(tensor_);
}

WrittenTexts::WrittenTexts(const Given& given) : given_(given) { spans_.reserve(static_cast<size_t>(given.elems)); }

void WrittenTexts::add(std::string_view words) {
  if (std::ssize(spans_) == given_.elems) refuse_count(given_, "more");
  if (bytes_.size() + words.size() > kMostTextBytes) {
    throw InvalidModel(text(given_.called(), " holds more than ", kMostTextBytes,
                            " bytes of text, the most there may "
                            "be. Send it in pieces."));
  }
  spans_.push_back(words.empty() ? 0 : static_cast<int64_t>(bytes_.size()) * kSpan + std::ssize(words));
  bytes_ += words;
}

void WrittenTexts::give(Given& to) {
  if (std::ssize(spans_) != given_.elems) refuse_count(given_, text(spans_.size()));
  const auto owner = std::make_shared<const std::string>(std::move(bytes_));
  to.tensor = {DType::u8, {std::ssize(*owner)}, owner, reinterpret_cast<const std::byte*>(owner->data())};
  to.spans = Tensor::of(given_.shape, spans_);
}

std::string_view Asked::datatype(std::span<const Tensor> outputs) const {
  return spans ? kTexts : kserve_name(outputs[port].dtype());
}

const std::vector<int64_t>& Asked::shape(std::span<const Tensor> outputs) const {
  return outputs[spans.value_or(port)].shape();
}

std::vector<std::string_view> Asked::texts(std::span<const Tensor> outputs) const {
  HETNN_ASSERT(spans, "'", wanted.name, "' holds no texts");
  const std::span bytes = outputs[port].span();
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<std::string_view> out;
  for (const int64_t span : outputs[*spans].values<int64_t>()) {
    const auto begin = static_cast<size_t>(span / kSpan), size = static_cast<size_t>(span % kSpan);
    if (span < 0 || begin > all.size() || size > all.size() - begin) {
      throw InvalidModel(text("the model gives a text of '", wanted.name, "' at ", begin, " to ", begin + size, " of ",
                              all.size(), " bytes."));
    }
    out.push_back(all.substr(begin, size));
  }
  return out;
}

std::string Asked::raw_texts(std::span<const Tensor> outputs) const {
  std::string out;
  for (const std::string_view words : texts(outputs)) {
    const auto size = static_cast<uint32_t>(words.size());
    out.append(reinterpret_cast<const char*>(&size), sizeof size);
    out += words;
  }
  return out;
}

Bound bind(const Inference& inference, const Signature& signature) {
  const auto name_of = [](const auto& each) -> const std::string& { return each.name; };
  for (auto at = inference.inputs.begin(); at != inference.inputs.end(); ++at) {
    // The first that no port bears ends the search, so that many inputs cost no more than there are ports.
    if (std::ranges::find(signature.inputs, at->name, name_of) == signature.inputs.end()) break;
    if (std::ranges::find(inference.inputs.begin(), at, at->name, name_of) != at)
      throw InvalidModel(text("the input '", short_name(at->name), "' is there twice."));
  }
  Bound out;
  size_t ports = 0;
  for (const Signature::Port& port : signature.inputs) ports += port.spans ? 2 : 1;
  out.inputs.resize(ports);
  for (const Signature::Port& port : signature.inputs) {
    const auto found = std::ranges::find(inference.inputs, port.name, name_of);
    if (found == inference.inputs.end())
      throw InvalidModel(text("the input '", port.name, "' of '", signature.network, "' is missing."));
    if (found->dtype != port.dtype)
      throw InvalidModel(text("input '", port.name, "' must be ", port.dtype ? kserve_name(*port.dtype) : kTexts,
                              "; got ", found->datatype(), "."));
    HETNN_ASSERT(!found->shared, "shared memory is read before");
    out.inputs[port.port] = found->tensor;
    if (port.spans) out.inputs[*port.spans] = found->spans;
  }
  for (const Given& each : inference.inputs) {
    if (std::ranges::find(signature.inputs, each.name, name_of) == signature.inputs.end())
      throw InvalidModel(text("'", signature.network, "' has no input '", short_name(each.name), "'; it takes ",
                              listed(signature.inputs, name_of), "."));
  }
  if (!out.inputs.empty() && out.inputs.front().rank() > 0) out.rows = out.inputs.front().shape()[0];
  const auto ask = [&](const Signature::Port& port, Wanted wanted) {
    out.outputs.push_back({port.port, port.spans, std::move(wanted)});
  };
  if (inference.outputs.empty()) {
    for (const Signature::Port& port : signature.outputs) ask(port, Wanted{port.name, inference.binary, {}});
  }
  for (const Wanted& each : inference.outputs) {
    const auto port = std::ranges::find(signature.outputs, each.name, name_of);
    if (port == signature.outputs.end())
      throw InvalidModel(text("'", signature.network, "' has no output '", short_name(each.name), "'; it gives ",
                              listed(signature.outputs, name_of), "."));
    if (std::ranges::find(out.outputs, port->port, &Asked::port) != out.outputs.end())
      throw InvalidModel(text("the output '", each.name, "' is asked for twice."));
    ask(*port, each);
  }
  return out;
}

}  // namespace hetnn::serve
