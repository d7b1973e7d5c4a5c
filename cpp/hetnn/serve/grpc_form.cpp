// Reads and writes inferences in gRPC's messages: fields of tag and value, as protobuf lays them out.
#include "hetnn/serve/grpc_form.h"

#include <bit>
#include <cstring>

#include "hetnn/base/counted.h"
#include "hetnn/base/error.h"

namespace hetnn::serve {
namespace {

static_assert(std::endian::native == std::endian::little, "fixed numbers are read where they lie");

// Fields by their numbers in open_inference.proto.
enum class RequestField { model_name = 1, model_version, id, parameters, inputs, outputs, raw_input_contents };
enum class TensorField { name = 1, datatype, shape, parameters, contents };
enum class OutputField { name = 1, parameters };
enum class ResponseField { model_name = 1, model_version, id, outputs = 5, raw_output_contents };
enum class ParameterField { bool_param = 1, int64_param, string_param, double_param, uint64_param };
enum class ContentsField { of_bool = 1, of_int, of_int64, of_uint, of_uint64, of_fp32, of_fp64, of_bytes };
enum class EntryField { key = 1, value };

constexpr std::string_view kContents[] = {"",
                                          "bool_contents",
                                          "int_contents",
                                          "int64_contents",
                                          "uint_contents",
                                          "uint64_contents",
                                          "fp32_contents",
                                          "fp64_contents",
                                          "bytes_contents"};

// How a value is laid out, as its tag says.
enum class Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

[[noreturn]] void refuse(std::string_view why) {
  throw InvalidModel(text("the message is no ModelInferRequest: ", why, "."));
}

// Takes values off the front of a message.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> data) : data_(data) {}

  bool done() const { return data_.empty(); }

  uint64_t varint() {
    uint64_t out = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const auto each = static_cast<uint64_t>(take(1)[0]);
      if (shift < 64) out |= (each & 0x7F) << shift;
      if (each < 0x80) return out;
    }
    refuse("a number has more than ten bytes");
  }
  std::span<const std::byte> bytes() {
    const uint64_t size = varint();
    return take(size);
  }
  template <typename T>
  T fixed() {
    T out;
    std::memcpy(&out, take(sizeof out).data(), sizeof out);
    return out;
  }
  /// The number of the next field and how its value is laid out.
  std::pair<uint64_t, Wire> tag() {
    const uint64_t tag = varint();
    if (tag >> 3 == 0 || tag > UINT32_MAX) refuse("a field has no number");
    return {tag >> 3, static_cast<Wire>(tag & 7)};
  }
  void skip(Wire wire) {
    switch (wire) {
      case Wire::varint:
        varint();
        return;
      case Wire::fixed64:
        take(8);
        return;
      case Wire::bytes:
        bytes();
        return;
      case Wire::fixed32:
        take(4);
        return;
    }
    refuse("a field is laid out in a way that the protocol does not use");
  }

 private:
  std::span<const std::byte> take(uint64_t size) {
    if (size > data_.size()) refuse("its fields do not fill it");
    const auto out = data_.first(static_cast<size_t>(size));
    data_ = data_.subspan(static_cast<size_t>(size));
    return out;
  }

  std::span<const std::byte> data_;
};

// Calls `take` for each field with its number, how it is laid out, and the reader before its value; what `take` leaves
// (false) is skipped.
template <typename Field>
void each_field(std::span<const std::byte> message, Field&& take) {
  Reader reader(message);
  while (!reader.done()) {
    const auto [number, wire] = reader.tag();
    if (!take(number, wire, reader)) reader.skip(wire);
  }
}

std::string words(Reader& reader) {
  const auto found = reader.bytes();
  std::string out(reinterpret_cast<const char*>(found.data()), found.size());
  if (!is_utf8(out)) refuse("a text is not UTF-8");
  return out;
}

Parameter parameter_in(std::span<const std::byte> message) {
  Parameter out;
  each_field(message, [&](uint64_t number, Wire wire, Reader& reader) {
    switch (static_cast<ParameterField>(number)) {
      case ParameterField::bool_param:
        if (wire == Wire::varint) return out.value = reader.varint() != 0, true;
        break;
      case ParameterField::int64_param:
        if (wire == Wire::varint) return out.value = static_cast<int64_t>(reader.varint()), true;
        break;
      case ParameterField::string_param:
        if (wire == Wire::bytes) return out.value = words(reader), true;
        break;
      case ParameterField::double_param:
        if (wire == Wire::fixed64) return out.value = reader.fixed<double>(), true;
        break;
      case ParameterField::uint64_param:
        if (wire == Wire::varint) return out.value = reader.varint(), true;
        break;
    }
    return false;
  });
  return out;
}

void add_entry(std::span<const std::byte> message, Parameters& to) {
  std::pair<std::string, Parameter> entry;
  each_field(message, [&](uint64_t number, Wire wire, Reader& reader) {
    if (wire != Wire::bytes) return false;
    if (number == static_cast<uint64_t>(EntryField::key)) return entry.first = words(reader), true;
    if (number == static_cast<uint64_t>(EntryField::value)) return entry.second = parameter_in(reader.bytes()), true;
    return false;
  });
  to.push_back(std::move(entry));
}

