// Runs one kernel under google-benchmark, with its weights packed and its threads in one region.
#pragma once

#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/base/parallel.h"
#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels::bench {

/// Times run() alone. `work` is reported per second under `unit` ("FLOP" or "bytes"). Packed weights stand in so many
/// copies that they come from memory, as inside a network, where `cold`.
inline void run_kernel(benchmark::State& state, const std::string& name, const std::vector<TensorView>& inputs,
                       const TensorView& output, const Params& params, int threads, double work,
                       const std::string& unit, const std::vector<Step>& steps = {}, bool cold = false) {
  const Variant* family = find_kernel(name);
  const std::vector<TensorView> outputs = {output};
  std::vector<TensorView> views = inputs;
  std::vector<AlignedBuffer> buffers, copies;
  constexpr int64_t kCold_bytes = 64 << 20;
  size_t packed_at = inputs.size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    AlignedBuffer buffer(static_cast<size_t>(inputs[i].span_bytes()));
    auto* values = buffer.as<float>();
    for (int64_t e = 0; e < inputs[i].span_bytes() / 4; ++e) values[e] = 0.01f * static_cast<float>(e % 97) - 0.5f;
    const KernelCall call{inputs, outputs, params};
    if (family->is_weight != nullptr && family->is_weight(call, static_cast<int>(i))) {
      const std::vector<std::byte> packed =
          family->pack(call, static_cast<int>(i), {buffer.data(), buffer.size_bytes()});
      AlignedBuffer copy(packed.size());
      std::memcpy(copy.data(), packed.data(), packed.size());
      const auto size_bytes = static_cast<int64_t>(packed.size());
      for (int64_t held = size_bytes; cold && held < kCold_bytes; held += size_bytes) {
        copies.emplace_back(packed.size());
        std::memcpy(copies.back().data(), packed.data(), packed.size());
      }
      packed_at = i;
      buffer = std::move(copy);
      views[i] = TensorView::of_weight(inputs[i].dtype, inputs[i].shape());
    }
    buffers.push_back(std::move(buffer));
  }
  const AlignedBuffer result(static_cast<size_t>(output.span_bytes()));
  const std::unique_ptr<Kernel> kernel = make_kernel(*family, {views, outputs, params, steps});
  threads = usable_threads(threads);
  const AlignedBuffer scratch(static_cast<size_t>(kernel->scratch_bytes(threads)));
  std::vector<const std::byte*> in;
  for (const AlignedBuffer& buffer : buffers) in.push_back(buffer.data());
  std::byte* const out[] = {result.data()};
  SpinBarrier barrier(threads);
  size_t turn = 0;
  for (auto _ : state) {
    if (!copies.empty()) in[packed_at] = copies[turn++ % copies.size()].data();
    parallel_region(threads, [&](int thread) {
      kernel->run({thread, threads, barrier, scratch.data()}, in.data(), out);
    });
  }
  state.counters[unit + "/s"] =
      benchmark::Counter(work * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

}  // namespace hetnn::kernels::bench
