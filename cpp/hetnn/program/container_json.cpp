// The safetensors container: an 8-byte length, a JSON header, the weights, the code.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <set>

#include "hetnn/base/json_fields.h"
#include "hetnn/base/parallel.h"
#include "hetnn/program/blobs.h"
#include "hetnn/program/describe.h"
#include "hetnn/program/hash.h"
#include "hetnn/program/pack.h"
#include "hetnn/program/validate.h"

namespace hetnn::program {
namespace {

using json::Fields;
using json::Json;

// Those that are read; a file states the first that has all that it holds, but for the oldest.
constexpr std::string_view kFormats[] = {"hetnn/4", "hetnn/5", "hetnn/3"};
constexpr std::string_view kFormat = kFormats[0];
constexpr std::string_view kFormatWithGraph = kFormats[1];
constexpr size_t kLengthBytes = 8;
static_assert(std::endian::native == std::endian::little, "images are little-endian");

// Texts of the header, as safetensors has them.
struct Metadata {
  std::string format, hetnn_version, program, report, target, weights_begin, weights_sum, weights_hash, code_hash,
      metadata_hash;
  std::optional<std::string> graph;
};

const Fields<Metadata>& metadata_fields() {
  static const Fields<Metadata> fields = {
      {"format", &Metadata::format, json::any_text(), "the format and its version"},
      {"hetnn_version", &Metadata::hetnn_version, json::any_text(), "the release that wrote it"},
      {"program", &Metadata::program, json::any_text(), "the structure of the program, as JSON"},
      {"report", &Metadata::report, json::any_text(), "the report made when compiling, as JSON"},
      {"target", &Metadata::target, json::any_text(), "the target, as JSON"},
      {"graph", &Metadata::graph, json::maybe(json::any_text()), "the planned graph, where it was asked for",
       json::Presence::nullable},
      {"weights_begin", &Metadata::weights_begin, json::any_text(), "bytes of weights that stand elsewhere"},
      {"weights_sum", &Metadata::weights_sum, json::any_text(), "a fast sum of the weights"},
      {"weights_hash", &Metadata::weights_hash, json::any_text(), "SHA-256 of the weights"},
      {"code_hash", &Metadata::code_hash, json::any_text(), "SHA-256 of the code"},
      {"metadata_hash", &Metadata::metadata_hash, json::any_text(), "SHA-256 of all of these texts before it"}};
  return fields;
}

struct Bytes {
  std::string dtype = "U8";
  std::vector<int64_t> shape, data_offsets;

