// Images in files: mapped to read, renamed into place when written.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "hetnn/base/error.h"
#include "hetnn/program/pack.h"

namespace hetnn::program {
namespace {

struct Descriptor {
  int fd;
  explicit Descriptor(int opened) : fd(opened) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

}  // namespace

Blob map_file(const std::string& path) {
  // Without waiting for someone to write into a pipe.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0)
    throw InvalidModel(text("'", path, "' cannot be opened: ", std::strerror(errno), ". Check the path."));
  struct stat status {};
  if (::fstat(file.fd, &status) != 0 || !S_ISREG(status.st_mode))
    throw InvalidModel(text("'", path, "' is no file. Check the path."));
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) throw InvalidModel(text("'", path, "' is empty and is no hetnn executable. Write it again."));
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (mapped == MAP_FAILED) throw InvalidModel(text("'", path, "' cannot be mapped: ", std::strerror(errno), "."));
  std::shared_ptr<const void> owner(mapped, [size](const void* at) { ::munmap(const_cast<void*>(at), size); });
  return {owner, {static_cast<const std::byte*>(mapped), size}};
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  // Not mkstemp: a file opened in the usual way gets the rights that the user's mask gives.
  static std::atomic<uint32_t> count = 0;
  const std::string beside = text(path, ".", ::getpid(), "-", count++);
  const Descriptor file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  auto fail = [&](const char* what) {
    const int reason = errno;
    if (file.fd >= 0) ::unlink(beside.c_str());
    const std::string said =
        text("'", path, "' cannot be ", what, ": ", std::strerror(reason), ". Check the folder and the space left.");
    if (reason == ENOSPC || reason == EDQUOT || reason == EFBIG) throw DoesNotFit(said);
    throw InvalidModel(said);
  };
  if (file.fd < 0) fail("created");
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = ::write(file.fd, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote == 0) errno = ENOSPC;
    if (wrote <= 0) fail("written");
    done += static_cast<size_t>(wrote);
  }
  if (::fsync(file.fd) != 0) fail("written");
  if (::rename(beside.c_str(), path.c_str()) != 0) fail("renamed into place");
}

}  // namespace hetnn::program
