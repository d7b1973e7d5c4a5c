// What the system refuses ends a call with an error of hetnn's, loses nothing, leaks nothing, and the next call works.
#include "faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "hetnn/base/background.h"
#include "hetnn/base/parallel.h"
#include "hetnn/compiler/compile.h"
#include "hetnn/ir/text.h"
#include "hetnn/npu/spec.h"
#include "hetnn/program/pack.h"
#include "hetnn/runtime/executable.h"

namespace hetnn {
namespace {

constexpr std::string_view kNetwork =
    R"(graph @net {stage = imported, symbols = [n: 1..8 = 2]} (%x: f32[n,3,8,8]) -> (%y) {
  %w = constant() {value = f32[2,3,1,1] {1, 2, 3, 4, 5, 6}} : f32[2,3,1,1]
  %c = conv2d(%x, %w, _) {stride = [2,2], padding = [1,1]} : f32[n,2,5,5]
  %r = relu(%c) : f32[n,2,5,5]
  %p = max_pool2d(%r) {kernel = [2,2], stride = [2,2]} : f32[n,2,2,2]
  %s = softmax(%p) {axis = 1} : f32[n,2,2,2]
  %y = permute(%s) {perm = [0,2,3,1]} : f32[n,2,2,2]
}
)";

using Image = program::Image;

Image compiled(std::string_view spec = "cpu") {
  static const std::string sheet = npu::spec_to_json(npu::systolic_spec(4, 4));
  const std::string devices = R"({"devices": [{"name": "cpu", "kind": "cpu"})" +
                              (spec == "cpu" ? "" : R"(, {"name": "npu", "kind": "npu", "spec": )" + sheet + "}") +
                              "]}";
  return Compilation::make(ir::parse(kNetwork), parse_target(devices), {})->image();
}

std::vector<Tensor> run(const Image& bytes) {
  auto image = std::make_shared<const Image>(bytes);
  runtime::Executable executable({image, std::span(*image)}, 1);
  std::byte* data = nullptr;
  const Tensor x = Tensor::zeros(DType::f32, {2, 3, 8, 8}, &data);
  for (int k = 0; k < 384; ++k) reinterpret_cast<float*>(data)[k] = static_cast<float>(k % 13) - 6;
  return executable.run(std::vector{x});
}

// Calls f with every n-th allocation failing, for n from 1 until none fails. Compilers leak the lists of which JSON is
// written when they are half made (GCC's bug 66139), so there blocks are not counted.
template <typename F>
void with_failing_allocations(const F& f, bool writes_json = false) {
  f();
  const auto right = f();
  int64_t refused = 0;
  for (int64_t nth = 1;; nth += 1 + nth / 40) {
    const int64_t before = faults::live_blocks();
    int64_t failed = 0;
    bool raised = false;
    {
      const faults::FailingAllocations failing(nth);
      try {
        const auto got = f();
      } catch (const InternalError& error) {
        ADD_FAILURE() << "every " << nth << "th allocation failing: " << error.what();
        raised = true;
      } catch (const Error&) {
        raised = true;
      } catch (const std::bad_alloc&) {  // DoesNotFit in Python
        raised = true;
      }
      failed = failing.failed();
    }
    if (!writes_json) {
      EXPECT_EQ(faults::live_blocks(), before) << "every " << nth << "th allocation failing";
    }
    if (failed == 0) break;
    refused += raised;
    if (nth % 50 == 1) {
      EXPECT_EQ(f(), right);
    }
  }
  EXPECT_GT(refused, 20);
  EXPECT_EQ(f(), right);
}

TEST(Faults, CompilingWithoutMemory) {
  with_failing_allocations([] { return compiled(); }, true);
  with_failing_allocations([] { return compiled("npu"); }, true);
}

TEST(Faults, RunningWithoutMemory) {
  const Image cpu = compiled(), npu = compiled("npu");
  with_failing_allocations([&] { return run(cpu); });
  with_failing_allocations([&] { return run(npu); });
}

class InAFolder : public testing::Test {
 protected:
  InAFolder() : folder_(std::filesystem::temp_directory_path() / ("faults-" + std::to_string(::getpid()))) {
    std::filesystem::create_directory(folder_);
  }
  ~InAFolder() override {
    faults::short_writes = faults::no_mappings = false;
    std::filesystem::remove_all(folder_);
  }
  std::string path() const { return folder_ / "m.hetnn"; }
  Image content() const {
    std::ifstream file(path(), std::ios::binary);
    const std::string read{std::istreambuf_iterator<char>(file), {}};
    const auto bytes = std::as_bytes(std::span(read));
    return {bytes.begin(), bytes.end()};
  }
  ptrdiff_t files() const { return std::distance(std::filesystem::directory_iterator(folder_), {}); }

  const std::filesystem::path folder_;
};

TEST_F(InAFolder, ShortWritesGoOn) {
  const Image image = compiled();
  faults::short_writes = true;
  faults::room_bytes = INT32_MAX;
  program::write_file(path(), image);
  EXPECT_EQ(content(), image);
}

TEST_F(InAFolder, AFullDiskLeavesTheOldFileAndNoOther) {
  const Image image = compiled(), other = compiled("npu");
  program::write_file(path(), image);
  for (const int64_t room : {0, 1, 150, 1000}) {
    faults::short_writes = true;
    faults::room_bytes = room;
    EXPECT_THROW(program::write_file(path(), other), DoesNotFit);
    faults::short_writes = false;
    EXPECT_EQ(content(), image);
    EXPECT_EQ(files(), 1);
  }
  program::write_file(path(), other);
  EXPECT_EQ(content(), other);
}

TEST_F(InAFolder, AFileThatCannotBeMappedIsAnError) {
  const Image image = compiled();
  program::write_file(path(), image);
  faults::no_mappings = true;
  EXPECT_THROW(runtime::Executable::load(path(), 1), Error);
  faults::no_mappings = false;
  EXPECT_NO_THROW(runtime::Executable::load(path(), 1));
}

// These make the first threads of the process, so each runs in a process of its own.
TEST(FaultsDeathTest, RunsWithoutThreads) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        faults::no_threads = true;
        int ran = 0;
        parallel_region_up_to(8, [&](int, SpinBarrier& barrier) { ran += barrier.threads(); });
        bool refused = false;
        try {
          parallel_region(8, [](int) {});
        } catch (const DoesNotFit&) {
          refused = true;
        }
        try {
          run_in_background([] {});
          refused = false;
        } catch (const DoesNotFit&) {
        }
        faults::no_threads = false;
        std::atomic<int> together{0};
        parallel_region(3, [&](int) { ++together; });
        std::atomic<bool> done{false};
        run_in_background([&] { done = true; });
        while (!done) {
        }
        std::_Exit(ran == 1 && refused && together == 3 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hetnn
