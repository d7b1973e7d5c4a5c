// The tiles that the search finds against all there are, by the clock of their streams.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "hetnn/backends/npu/search.h"
#include "hetnn/backends/npu/stream.h"
#include "hetnn/base/error.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/npu/timing.h"

namespace hetnn::backends::scheduling {
namespace {

using npu::Spec;

struct Drawn {
  Spec spec;
  ir::Graph graph;
  const ir::Node* node = nullptr;
  std::string text;
};

class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}
  int64_t number(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random_); }
  template <typename T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[number(0, static_cast<int64_t>(choices.size()) - 1)];
  }

  Drawn layer() {
    Drawn out;
    Spec& spec = out.spec;
    spec.name = "random";
    spec.mac.block_height = spec.mac.block_width = 2;
    spec.mac.block_channels = 8;
    spec.mac.macs_per_cycle =
        spec.mac.block_height * spec.mac.block_width * spec.mac.block_channels * one_of({4, 8, 16});
    spec.sram = {{.bytes = number(12, 96) << 10}};
    spec.dram = {.bytes_per_cycle = one_of({2.0, 3.75, 8.0, 32.0}),
                 .read_latency_cycles = one_of({0, 20, 500}),
                 .write_latency_cycles = one_of({0, 10, 250}),
                 .burst_bytes = one_of({1, 16, 64})};
    spec.dma.max_outstanding = one_of({1, 8});
    spec.vector.lanes = 16;
    const bool depthwise = number(0, 3) == 0;
    const int64_t size = number(4, 16), kernel = one_of({1, 3, 5}), stride = number(1, 2), channels = 8 * number(1, 12),
                  filters = depthwise ? channels : 8 * number(1, 12);
    ir::Rewriter rewriter(out.graph);
    const ops::Quant scale{{0.05}, {0}};
    ir::Value* x = rewriter.add_input("x", {DType::i8, {1, channels, size, size}, scale});
    const int64_t depth = depthwise ? 1 : channels;
    ir::Value* w =
        rewriter.constant(Tensor::zeros(DType::i8, {filters, depth, kernel, kernel}), "w", ops::Quant{{0.01}});
    ops::Attrs attrs = ops::quant_attrs(scale);
    attrs["stride"] = std::vector<Dim>{stride, stride};
    attrs["padding"] = std::vector<Dim>(4, Dim(kernel / 2));
    attrs["groups"] = Dim(depthwise ? channels : 1);
    ir::Value* y = rewriter.add("conv2d", {x, w, nullptr}, attrs);
    rewriter.add_output(y);
    out.node = y->producer();
    out.text =
        text(channels, "x", size, "x", size, " to ", filters, ", kernel ", kernel, ", stride ", stride,
             depthwise ? ", depthwise" : "", ", scratchpad ", spec.sram[0].bytes, ", dram ", spec.dram.bytes_per_cycle,
             " latency ", spec.dram.read_latency_cycles, " burst ", spec.dram.burst_bytes, ", outstanding ",
             spec.dma.max_outstanding, ", macs ", spec.mac.macs_per_cycle);
    return out;
  }

 private:
  std::mt19937 random_;
};

// Of a schedule of one layer, which has room or has not.
std::optional<int64_t> cycles_of(const Spec& spec, const Network& network, Schedule schedule) {
  for (Group& group : schedule.groups) group.buffers = buffers_of(network, schedule.homes, group);
  if (!place(spec, network, schedule).empty()) return std::nullopt;
  Packer packer(spec, nullptr);
  Streams streams(spec);
  return npu::time_stream(spec, streams.stream(network, schedule, packer).instructions).cycles;
}

std::vector<int64_t> steps(int64_t whole, int64_t unit) {
  std::vector<int64_t> out;
  for (int64_t at = unit; at < whole; at += unit) out.push_back(at);
  out.push_back(whole);
  return out;
}

// The least that any tile takes: tried from the one that could take least on, until none can take less.
int64_t least_cycles(const Spec& spec, const Network& network) {
  const ProductShape& shape = network.layers()[0].product;
  Spec prompt = spec;
  prompt.dram.read_latency_cycles = prompt.dram.write_latency_cycles = 0;
  std::vector<std::pair<double, Tile>> tiles;
  const int64_t filters_of_one = shape.groups == 1 ? 8 : 8 * shape.out_c / shape.groups;
  for (const int64_t filters : steps(shape.out_c, filters_of_one)) {
    for (const int64_t channels : shape.groups == 1 ? steps(shape.in_c, 8) : std::vector{shape.in_c}) {
      for (int64_t rows = 1; rows <= shape.out_h; ++rows) {
        for (int64_t columns = 1; columns <= shape.out_w; ++columns) {
          for (const bool inside : {false, true}) {
            for (const bool overlaps : {false, true}) {
              const Tile tile{rows, columns, filters, channels, inside, overlaps};
              if (spec.taken(buffers_of(shape, tile).contents()) > spec.sram[0].bytes) continue;
              const TileCost cost = cost_of(prompt, shape, tile);
              tiles.emplace_back(std::max(cost.engine_cycles, cost.dma_cycles), tile);
            }
          }
        }
      }
    }
  }
  std::stable_sort(tiles.begin(), tiles.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  int64_t best = std::numeric_limits<int64_t>::max();
  for (const auto& [bound, tile] : tiles) {
    if (bound >= static_cast<double>(best)) break;
    Schedule schedule;
    schedule.homes.resize(network.storages().size());
    schedule.groups = {{.tile = tile}};
    best = std::min(best, cycles_of(spec, network, schedule).value_or(best));
  }
  return best;
}

TEST(Tiles, TakeAtMostThreePercentMoreThanTheBestThereIs) {
  const char* asked = std::getenv("HETNN_TILES");
  const int layers = asked ? std::atoi(asked) : 300;
  for (int k = 0; k < layers; ++k) {
    const Drawn drawn = Draw(static_cast<uint32_t>(k)).layer();
    const ir::Node* const alone[] = {drawn.node};
    const Network network(alone, {}, {});
    Streams streams(drawn.spec);
    const int64_t found = cycles_of(drawn.spec, network, streams.schedule(network)).value(),
                  least = least_cycles(drawn.spec, network);
    EXPECT_LE(static_cast<double>(found), 1.03 * static_cast<double>(least)) << k << ": " << drawn.text;
  }
}

}  // namespace
}  // namespace hetnn::backends::scheduling
