// The safetensors container: an 8-byte length, a JSON header, the weights.
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "hetnn/base/error.h"
#include "hetnn/program/hash.h"
#include "hetnn/program/pack.h"

namespace hetnn::program {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "hetnn/1";
constexpr size_t kLengthBytes = 8;
static_assert(std::endian::native == std::endian::little, "images are little-endian");

std::string hex(uint64_t value) {
  char out[17];
  std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(value));
  return out;
}

std::string hash_text(std::string_view source) {
  return hex(hash_bytes(std::as_bytes(std::span(source.data(), source.size()))));
}

constexpr const char* kTexts[] = {"format", "hetnn_version", "program", "report", "target", "weights_hash"};

// One hash over all texts of the metadata, each with its length so that none can flow into the next.
std::string metadata_hash(const Json& metadata) {
  std::string all;
  for (const char* key : kTexts) {
    const auto& value = metadata.at(key).get_ref<const std::string&>();
    all += text(key, ":", value.size(), ":") + value;
  }
  return hash_text(all);
}

// The only header there is for this metadata: the data begins at a multiple of the alignment.
std::string header_of(const Json& metadata, uint64_t weight_bytes) {
  const Json json = {{"__metadata__", metadata},
                     {"weights", {{"dtype", "U8"}, {"shape", {weight_bytes}}, {"data_offsets", {0, weight_bytes}}}}};
  std::string header = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  while ((kLengthBytes + header.size()) % kAlignment != 0) header += ' ';
  return header;
}

}  // namespace

std::vector<std::byte> pack(const Program& program) {
  Json metadata = {{"format", kFormat},
                   {"hetnn_version", program.hetnn_version},
                   {"program", structure_json(program)},
                   {"report", program.report_json},
                   {"target", program.target_json},
                   {"weights_hash", hex(hash_bytes(program.weights.bytes))}};
  metadata["metadata_hash"] = metadata_hash(metadata);
  const size_t weight_bytes = program.weights.bytes.size();
  const std::string header = header_of(metadata, weight_bytes);
  const uint64_t length = header.size();
  std::vector<std::byte> out(kLengthBytes + header.size() + weight_bytes);
  std::memcpy(out.data(), &length, kLengthBytes);
  std::memcpy(out.data() + kLengthBytes, header.data(), header.size());
  if (weight_bytes > 0)
    std::memcpy(out.data() + kLengthBytes + header.size(), program.weights.bytes.data(), weight_bytes);
  return out;
}

Program unpack(const Blob& image, const std::string& called) {
  const std::span<const std::byte> bytes = image.bytes;
  if (bytes.size() < kLengthBytes + 2) {
    throw InvalidModel(text(called, " has ", bytes.size(),
                            " bytes and is no hetnn executable. Write one with `hetnn compile` or Executable.save."));
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > bytes.size() - kLengthBytes || bytes[kLengthBytes] != std::byte{'{'}) {
    throw InvalidModel(text(called, " is no hetnn executable, or is cut short: its header should take ", length,
                            " bytes; ", bytes.size() - kLengthBytes,
                            " follow. Write it again with `hetnn compile` or Executable.save."));
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  Json metadata;
  uint64_t begin = 0, end = 0;
  try {
    const Json parsed = Json::parse(header);
    metadata = parsed.at("__metadata__");
    const Json& weights = parsed.at("weights");
    begin = weights.at("data_offsets").at(0).get<uint64_t>();
    end = weights.at("data_offsets").at(1).get<uint64_t>();
    if (metadata.at("format") != kFormat) {
      throw InvalidModel(text(called, " is of format ", metadata.at("format").dump(),
                              "; this version of hetnn reads \"", kFormat, "\". Compile the model again."));
    }
    if (metadata.at("metadata_hash") != metadata_hash(metadata)) {
      throw InvalidModel(text(
          called, ": metadata_hash does not fit its metadata, so the file was altered or damaged. Write it again."));
    }
  } catch (const Json::exception& error) {
    throw InvalidModel(text(called, ": its header is not that of a hetnn executable: ", error.what(),
                            ". Write it with `hetnn compile` or Executable.save."));
  }
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + length);
  if (begin != 0 || end != data.size()) {
    throw InvalidModel(text(called, ": weights should take ", end, " bytes; ", data.size(),
                            " follow the header. The file is cut short or was altered."));
  }
  if (header != header_of(metadata, end)) {
    throw InvalidModel(text(called, ": its header holds keys, values or padding besides those of a hetnn executable, ",
                            "so the file was altered or damaged. Write it again."));
  }
  if (metadata["weights_hash"] != hex(hash_bytes(data))) {
    throw InvalidModel(
        text(called, ": weights_hash does not fit the weights, so the file was altered or damaged. Write it again."));
  }
  Program out = parse_structure(metadata["program"].get_ref<const std::string&>(), called);
  out.weights = {image.owner, data};
  out.report_json = metadata["report"].get<std::string>();
  out.target_json = metadata["target"].get<std::string>();
  out.hetnn_version = metadata["hetnn_version"].get<std::string>();
  validate(out, called);
  return out;
}

}  // namespace hetnn::program
