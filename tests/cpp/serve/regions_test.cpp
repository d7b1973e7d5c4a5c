// Regions of shared memory: what is refused, what is copied, and clients that cut theirs short or take it away.
#include "hetnn/serve/regions.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "expect_error.h"

namespace hetnn::serve {
namespace {

// A client's memory, of its own name.
class Memory {
 public:
  explicit Memory(const std::string& content, const std::string& name = "")
      : key_("/hetnn_regions_test_" + std::to_string(::getpid()) + name),
        descriptor_(::shm_open(key_.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600)) {
    EXPECT_GE(descriptor_, 0);
    EXPECT_EQ(::pwrite(descriptor_, content.data(), content.size(), 0), static_cast<ssize_t>(content.size()));
  }
  ~Memory() {
    ::close(descriptor_);
    ::shm_unlink(key_.c_str());
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  const std::string& key() const { return key_; }
  void resize(off_t bytes) const { EXPECT_EQ(::ftruncate(descriptor_, bytes), 0); }
  std::string content() const {
    struct stat status = {};
    EXPECT_EQ(::fstat(descriptor_, &status), 0);
    std::string out(static_cast<size_t>(status.st_size), '\0');
    EXPECT_EQ(::pread(descriptor_, out.data(), out.size(), 0), status.st_size);
    return out;
  }

 private:
  const std::string key_;
  const int descriptor_;
};

std::span<const std::byte> bytes_of(std::string_view content) { return std::as_bytes(std::span(content)); }

TEST(Regions, AreReadAndWrittenWhereAPlaceSays) {
  const Memory memory("0123456789");
  Regions regions;
  regions.add({"r", memory.key(), 2, 6});
  EXPECT_EQ(regions.read({"r", 1, 3}).text(), "345");
  EXPECT_EQ(regions.read({"r", 0, 6}).text(), "234567");
  EXPECT_EQ(regions.read({"r", 6, 0}).text(), "");
  regions.write({"r", 1, 4}, bytes_of("abc"));
  EXPECT_EQ(memory.content(), "012abc6789");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(regions.read({"r", 1, 3}).data.data()) % 64, 0u);
}

TEST(Regions, BoundsAreKept) {
  const Memory memory("0123456789");
  Regions regions;
  regions.add({"r", memory.key(), 2, 6});
  EXPECT_ERROR(regions.read({"r", 4, 3}), InvalidModel,
               "[4, 7) is not within the 6 bytes of shared memory region 'r'.");
  EXPECT_ERROR(regions.read({"r", 7, 0}), InvalidModel, "is not within the 6 bytes");
  EXPECT_ERROR(regions.read({"r", INT64_MAX, INT64_MAX}), InvalidModel, "is not within the 6 bytes");
  EXPECT_ERROR(regions.write({"r", 0, INT64_MAX}, bytes_of("a")), InvalidModel, "is not within the 6 bytes");
  EXPECT_ERROR(regions.write({"r", 0, 2}, bytes_of("abc")), InvalidModel,
               "an output takes 3 bytes; shared memory region 'r' has room for 2 there.");
  EXPECT_ERROR(regions.read({"s", 0, 1}), InvalidModel, "there is no shared memory region 's'. Register it first.");
  EXPECT_EQ(memory.content(), "0123456789");
}

TEST(Regions, WhatIsNotThereIsRefused) {
  const Memory memory("0123456789");
  Regions regions;
  regions.add({"r", memory.key(), 0, 10});
  EXPECT_ERROR(regions.add({"r", memory.key(), 0, 1}), InvalidModel, "'r' is registered already. Unregister it first.");
  EXPECT_ERROR(regions.add({"s", memory.key(), 5, 6}), InvalidModel, "has 10 bytes; [5, 11) is not within them.");
  EXPECT_ERROR(regions.add({"s", memory.key(), 0, 0}), InvalidModel, "[0, 0) is not within them");
  EXPECT_ERROR(regions.add({"s", memory.key(), UINT64_MAX, 2}), InvalidModel, "is not within them");
  EXPECT_ERROR(regions.add({"s", memory.key(), 2, UINT64_MAX}), InvalidModel, "is not within them");
  EXPECT_ERROR(regions.add({"s", "/hetnn_no_such_region", 0, 1}), InvalidModel,
               "shared memory region 's': cannot open '/hetnn_no_such_region': No such file or directory.");
  const std::string keys[] = {"", "/", "..", "/.", "a/b", "../x", std::string("a\0b", 3), std::string(255, 'a')};
  for (const std::string& key : keys)
    EXPECT_ERROR(regions.add({"s", key, 0, 1}), InvalidModel, "is a name as shm_open takes it; got '");
  EXPECT_EQ(regions.status("").size(), 1u);
}

TEST(Regions, ALinkIsNoRegion) {
  const Memory memory("0123456789");
  const std::string link = memory.key() + "_link", path = "/dev/shm" + link;
  ASSERT_EQ(::symlink(("/dev/shm" + memory.key()).c_str(), path.c_str()), 0);
  EXPECT_ERROR(Regions().add({"r", link, 0, 1}), InvalidModel, "cannot open");
  ::unlink(path.c_str());
}

TEST(Regions, AreListedAndForgottenByName) {
  const Memory memory("0123456789");
  Regions regions;
  const Region b{"b", memory.key(), 0, 4}, a{"a", memory.key(), 4, 2};
  regions.add(b);
  regions.add(a);
  EXPECT_EQ(regions.status(""), (std::vector{b, a}));
  EXPECT_EQ(regions.status("a"), std::vector{a});
  regions.remove("c");
  regions.remove("b");
  EXPECT_EQ(regions.status(""), std::vector{a});
  EXPECT_ERROR(regions.status("b"), InvalidModel, "there is no shared memory region 'b'. Register it first.");
  regions.remove("");
  EXPECT_TRUE(regions.status("").empty());
}

TEST(Regions, OneThatWasCutShortIsAnErrorAndNotMadeLonger) {
  const Memory memory(std::string(10000, 'x'));
  Regions regions;
  regions.add({"r", memory.key(), 0, 10000});
  memory.resize(5000);
  EXPECT_EQ(regions.read({"r", 0, 5000}).data.size(), 5000u);
  EXPECT_ERROR(regions.read({"r", 0, 5001}), InvalidModel, "shared memory region 'r' was cut short.");
  EXPECT_ERROR(regions.write({"r", 4999, 2}, bytes_of("ab")), InvalidModel, "shared memory region 'r' was cut short.");
  EXPECT_EQ(memory.content().size(), 5000u);
}

// Every request gets all it asked for or a typed error, whatever the client does meanwhile.
TEST(Regions, OneThatIsCutShortDuringACopyIsNoSignal) {
  constexpr int64_t kBytes = int64_t{1} << 20;
  const Memory memory(std::string(kBytes, 'x'));
  Regions regions;
  regions.add({"r", memory.key(), 0, kBytes});
  std::atomic<bool> stop = false;
  std::thread client([&] {
    while (!stop) {
      memory.resize(0);
      memory.resize(kBytes);
    }
  });
  const std::string values(kBytes, 'y');
  for (int k = 0; k < 200; ++k) {
    try {
      EXPECT_EQ(regions.read({"r", 0, kBytes}).data.size(), static_cast<size_t>(kBytes));
      regions.write({"r", 0, kBytes}, bytes_of(values));
    } catch (const InvalidModel& error) {
      EXPECT_STREQ(error.what(), "shared memory region 'r' was cut short.");
    }
  }
  stop = true;
  client.join();
}

TEST(Regions, OneMayBeForgottenWhileOthersReadIt) {
  const Memory memory(std::string(1 << 16, 'x'));
  Regions regions;
  std::atomic<bool> stop = false;
  std::thread reader([&] {
    while (!stop) {
      try {
        const Bytes read = regions.read({"r", 0, 1 << 16});
        EXPECT_EQ(read.text().find_first_not_of('x'), std::string::npos);
      } catch (const InvalidModel& error) {
        EXPECT_STREQ(error.what(), "there is no shared memory region 'r'. Register it first.");
      }
    }
  });
  for (int k = 0; k < 300; ++k) {
    regions.add({"r", memory.key(), 0, 1 << 16});
    regions.read({"r", 0, 1});
    regions.remove("r");
  }
  stop = true;
  reader.join();
}

TEST(Regions, RequestsReadTheirInputsAndGetTheirOutputsThere) {
  const float values[] = {1, 2, 0, 0};
  const Memory memory({reinterpret_cast<const char*>(values), sizeof values});
  Regions regions;
  regions.add({"r", memory.key(), 0, sizeof values});
  Inference request;
  request.inputs.push_back(given("x", "FP32", {2}));
  request.inputs[0].shared = SharedSpan{"r", 0, 8};
  regions.read_inputs(request);
  EXPECT_FALSE(request.inputs[0].shared);
  EXPECT_EQ(request.inputs[0].tensor.values<float>()[1], 2);
  Bound bound;
  bound.outputs = {{1, {}, {"z", false, std::nullopt}}, {0, {}, {"y", false, SharedSpan{"r", 8, 8}}}};
  regions.write_outputs(bound, {Tensor::of<float>({2}, std::vector<float>{5, 6}), Tensor::scalar(7.f)});
  float found[4];
  std::memcpy(found, memory.content().data(), sizeof found);
  EXPECT_EQ(found[0], 1);
  EXPECT_EQ(found[2], 5);
  EXPECT_EQ(found[3], 6);
  request.inputs[0].shared = SharedSpan{"r", 0, 4};
  EXPECT_ERROR(regions.read_inputs(request), InvalidModel, "FP32[2] takes 8 bytes; got 4");
}

}  // namespace
}  // namespace hetnn::serve
