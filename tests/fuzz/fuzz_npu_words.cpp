// Command streams of an NPU: what is verified, is executed where it is short.
#include <cstring>
#include <vector>

#include "fuzz.h"
#include "hetnn/base/integer_rows.h"
#include "hetnn/sim/machine.h"

using namespace hetnn;  // NOLINT(google-build-using-namespace): all of this file is about it

namespace {

constexpr int64_t kArenaBytes = 4096;
constexpr int64_t kMostCycles = 1 << 20;

void use(std::span<const uint64_t> words) {
  static const npu::Spec spec = [] {
    npu::Spec small = npu::systolic_spec(4, 4);
    small.sram[0].bytes = 1 << 16;
    small.vector.softmax_cycles = small.vector.normalize_cycles = 4;
    return small;
  }();
  static const std::vector<std::byte> constants = [] {
    std::vector<std::byte> out(2048, std::byte{3});
    const SoftmaxTable table = softmax_table(0.1, 1 / 256.0);  // what a softmax reads may not be anything
    std::memcpy(out.data(), &table, sizeof table);
    return out;
  }();
  const std::span<const std::byte> all[] = {constants};
  sim::Machine machine(spec, words, all, kArenaBytes);
  if (machine.timing().cycles > kMostCycles) return;
  const Stop stop = fuzz::deadline();
  machine.run(&stop);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint64_t> words(size / sizeof(uint64_t));
  if (!words.empty()) std::memcpy(words.data(), data, words.size() * sizeof(uint64_t));
  fuzz::attempt([&] { use(words); });
  return 0;
}
