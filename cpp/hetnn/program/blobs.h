// The blobs of a program's weights between an image and its parts, the files that several images may share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hetnn/program/weights.h"

namespace hetnn::program {

/// A blob of the weights as a structure tells of it. One that is no part stands in the image, behind those before it.
struct BlobRow {
  int64_t bytes = 0;
  std::string hash;  // of a part, else empty
  std::string sum;   // of a part: the fast one
};

/// Copies each blob to the next multiple of the alignment from `to` on, with zeros before it, and lets go of it then,
/// so that what nobody else has is gone. `copied` says meanwhile how many bytes stand there.
void copy_in_a_row(std::vector<Blob> blobs, std::byte* to, std::atomic<int64_t>& copied);
/// The hash of so many bytes, which are there as far as `copied` says.
std::string hash_behind(std::span<const std::byte> bytes, const std::atomic<int64_t>& copied);

/// Where parts are sought, and whether they are copied. No folder: the image must have none.
struct Beside {
  std::string folder;
  bool copy = false;
};
/// The folder of a file.
std::string folder_of(const std::string& path);
Blob copied(const Blob& blob);

/// All blobs behind one another, from the weights that stand in the image and from parts; no rows: what stands there is
/// one. InvalidModel naming `called` where the sizes do not add up, and the part that is missing or damaged.
void append_blobs(Weights& to, const std::vector<BlobRow>& rows, const Blob& here, const Beside& beside,
                  const std::string& called);
/// InvalidModel unless the part is there and has its hash.
void verify_part(const BlobRow& row, const std::string& folder, const std::string& called);

}  // namespace hetnn::program
