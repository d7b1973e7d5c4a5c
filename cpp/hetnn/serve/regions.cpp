// Shared memory of clients: opened once, checked at every use.
#include "hetnn/serve/regions.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <mutex>
#include <system_error>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/base/error.h"

namespace hetnn::serve {
namespace {

constexpr std::string_view kFolder = "/dev/shm/";
constexpr size_t kLongestKey = 254;

std::string called(std::string_view name) { return text("shared memory region '", short_name(name), "'"); }

std::string reason() { return std::generic_category().message(errno); }

[[noreturn]] void refuse_short(const Region& region) { throw InvalidModel(called(region.name) + " was cut short."); }

[[noreturn]] void refuse_unknown(std::string_view name) {
  throw InvalidModel(text("there is no ", called(name), ". Register it first."));
}

std::string path_of(const std::string& key) {
  const std::string name = key.substr(key.starts_with('/') ? 1 : 0);
  if (name.empty() || name.size() > kLongestKey || name.find_first_of(std::string_view("/\0", 2)) != name.npos ||
      name == "." || name == "..") {
    throw InvalidModel(
        text("the key of a shared memory region is a name as shm_open takes it; got '", short_name(key), "'."));
  }
  return std::string(kFolder) + name;
}

struct stat status_of(int descriptor, std::string_view name) {
  struct stat out = {};
  if (::fstat(descriptor, &out) != 0)
    throw InvalidModel(text(called(name), " is not to be looked at: ", reason(), "."));
  return out;
}

// Calls `move(done)` for what is left of so many bytes until all is done; it says how much it did, as pread does.
template <typename Move>
void move_all(const Region& region, size_t bytes, const Move& move) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t moved = move(done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) throw InvalidModel(text(called(region.name), " cannot be used: ", reason(), "."));
    if (moved == 0) refuse_short(region);
    done += static_cast<size_t>(moved);
  }
}

}  // namespace

struct Regions::Opened {
  Opened(Region of, int opened) : region(std::move(of)), descriptor(opened) {}
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() { ::close(descriptor); }

  off_t begin(const SharedSpan& place) const { return static_cast<off_t>(region.offset) + place.offset; }
  // Before memory is taken for what is not there, and so that a write makes no memory longer.
  void check_length(off_t end) const {
    if (status_of(descriptor, region.name).st_size < end) refuse_short(region);
  }

  const Region region;
  const int descriptor;
};

Regions::Regions() = default;
Regions::~Regions() = default;

void Regions::add(const Region& region) {
  const std::string path = path_of(region.key);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0)
    throw InvalidModel(text(called(region.name), ": cannot open '", region.key, "': ", reason(), "."));
  auto opened = std::make_unique<const Opened>(region, descriptor);
  const struct stat status = status_of(descriptor, region.name);
  const auto size = static_cast<uint64_t>(status.st_size);
  const std::lock_guard lock(mutex_);
  if (std::ranges::any_of(opened_, [&](const auto& other) { return other->region.name == region.name; }))
    throw InvalidModel(called(region.name) + " is registered already. Unregister it first.");
  if (!S_ISREG(status.st_mode) || region.bytes == 0 || region.offset > size || region.bytes > size - region.offset) {
    const uint64_t end = region.offset + std::min(region.bytes, std::numeric_limits<uint64_t>::max() - region.offset);
    throw InvalidModel(
        text(called(region.name), " has ", size, " bytes; [", region.offset, ", ", end, ") is not within them."));
  }
  opened_.push_back(std::move(opened));
}

void Regions::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::erase_if(opened_, [&](const auto& each) { return name.empty() || each->region.name == name; });
}

std::vector<Region> Regions::status(const std::string& name) const {
  const std::shared_lock lock(mutex_);
  std::vector<Region> out;
  for (const auto& each : opened_) {
    if (name.empty() || each->region.name == name) out.push_back(each->region);
  }
  if (out.empty() && !name.empty()) refuse_unknown(name);
  return out;
}

// Under the lock.
const Regions::Opened& Regions::at(const SharedSpan& place) const {
  const auto found = std::ranges::find_if(opened_, [&](const auto& each) { return each->region.name == place.region; });
  if (found == opened_.end()) refuse_unknown(place.region);
  const Region& region = (*found)->region;
  HETNN_ASSERT(place.offset >= 0 && place.bytes >= 0, "a place begins before its region");
  const auto offset = static_cast<uint64_t>(place.offset), bytes = static_cast<uint64_t>(place.bytes);
  if (offset > region.bytes || bytes > region.bytes - offset) {
    throw InvalidModel(text("[", offset, ", ", offset + bytes, ") is not within the ", region.bytes, " bytes of ",
                            called(region.name), "."));
  }
  return **found;
}

Bytes Regions::read(const SharedSpan& place) const {
  const std::shared_lock lock(mutex_);
  const Opened& opened = at(place);
  const off_t begin = opened.begin(place);
  const auto bytes = static_cast<size_t>(place.bytes);
  opened.check_length(begin + place.bytes);
  const auto out = std::make_shared<std::vector<std::byte, AlignedAllocator<std::byte>>>(bytes);
  move_all(opened.region, bytes, [&](size_t done) {
    return ::pread(opened.descriptor, out->data() + done, bytes - done, begin + static_cast<off_t>(done));
  });
  return {out, {out->data(), bytes}};
}

void Regions::write(const SharedSpan& place, std::span<const std::byte> values) const {
  const auto bytes = static_cast<int64_t>(values.size());
  if (bytes > place.bytes) {
    throw InvalidModel(
        text("an output takes ", bytes, " bytes; ", called(place.region), " has room for ", place.bytes, " there."));
  }
  const std::shared_lock lock(mutex_);
  const Opened& opened = at(place);
  const off_t begin = opened.begin(place);
  opened.check_length(begin + bytes);
  move_all(opened.region, values.size(), [&](size_t done) {
    return ::pwrite(opened.descriptor, values.data() + done, values.size() - done, begin + static_cast<off_t>(done));
  });
}

void Regions::read_inputs(Inference& request) const {
  for (size_t k = 0; k < request.inputs.size(); ++k) {
    if (const auto& place = request.inputs[k].shared) request.give(k, read(*place));
  }
}

void Regions::write_outputs(const Bound& bound, const std::vector<Tensor>& outputs) const {
  for (const Asked& each : bound.outputs) {
    if (!each.wanted.shared) continue;
    if (each.spans) {
      const std::string raw = each.raw_texts(outputs);
      write(*each.wanted.shared, std::as_bytes(std::span(raw)));
    } else {
      write(*each.wanted.shared, outputs[each.port].span());
    }
  }
}

}  // namespace hetnn::serve