// The numbers of a repeated field: all in one value, or each in one of its own.
template <typename Take>
bool each_number(Wire wire, Wire alone, Reader& reader, Take&& take) {
  if (wire == alone) return take(reader), true;
  if (wire != Wire::bytes) return false;
  Reader packed(reader.bytes());
  while (!packed.done()) take(packed);
  return true;
}

std::optional<ContentsField> contents_of(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return ContentsField::of_bool;
    case DType::i8:
    case DType::i16:
    case DType::i32:
      return ContentsField::of_int;
    case DType::i64:
      return ContentsField::of_int64;
    case DType::u8:
    case DType::u16:
    case DType::u32:
      return ContentsField::of_uint;
    case DType::u64:
      return ContentsField::of_uint64;
    case DType::f32:
      return ContentsField::of_fp32;
    case DType::f64:
      return ContentsField::of_fp64;
    default:
      return std::nullopt;
  }
}

void take_typed(Given& given, std::span<const std::byte> contents) {
  const auto field = given.dtype ? contents_of(*given.dtype) : ContentsField::of_bytes;
  if (!field)
    throw Unsupported(text(given.called(), ": ", kserve_name(*given.dtype),
                           " has no typed contents. Send it as raw_input_contents."));
  // No more memory than values are there for.
  if (static_cast<size_t>(given.elems) > contents.size())
    throw InvalidModel(
        text(given.called(), ": its shape takes ", counted(given.elems, "value"), "; its contents have fewer."));
  std::optional<WrittenValues> values;
  std::optional<WrittenTexts> texts;
  given.dtype ? void(values.emplace(given)) : void(texts.emplace(given));
  each_field(contents, [&](uint64_t number, Wire wire, Reader& reader) {
    if (number != static_cast<uint64_t>(*field)) {
      if (number == 0 || number >= std::size(kContents)) return false;
      throw InvalidModel(text(given.called(), ": ", given.datatype(), " comes as ",
                              kContents[static_cast<size_t>(*field)], "; got ", kContents[number], "."));
    }
    switch (*field) {
      case ContentsField::of_bool:
        return each_number(wire, Wire::varint, reader, [&](Reader& r) { values->add(r.varint() != 0); });
      case ContentsField::of_int:
        return each_number(wire, Wire::varint, reader,
                           [&](Reader& r) { values->add(int64_t{static_cast<int32_t>(r.varint())}); });
      case ContentsField::of_int64:
        return each_number(wire, Wire::varint, reader,
                           [&](Reader& r) { values->add(static_cast<int64_t>(r.varint())); });
      case ContentsField::of_uint:
        return each_number(wire, Wire::varint, reader,
                           [&](Reader& r) { values->add(uint64_t{static_cast<uint32_t>(r.varint())}); });
      case ContentsField::of_uint64:
        return each_number(wire, Wire::varint, reader, [&](Reader& r) { values->add(r.varint()); });
      case ContentsField::of_fp32:
        return each_number(wire, Wire::fixed32, reader, [&](Reader& r) { values->add(double{r.fixed<float>()}); });
      case ContentsField::of_fp64:
        return each_number(wire, Wire::fixed64, reader, [&](Reader& r) { values->add(r.fixed<double>()); });
      case ContentsField::of_bytes: {
        if (wire != Wire::bytes) return false;
        const auto each = reader.bytes();
        return texts->add({reinterpret_cast<const char*>(each.data()), each.size()}), true;
      }
    }
    return false;
  });
  if (texts) return texts->give(given);
  given.tensor = values->take();
}

// An input, and its typed contents where it has some.
std::pair<Given, std::optional<std::span<const std::byte>>> input_in(std::span<const std::byte> message) {
  std::string name, datatype;
  std::vector<int64_t> shape;
  Parameters parameters;
  std::optional<std::span<const std::byte>> contents;
  each_field(message, [&](uint64_t number, Wire wire, Reader& reader) {
    const auto field = static_cast<TensorField>(number);
    if (field == TensorField::shape) {
      return each_number(wire, Wire::varint, reader,
                         [&](Reader& r) { shape.push_back(static_cast<int64_t>(r.varint())); });
    }
    if (wire != Wire::bytes) return false;
    if (field == TensorField::name) return name = words(reader), true;
    if (field == TensorField::datatype) return datatype = words(reader), true;
    if (field == TensorField::parameters) return add_entry(reader.bytes(), parameters), true;
    if (field != TensorField::contents) return false;
    if (contents) refuse("an input has contents twice");
    return contents = reader.bytes(), true;
  });
  Given out = given(std::move(name), datatype, std::move(shape));
  out.shared = place_of(parameters, out.called());
  if (out.shared && contents)
    throw InvalidModel(text(out.called(), " has contents and a shared memory region; it must have one."));
  return {std::move(out), contents};
}

