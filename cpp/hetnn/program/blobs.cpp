// The blobs of a program's weights between an image and its parts.
#include "hetnn/program/blobs.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "hetnn/base/error.h"
#include "hetnn/base/free_memory.h"
#include "hetnn/program/hash.h"
#include "hetnn/program/pack.h"

namespace hetnn::program {
namespace {

// What is freed is given back to the system whenever it comes to so much: calls take milliseconds.
constexpr size_t kGivenBack_bytes = size_t{16} << 20;

// A part of the right size, mapped.
Blob part_of(const BlobRow& row, const std::string& folder, const std::string& called) {
  if (folder.empty()) {
    throw InvalidModel(text(called, ": its weights '", row.hash,
                            "' stand in a file of their own, which is sought "
                            "beside the executable's. Load it by the path of its file."));
  }
  const std::string path = part_path(folder, row.hash);
  const auto wrong = [&](const auto& what) {
    throw InvalidModel(text(called, ": its weights in '", path, "' ", what, ". Put back a copy, or add it again."));
  };
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) wrong("are gone");
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (error || bytes != row.bytes) wrong(text("should take ", row.bytes, " bytes; they have ", bytes));
  return map_file(path);
}

[[noreturn]] void refuse_part(const BlobRow& row, const std::string& folder, const std::string& called) {
  throw InvalidModel(text(called, ": its weights in '", part_path(folder, row.hash),
                          "' were altered or damaged. Put back a copy, or add it again."));
}

}  // namespace

void copy_in_a_row(std::vector<Blob> blobs, std::byte* to, std::atomic<int64_t>& copied) {
  int64_t at = 0;
  size_t freed_bytes = 0;
  for (Blob& blob : blobs) {
    std::fill(to + at, to + aligned(at), std::byte{0});
    at = std::ranges::copy(blob.bytes, to + aligned(at)).out - to;
    copied = at;
    copied.notify_one();
    freed_bytes += blob.bytes.size();
    blob = {};
    if (freed_bytes < kGivenBack_bytes) continue;
    return_free_memory();
    freed_bytes = 0;
  }
}

std::string hash_behind(std::span<const std::byte> bytes, const std::atomic<int64_t>& copied) {
  ContentHash hash;
  for (int64_t hashed = 0; hashed < std::ssize(bytes);) {
    copied.wait(hashed);
    const int64_t there = copied;
    hash.add(bytes.subspan(static_cast<size_t>(hashed), static_cast<size_t>(there - hashed)));
    hashed = there;
  }
  return hash.digits();
}

std::string part_path(const std::string& folder, const std::string& hash) {
  return text(folder, "/", hash, ".weights");
}

std::string folder_of(const std::string& path) {
  const std::string out = std::filesystem::path(path).parent_path().string();
  return out.empty() ? "." : out;
}

Blob copied(const Blob& blob) {
  auto copy = std::make_shared<const Image>(blob.bytes.begin(), blob.bytes.end());
  return {copy, *copy};
}

void append_blobs(Weights& to, const std::vector<BlobRow>& rows, const Blob& here, const Beside& beside,
                  const std::string& called) {
  if (rows.empty()) {
    to.append(here);
    return;
  }
  size_t at = 0;
  for (size_t k = 0; k < rows.size(); ++k) {
    const BlobRow& row = rows[k];
    if (!row.hash.empty()) {
      const Blob part = part_of(row, beside.folder, called);
      const Blob kept = beside.copy ? copied(part) : part;
      if (quick_sum(kept.bytes) != row.sum) refuse_part(row, beside.folder, called);
      to.append(kept);
      continue;
    }
    const auto begin = static_cast<size_t>(aligned(static_cast<int64_t>(at))), bytes = static_cast<size_t>(row.bytes);
    if (begin > here.bytes.size() || bytes > here.bytes.size() - begin) {
      throw InvalidModel(text(called, ": blobs[", k, "] takes ", bytes, " bytes from byte ", begin,
                              " of the weights on, which have ", here.bytes.size(), ". The file is damaged."));
    }
    const auto between = here.bytes.subspan(at, begin - at);
    if (std::ranges::any_of(between, [](std::byte each) { return each != std::byte{0}; }))
      throw InvalidModel(text(called, ": there is something before blobs[", k, "]. The file is damaged."));
    to.append({here.owner, here.bytes.subspan(begin, bytes)});
    at = begin + bytes;
  }
  if (at != here.bytes.size()) {
    throw InvalidModel(text(called, ": its blobs take ", at, " bytes of weights; there are ", here.bytes.size(),
                            ". The file is damaged."));
  }
}

void verify_part(const BlobRow& row, const std::string& folder, const std::string& called) {
  if (content_hash(part_of(row, folder, called).bytes) != row.hash) refuse_part(row, folder, called);
}

}  // namespace hetnn::program
