// The safetensors container: an 8-byte length, a JSON header, the weights, the code.
#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "hetnn/base/error.h"
#include "hetnn/program/hash.h"
#include "hetnn/program/pack.h"
#include "hetnn/program/validate.h"

namespace hetnn::program {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "hetnn/2";
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

constexpr const char* kTexts[] = {"format", "hetnn_version", "program",      "report",
                                  "target", "weights_begin", "weights_hash", "code_hash"};

// One hash over all texts of the metadata, each with its length so that none can flow into the next.
std::string metadata_hash(const Json& metadata) {
  std::string all;
  for (const char* key : kTexts) {
    const auto& value = metadata.at(key).get_ref<const std::string&>();
    all += text(key, ":", value.size(), ":") + value;
  }
  return hash_text(all);
}

// Bytes of the two tensors: the weights, then the code.
struct Sizes {
  uint64_t weights = 0, code = 0;
};

// The only header there is for this metadata: the data begins at a multiple of the alignment.
std::string header_of(const Json& metadata, Sizes sizes) {
  const auto tensor = [](uint64_t begin, uint64_t bytes) {
    return Json{{"dtype", "U8"}, {"shape", {bytes}}, {"data_offsets", {begin, begin + bytes}}};
  };
  const Json json = {
      {"__metadata__", metadata}, {"weights", tensor(0, sizes.weights)}, {"code", tensor(sizes.weights, sizes.code)}};
  std::string header = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  while ((kLengthBytes + header.size()) % kAlignment != 0) header += ' ';
  return header;
}

}  // namespace

std::vector<std::byte> pack(const Program& program, int64_t weights_begin_bytes) {
  const int64_t begin = aligned(weights_begin_bytes);
  Sizes sizes{static_cast<uint64_t>(std::max<int64_t>(program.weights.size_bytes() - begin, 0)), 0};
  for (const Subprogram& s : program.subprograms) sizes.code += s.code.bytes.size();
  Json metadata = {{"format", kFormat},
                   {"hetnn_version", program.hetnn_version},
                   {"program", structure_json(program)},
                   {"report", program.report_json},
                   {"target", program.target_json},
                   {"weights_begin", std::to_string(begin)},
                   {"weights_hash", hex(0)},
                   {"code_hash", hex(0)},
                   {"metadata_hash", hex(0)}};
  // The data is hashed where it will stand, so the header is written twice: hashes are all of one length.
  const uint64_t length = header_of(metadata, sizes).size();
  std::vector<std::byte> out(kLengthBytes + length + sizes.weights + sizes.code);
  const std::span data = std::span(out).subspan(kLengthBytes + length);
  program.weights.copy_from(begin, data.data());
  std::byte* code = data.data() + sizes.weights;
  for (const Subprogram& s : program.subprograms) code = std::ranges::copy(s.code.bytes, code).out;
  metadata["weights_hash"] = hex(hash_bytes(data.first(sizes.weights)));
  metadata["code_hash"] = hex(hash_bytes(data.subspan(sizes.weights)));
  metadata["metadata_hash"] = metadata_hash(metadata);
  std::memcpy(out.data(), &length, kLengthBytes);
  std::memcpy(out.data() + kLengthBytes, header_of(metadata, sizes).data(), length);
  return out;
}

Program unpack(const Blob& image, const std::string& called, const Weights& before) {
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
  Sizes sizes;
  try {
    const Json parsed = Json::parse(header);
    metadata = parsed.at("__metadata__");
    sizes.weights = parsed.at("weights").at("shape").at(0).get<uint64_t>();
    sizes.code = parsed.at("code").at("shape").at(0).get<uint64_t>();
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
  if (sizes.weights > data.size() || sizes.code != data.size() - sizes.weights) {
    throw InvalidModel(text(called, ": weights and code should take ", sizes.weights, " + ", sizes.code, " bytes; ",
                            data.size(), " follow the header. The file is cut short or was altered."));
  }
  if (header != header_of(metadata, sizes)) {
    throw InvalidModel(text(called, ": its header holds keys, values or padding besides those of a hetnn executable, ",
                            "so the file was altered or damaged. Write it again."));
  }
  const auto weights = data.first(sizes.weights), code = data.subspan(sizes.weights);
  for (const auto& [key, hashed] : {std::pair("weights_hash", weights), std::pair("code_hash", code)}) {
    if (metadata[key] != hex(hash_bytes(hashed))) {
      throw InvalidModel(
          text(called, ": ", key, " does not fit its bytes, so the file was altered or damaged. Write it again."));
    }
  }
  const std::string expected = std::to_string(aligned(before.size_bytes()));
  if (metadata["weights_begin"] != expected) {
    throw InvalidModel(text(called, ": its weights begin at byte ", metadata["weights_begin"].dump(), "; those of ",
                            expected == "0" ? "a whole executable" : "an addition to this executable", " begin at ",
                            expected, ". Compile the model again."));
  }
  Program out = parse_structure(metadata["program"].get_ref<const std::string&>(), code, called);
  out.weights = before;
  out.weights.append({image.owner, weights});
  out.report_json = metadata["report"].get<std::string>();
  out.target_json = metadata["target"].get<std::string>();
  out.hetnn_version = metadata["hetnn_version"].get<std::string>();
  validate(out, called);
  return out;
}

}  // namespace hetnn::program
