// Programs as bytes: one safetensors file whose metadata carries the program (docs/format.md).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/program/blobs.h"
#include "hetnn/program/program.h"

namespace hetnn::program {

/// An executable's bytes, where kernels can read weights without a copy. Made of a size alone, they have no values yet.
using Image = std::vector<std::byte, AlignedAllocator<std::byte>>;

/// The executable image of a program. With a beginning of its weights it is an addition to an executable that has the
/// bytes before: everything but those. Weights that are nobody else's are gone one by one as the image gets them.
Image pack(Program program, int64_t weights_begin_bytes = 0);

/// The program in an image; its weights stay in the image's memory, after those of `before` where it is an addition.
/// Checks sizes, bounds, ids and hashes; InvalidModel names the field that is wrong, what was found and what was
/// expected. `called` is how messages call the image, which must have no parts.
Program unpack(const Blob& image, const std::string& called = "the executable", const Weights& before = {});

/// An executable whose large blobs of weights stand in files of their own, which others may share: the image names
/// these parts by their hash. Parts that are equal are one.
struct Split {
  struct Part {
    std::string hash;                  // SHA-256
    std::span<const std::byte> bytes;  // the program's
  };
  Image image;
  std::vector<Part> parts;
};
/// Blobs from so many bytes on are parts: a smaller one would take a block of the disk all the same.
inline constexpr size_t kPart_bytes = 4096;
Split split(const Program& program);
/// Where a part stands that images in the folder name.
std::string part_path(const std::string& folder, const std::string& hash);

/// The program in a file, and in the parts beside it that it names. They are mapped, or copied. InvalidModel as of
/// `unpack`, and naming the part that is missing or damaged.
Program read_program(const std::string& path, const std::string& called, bool copy = false);

/// Reads all weights of a file and its parts and compares them with their SHA-256, for which loading has no time: it
/// takes a fast sum, which finds accidents alone. InvalidModel when they differ.
void verify_weights(const std::string& path, const std::string& called);
void verify_weights(const Blob& image, const std::string& called = "the executable", const std::string& folder = "");

/// An image taken apart into what people can look at and alter. `program` is the structure as JSON, with the code of
/// each subprogram as a value `code` where it is JSON, and else its bytes as a text `code_hex`.
struct Pieces {
  std::string program, report, target;
  std::vector<std::byte> weights;
  std::optional<std::string> graph = {};  // IR text, where it was kept
};

/// The pieces of an image whose hashes need not fit. InvalidModel when its header or structure cannot be read.
Pieces take_apart(std::span<const std::byte> image, const std::string& called);

/// The image of these pieces, with fitting hashes; nothing else is checked.
Image put_together(const Pieces& pieces, const std::string& hetnn_version);

/// A file mapped read-only. InvalidModel with the system's reason when it cannot be read or is empty.
Blob map_file(const std::string& path);

/// Writes to a file beside `path` and renames it, so that nothing half-written stays. Error with the system's reason.
void write_file(const std::string& path, std::span<const std::byte> bytes);

/// The program's structure as JSON text and back; weights, code, report and target stand elsewhere in the image. No
/// blobs: all that the image has is one.
std::string structure_json(const Program& program, const std::vector<BlobRow>& blobs = {});
/// Its JSON schema.
std::string structure_schema();
Program parse_structure(std::string_view json, std::span<const std::byte> code, const std::string& called,
                        std::vector<BlobRow>* blobs = nullptr);

}  // namespace hetnn::program