  Bytes() = default;
  Bytes(int64_t begin, int64_t size) : shape{size}, data_offsets{begin, begin + size} {}
};

const Fields<Bytes>& bytes_fields() {
  static const json::Convert<std::vector<int64_t>> sizes = json::list_of(json::integer(0, int64_t{1} << 60));
  static const Fields<Bytes> fields = {{"dtype", &Bytes::dtype, json::any_text(), "the element type"},
                                       {"shape", &Bytes::shape, sizes, "the number of bytes"},
                                       {"data_offsets", &Bytes::data_offsets, sizes, "where they begin and end"}};
  return fields;
}

struct Header {
  Metadata metadata;
  Bytes weights, code;
};

const Fields<Header>& header_fields() {
  static const Fields<Header> fields = {
      {"__metadata__", &Header::metadata, json::object(metadata_fields), "the program"},
      {"weights", &Header::weights, json::object(bytes_fields), "constants and what else is large"},
      {"code", &Header::code, json::object(bytes_fields), "the subprograms' code"}};
  return fields;
}

// Over all texts of the metadata, each with its length so that none can flow into the next.
std::string metadata_hash(const Metadata& metadata) {
  std::string all;
  for (const json::Row& row : metadata_fields().rows()) {
    if (row.name == "metadata_hash") continue;
    const Json written = row.write(&metadata);
    if (written.is_null()) continue;
    const auto& value = written.get_ref<const std::string&>();
    all += text(row.name, ":", value.size(), ":") + value;
  }
  return content_hash(std::as_bytes(std::span(all)));
}

// The only header there is for this metadata: the data begins at a multiple of the alignment.
std::string header_text(const Metadata& metadata, int64_t weights_bytes, int64_t code_bytes) {
  std::string out = json::to_text(header_fields().write({metadata, {0, weights_bytes}, {weights_bytes, code_bytes}}));
  while ((kLengthBytes + out.size()) % kAlignment != 0) out += ' ';
  return out;
}

// The image of what has these texts, these blobs of weights, and the code; its hashes are made here.
Image assemble(Metadata metadata, std::vector<Blob> blobs, std::span<const std::byte> code) {
  int64_t weights_bytes = 0;
  for (const Blob& blob : blobs) weights_bytes = aligned(weights_bytes) + std::ssize(blob.bytes);
  const int64_t code_bytes = std::ssize(code);
  metadata.format = metadata.graph ? kFormatWithGraph : kFormat;
  // Hashes are all of one length, so that these tell where the data will stand.
  metadata.weights_sum = quick_sum({});
  metadata.weights_hash = metadata.metadata_hash = content_hash(std::span<const std::byte>());
  metadata.code_hash = content_hash(code);
  const uint64_t length = header_text(metadata, weights_bytes, code_bytes).size();
  Image out(kLengthBytes + length + static_cast<size_t>(weights_bytes + code_bytes));
  std::byte* const data = out.data() + kLengthBytes + length;
  const std::span<const std::byte> weights(data, static_cast<size_t>(weights_bytes));
  std::atomic<int64_t> copied = 0;
  // SHA-256 takes as long as all else together.
  parallel_region_up_to(2, [&](int thread, const SpinBarrier& barrier) {
    if (thread == 0) copy_in_a_row(std::move(blobs), data, copied);
    if (thread == barrier.threads() - 1) metadata.weights_hash = hash_behind(weights, copied);
    if (thread == 0) metadata.weights_sum = quick_sum(weights);
  });
  std::ranges::copy(code, data + weights_bytes);
  metadata.metadata_hash = metadata_hash(metadata);
  std::memcpy(out.data(), &length, kLengthBytes);
  std::memcpy(out.data() + kLengthBytes, header_text(metadata, weights_bytes, code_bytes).data(), length);
  return out;
}

// An image taken apart. What steers is a copy, since another process may write a file that is mapped.
struct Parts {
  Metadata metadata;
  std::span<const std::byte> weights;
  std::vector<std::byte> code;
};

Parts parts_of(std::span<const std::byte> bytes, const std::string& called) {
  if (bytes.size() < kLengthBytes + 2) {
    throw InvalidModel(text(called, " has ", bytes.size(),
                            " bytes and is no hetnn executable. Write one with `hetnn compile` or Executable.save."));
  }
  if (bytes[kLengthBytes] != std::byte{'{'}) {
    throw InvalidModel(text(called,
                            " is no hetnn executable: none begins like this. Models are compiled first, with "
                            "`hetnn compile` or hetnn.compile; executables are written by it and by Executable.save."));
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > bytes.size() - kLengthBytes) {
    throw InvalidModel(text(called, " is no hetnn executable, or is cut short: its header should take ", length,
                            " bytes; ", bytes.size() - kLengthBytes,
                            " follow. Write it again with `hetnn compile` or Executable.save."));
  }
  const std::string header_bytes(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  const Json document = json::parse(header_bytes, kHeaderJson, called);
  // Of another version, other keys may stand there.
  const Json::json_pointer format("/__metadata__/format");
  if (document.contains(format) && std::ranges::find(kFormats, document[format]) == std::end(kFormats)) {
    std::string read;
    for (const std::string_view each : kFormats) read += text(read.empty() ? "" : ", ", '"', each, '"');
    throw InvalidModel(text(called, " is of format ", json::to_text(document[format]), "; this version of hetnn reads ",
                            read, ". Compile the model again."));
  }
  const Header header = header_fields().value({document, kHeaderJson, called});
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + length);
  const int64_t weights_bytes = header.weights.shape.empty() ? 0 : header.weights.shape[0],
                code_bytes = header.code.shape.empty() ? 0 : header.code.shape[0];
  if (weights_bytes + code_bytes != static_cast<int64_t>(data.size())) {
    throw InvalidModel(text(called, ": weights and code should take ", weights_bytes, " + ", code_bytes, " bytes; ",
                            data.size(), " follow the header. The file is cut short or was altered."));
  }
  const auto weights = data.first(static_cast<size_t>(weights_bytes)), code = data.subspan(weights.size());
  if (header.metadata.graph.has_value() != (header.metadata.format == kFormatWithGraph) ||
      header_bytes != header_text(header.metadata, weights_bytes, code_bytes)) {
    throw InvalidModel(text(called, ": its header holds keys, values or padding besides those of a hetnn executable, ",
                            "so the file was altered or damaged. Write it again."));
  }
  return {header.metadata, weights, {code.begin(), code.end()}};
}

void check_hash(const std::string& stated, const std::string& found, std::string_view name, const std::string& called) {
  if (stated == found) return;
  throw InvalidModel(text(called, ": ", name, " does not fit ", name == "metadata_hash" ? "its metadata" : "its bytes",
                          ", so the file was altered or damaged. Write it again."));
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Calls `each` with the subprograms' objects that say of code, in the order of that code: those of bodies come last.
void for_codes(Json& structure, const std::function<void(Json&)>& each) {
  if (!structure.is_object() || !structure.contains("subprograms") || !structure["subprograms"].is_array()) return;
  for (Json& subprogram : structure["subprograms"]) {
    if (!subprogram.is_object()) continue;
    each(subprogram);
    if (const auto at = subprogram.find("fallback"); at != subprogram.end() && at->is_object()) each(*at);
  }
  if (!structure.contains("bodies") || !structure["bodies"].is_array()) return;
  for (Json& body : structure["bodies"]) for_codes(body, each);
}

// Code as part of the structure, and back; false where the structure says no such thing.
void inline_code(Json& subprogram, std::span<const std::byte> code, const std::string& called) {
  subprogram.erase("code_bytes");
  try {
    Json value = json::parse(text_of(code), kCpuCodeJson, called);
    if (json::to_text(value) == text_of(code)) {
      subprogram["code"] = std::move(value);
      return;
    }
  } catch (const InvalidModel&) {
  }
  std::string hex;
  for (const std::byte each : code) {
    for (const int half : {std::to_integer<int>(each) >> 4, std::to_integer<int>(each) & 15})
      hex += "0123456789abcdef"[half];
  }
  subprogram["code_hex"] = std::move(hex);
}

std::string extract_code(Json& subprogram) {
  std::string out;
  if (const auto code = subprogram.find("code"); code != subprogram.end()) {
    out = json::to_text(*code);
    subprogram.erase("code");
  } else if (const auto hex = subprogram.find("code_hex"); hex != subprogram.end() && hex->is_string()) {
    const auto& digits = hex->get_ref<const std::string&>();
    for (size_t k = 0; k + 1 < digits.size(); k += 2)
      out += static_cast<char>(std::strtol(digits.substr(k, 2).c_str(), nullptr, 16));
    subprogram.erase("code_hex");
  } else {
    return out;
  }
  subprogram["code_bytes"] = out.size();
  return out;
}

}  // namespace

Pieces take_apart(std::span<const std::byte> image, const std::string& called) {
  const Parts parts = parts_of(image, called);
  Json structure = json::parse(parts.metadata.program, kProgramJson, called);
  std::span<const std::byte> left = parts.code;
  for_codes(structure, [&](Json& object) {
    if (!object.contains("code_bytes")) return;
    const Json& bytes = object["code_bytes"];
    if (!bytes.is_number_unsigned() || bytes.get<uint64_t>() > left.size()) return;
    const auto own = left.first(bytes.get<uint64_t>());
    left = left.subspan(own.size());
    inline_code(object, own, called);
  });
  if (!left.empty()) {
    throw InvalidModel(text(called, ": its subprograms take ", parts.code.size() - left.size(),
                            " bytes of code; there are ", parts.code.size(), ". The file is damaged."));
  }
  return {structure.dump(1, ' ', false, Json::error_handler_t::replace) + "\n",
          parts.metadata.report,
          parts.metadata.target,
          {parts.weights.begin(), parts.weights.end()},
          parts.metadata.graph};
}

Image put_together(const Pieces& pieces, const std::string& hetnn_version) {
  std::string program = pieces.program, code;
  try {
    Json structure = json::parse(program, kPiecesJson, "the program");
    for_codes(structure, [&](Json& object) { code += extract_code(object); });
    program = json::to_text(structure);
  } catch (const InvalidModel&) {
    // Whatever it is, it is written as it is.
  }
  return assemble({.format = {},
                   .hetnn_version = hetnn_version,
                   .program = program,
                   .report = pieces.report,
                   .target = pieces.target,
                   .weights_begin = "0",
                   .weights_sum = {},
                   .weights_hash = {},
                   .code_hash = {},
                   .metadata_hash = {},
                   .graph = pieces.graph},
                  {{nullptr, pieces.weights}}, std::as_bytes(std::span(code)));
}

namespace {

// `rows` says of all blobs that the program needs, those in the image are `held`.
Image image_of(const Program& program, int64_t begin_bytes, const std::vector<BlobRow>& rows, std::vector<Blob> held) {
  std::vector<std::byte> all_code;
  const auto add_code = [&](const Program& of) {
    for (const Subprogram& s : of.subprograms) {
      all_code.insert(all_code.end(), s.code.bytes.begin(), s.code.bytes.end());
      if (s.fallback) all_code.insert(all_code.end(), s.fallback->bytes.begin(), s.fallback->bytes.end());
    }
  };
  add_code(program);
  for (const Program& body : program.bodies) add_code(body);
  return assemble({.format = {},
                   .hetnn_version = program.hetnn_version,
                   .program = structure_json(program, rows),
                   .report = program.report_json.read(),
                   .target = program.target_json,
                   .weights_begin = std::to_string(begin_bytes),
                   .weights_sum = {},
                   .weights_hash = {},
                   .code_hash = {},
                   .metadata_hash = {},
                   .graph = program.graph_text ? std::optional(program.graph_text->read()) : std::nullopt},
                  std::move(held), all_code);
}

// A text of an image that is read there anew: what was loaded has the image's memory, also for its weights.
TextAside left_in(const Blob& image, const std::string& called, const Metadata& loaded, std::string (*of)(Metadata&)) {
  return TextAside([image, called, hash = loaded.metadata_hash, of] {
    Metadata now = std::move(parts_of(image.bytes, called).metadata);
    check_hash(hash, metadata_hash(now), "metadata_hash", called);
    return of(now);
  });
}

Program unpack_beside(const Blob& image, const std::string& called, const Weights& before, const Beside& beside) {
  Parts parts = parts_of(image.bytes, called);
  const Metadata& metadata = parts.metadata;
  check_hash(metadata.metadata_hash, metadata_hash(metadata), "metadata_hash", called);
  check_hash(metadata.code_hash, content_hash(parts.code), "code_hash", called);
  check_hash(metadata.weights_sum, quick_sum(parts.weights), "weights_sum", called);
  const std::string expected = std::to_string(aligned(before.size_bytes()));
  if (metadata.weights_begin != expected) {
    throw InvalidModel(text(called, ": its weights begin at byte \"", metadata.weights_begin, "\"; those of ",
                            expected == "0" ? "a whole executable" : "an addition to this executable", " begin at ",
                            expected, ". Compile the model again."));
  }
  std::vector<BlobRow> rows;
  Program out = parse_structure(metadata.program, parts.code, called, &rows);
  out.weights = before;
  append_blobs(out.weights, rows, {image.owner, parts.weights}, beside, called);
  out.report_json = left_in(image, called, metadata, [](Metadata& of) { return std::move(of.report); });
  out.target_json = metadata.target;
  if (metadata.graph)
    out.graph_text = left_in(image, called, metadata, [](Metadata& of) { return *std::move(of.graph); });
  out.hetnn_version = metadata.hetnn_version;
  for (Program& body : out.bodies) body.weights = out.weights;
  validate(out, called);
  check_report(metadata.report, called);
  check_target(out.target_json, called);
  check_signature(out, called);
  return out;
}

}  // namespace

Image pack(Program program, int64_t weights_begin_bytes) {
  const int64_t begin = aligned(weights_begin_bytes);
  std::vector<Blob> blobs = program.weights.blobs_from(begin);
  program.weights = {};
  for (Program& body : program.bodies) body.weights = {};
  std::vector<BlobRow> rows;
  if (blobs.size() > 1) {
    for (const Blob& blob : blobs) rows.push_back({.bytes = std::ssize(blob.bytes), .hash = {}, .sum = {}});
  }
  return image_of(program, begin, rows, std::move(blobs));
}

Split split(const Program& program) {
  Split out;
  std::vector<BlobRow> rows;
  std::vector<Blob> held;
  std::set<std::string> known;
  for (const Blob& blob : program.weights.blobs_from(0)) {
    BlobRow& row = rows.emplace_back();
    row.bytes = std::ssize(blob.bytes);
    if (blob.bytes.size() < kPart_bytes) {
      held.push_back(blob);
      continue;
    }
    row.hash = content_hash(blob.bytes);
    row.sum = quick_sum(blob.bytes);
    if (known.insert(row.hash).second) out.parts.push_back({row.hash, blob.bytes});
  }
  if (rows.size() == 1 && held.size() == 1) rows.clear();
  out.image = image_of(program, 0, rows, std::move(held));
  return out;
}

Program unpack(const Blob& image, const std::string& called, const Weights& before) {
  return unpack_beside(image, called, before, {});
}

Program read_program(const std::string& path, const std::string& called, bool copy) {
  const Blob image = map_file(path);
  return unpack_beside(copy ? copied(image) : image, called, {}, {folder_of(path), copy});
}

void verify_weights(const std::string& path, const std::string& called) {
  verify_weights(map_file(path), called, folder_of(path));
}

void verify_weights(const Blob& image, const std::string& called, const std::string& folder) {
  const Parts parts = parts_of(image.bytes, called);
  check_hash(parts.metadata.weights_hash, content_hash(parts.weights), "weights_hash", called);
  std::vector<BlobRow> rows;
  parse_structure(parts.metadata.program, parts.code, called, &rows);
  for (const BlobRow& row : rows) {
    if (!row.hash.empty()) verify_part(row, folder, called);
  }
}

}  // namespace hetnn::program