Wanted output_in(std::span<const std::byte> message) {
  std::string name;
  Parameters parameters;
  each_field(message, [&](uint64_t number, Wire wire, Reader& reader) {
    if (wire != Wire::bytes) return false;
    if (number == static_cast<uint64_t>(OutputField::name)) return name = words(reader), true;
    if (number == static_cast<uint64_t>(OutputField::parameters)) return add_entry(reader.bytes(), parameters), true;
    return false;
  });
  return wanted(std::move(name), parameters, true);
}

// Writing.

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

template <typename Field>
void put_size(std::string& out, Field field, size_t size) {
  put_varint(out, static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(Wire::bytes));
  put_varint(out, size);
}

template <typename Field>
void put(std::string& out, Field field, std::string_view value) {
  put_size(out, field, value.size());
  out += value;
}

template <typename Field>
void put(std::string& out, Field field, int64_t value) {
  put_varint(out, static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(Wire::varint));
  put_varint(out, static_cast<uint64_t>(value));
}

template <typename Value>
void put_parameter(std::string& out, std::string_view key, ParameterField field, const Value& value) {
  std::string parameter, entry;
  put(parameter, field, value);
  put(entry, EntryField::key, key);
  put(entry, EntryField::value, std::string_view(parameter));
  put(out, TensorField::parameters, std::string_view(entry));
}

}  // namespace

Inference read_grpc(const Bytes& message) {
  Inference out;
  out.binary = true;
  Parameters parameters;
  std::vector<std::optional<std::span<const std::byte>>> contents;
  std::vector<std::span<const std::byte>> raw;
  each_field(message.data, [&](uint64_t number, Wire wire, Reader& reader) {
    if (wire != Wire::bytes) return false;
    switch (static_cast<RequestField>(number)) {
      case RequestField::model_name:
        return out.model = words(reader), true;
      case RequestField::model_version:
        return out.version = words(reader), true;
      case RequestField::id:
        return out.id = words(reader), true;
      case RequestField::parameters:
        return add_entry(reader.bytes(), parameters), true;
      case RequestField::inputs: {
        auto [made, own] = input_in(reader.bytes());
        out.inputs.push_back(std::move(made));
        contents.push_back(own);
        return true;
      }
      case RequestField::outputs:
        return out.outputs.push_back(output_in(reader.bytes())), true;
      case RequestField::raw_input_contents:
        return raw.push_back(reader.bytes()), true;
    }
    return false;
  });
  take_parameters(parameters, out);
  out.binary = true;
  size_t next = 0;
  for (size_t k = 0; k < out.inputs.size(); ++k) {
    Given& given = out.inputs[k];
    if (!raw.empty() && contents[k])
      throw InvalidModel("inputs come as raw_input_contents or as typed contents, not as both.");
    if (given.shared) continue;
    if (raw.empty()) {
      take_typed(given, contents[k].value_or(std::span<const std::byte>()));
      continue;
    }
    if (next == raw.size()) throw InvalidModel(text("raw_input_contents has no bytes for ", given.called(), "."));
    take_raw(given, {message.owner, raw[next++]});
  }
  if (next != raw.size()) throw InvalidModel("raw_input_contents has more items than there are inputs that want one.");
  return out;
}

Written write_grpc(const Inference& inference, std::string_view version, const Bound& bound,
                   std::span<const Tensor> outputs) {
  Written out;
  std::string head;
  put(head, ResponseField::model_name, std::string_view(inference.model));
  put(head, ResponseField::model_version, version);
  if (!inference.id.empty()) put(head, ResponseField::id, std::string_view(inference.id));
  for (const Asked& each : bound.outputs) {
    const Wanted& wanted = each.wanted;
    std::string row, shape;
    put(row, TensorField::name, std::string_view(wanted.name));
    put(row, TensorField::datatype, each.datatype(outputs));
    for (const int64_t size : each.shape(outputs)) put_varint(shape, static_cast<uint64_t>(size));
    if (!shape.empty()) put(row, TensorField::shape, std::string_view(shape));
    if (wanted.shared) {
      put_parameter(row, kRegion, ParameterField::string_param, std::string_view(wanted.shared->region));
      put_parameter(row, kOffset, ParameterField::int64_param, wanted.shared->offset);
      put_parameter(row, kBytes, ParameterField::int64_param, wanted.shared->bytes);
    }
    put(head, ResponseField::outputs, std::string_view(row));
  }
  for (const Asked& each : bound.outputs) {
    if (each.spans) {
      put(head, ResponseField::raw_output_contents, each.wanted.shared ? "" : each.raw_texts(outputs));
      continue;
    }
    const Tensor& tensor = outputs[each.port];
    const size_t bytes = each.wanted.shared ? 0 : static_cast<size_t>(tensor.bytes());
    put_size(head, ResponseField::raw_output_contents, bytes);
    out.pieces.push_back({std::exchange(head, {}), {tensor.data(), bytes}});
  }
  if (!head.empty()) out.pieces.push_back({std::move(head), {}});
  return out;
}

}  // namespace hetnn::serve
