// block_linear: rows of the input times a packed weight in blocks of a few bits.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "hetnn/base/error.h"
#include "hetnn/kernels/epilogue.h"
#include "hetnn/kernels/gemm/block_micro.h"
#include "hetnn/kernels/gemm/expanded.h"
#include "hetnn/kernels/gemm/gemm.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

// Rows that are multiplied by a panel before the next: as digits, so many as stay in the second level meanwhile; by
// weights that are made reals, as many as make these worth it.
constexpr int64_t kRowsOfDigits = 32;
constexpr int64_t kRowsOfReals = 252;

struct BlockGeometry {
  int64_t rows, k, cols, blocks, block;
  int bits;
  bool half;
  bool zeros, bias;

  explicit BlockGeometry(const KernelCall& call)
      : rows(row_view(call.inputs[0]).rows),
        k(call.inputs[0].dims[static_cast<size_t>(call.inputs[0].rank - 1)]),
        cols(call.inputs[1].dims[0]),
        blocks(call.inputs[1].dims[1]),
        block(call.inputs[1].dims[2] * 8 / call.params.integer("bits", 4)),
        bits(static_cast<int>(call.params.integer("bits", 4))),
        half(call.inputs[2].dtype == DType::f16),
        zeros(call.params.integer("zero_points", 0) != 0),
        bias(call.params.integer("bias", 0) != 0) {}

  int64_t panels() const { return (cols + kPanel - 1) / kPanel; }
  /// Of all of a panel's codes, and of its scales or zero points, so wide each.
  int64_t code_bytes() const { return blocks * block * bits * 2; }
  int64_t block_bytes(int64_t each_bytes) const { return blocks * kPanel * each_bytes; }
};

class BlockLinear final : public Kernel {
 public:
  explicit BlockLinear(const KernelCall& call)
      : g_(call),
        micro_(&block_micro_table()),
        product_(g_.rows, g_.k, g_.cols, g_.block),
        epilogue_(call, call.outputs[0]) {}

  int64_t scratch_bytes(int threads) const override {
    return threads * product_.scratch_bytes_per_thread() + (takes_digits() ? digits_bytes() + units_bytes() : 0);
  }

  bool serial() const override { return g_.rows * g_.cols * g_.k < 32768; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const Pointers at = {.inputs = inputs,
                         .x = reinterpret_cast<const float*>(inputs[0]),
                         .bias = g_.bias ? reinterpret_cast<const float*>(inputs[g_.zeros ? 4 : 3]) : nullptr,
                         .out = reinterpret_cast<float*>(outputs[0]),
                         .own = context.scratch + context.thread * product_.scratch_bytes_per_thread(),
                         .shared = context.scratch + context.threads * product_.scratch_bytes_per_thread()};
    const Share panels = share_of(g_.panels(), context.thread, context.threads);
    for (int64_t row = 0; row < g_.rows; row += rows_at_once()) {
      const Share rows{row, std::min(g_.rows, row + rows_at_once())};
      if (row > 0 && takes_digits()) context.barrier.arrive_and_wait();  // all have read the digits before
      if (takes_digits() && split(context, at, rows)) {
        const int64_t wide = is_lone(rows) ? micro_->lone_panels : micro_->panels;
        for (int64_t panel = panels.begin; panel < panels.end; panel += wide)
          run_panels(at, rows, {panel, std::min(panels.end, panel + wide)});
      } else {
        product_.run({at.x, at.bias, at.out}, rows, panels, at.own,
                     [&](int64_t panel, int64_t first, int64_t blocks, float* to) {
                       BlockPanel part = panel_of(inputs, panel);
                       part.codes += first * part.code_bytes();
                       part.scales += first * part.scale_bytes();
                       if (part.zeros != nullptr) part.zeros += first * kPanel;
                       expand_blocks(part, blocks, to);
                     });
      }
      if (epilogue_.empty() || panels.begin == panels.end) continue;
      const int64_t col = panels.begin * kPanel;
      epilogue_.apply(at.out + row * g_.cols + col, g_.cols, rows.end - row,
                      std::min(g_.cols, panels.end * kPanel) - col, row, col, inputs);
    }
  }

 private:
  struct Pointers {
    const std::byte* const* inputs;
    const float* x;
    const float* bias;
    float* out;
    std::byte *own, *shared;  // scratch
  };

  bool takes_digits() const { return g_.rows <= micro_->most_rows && g_.bits <= micro_->most_bits; }
  bool is_lone(Share rows) const { return g_.bits == 4 && rows.end - rows.begin == 1; }
  int64_t rows_at_once() const { return std::min(g_.rows, takes_digits() ? kRowsOfDigits : kRowsOfReals); }
  int64_t digits_bytes() const { return rows_at_once() * g_.blocks * g_.block * kDigits; }
  int64_t units_bytes() const { return rows_at_once() * g_.blocks * static_cast<int64_t>(sizeof(BlockUnit)); }
  int32_t* digits_of(std::byte* shared) const { return reinterpret_cast<int32_t*>(shared); }
  BlockUnit* units_of(std::byte* shared) const { return reinterpret_cast<BlockUnit*>(shared + digits_bytes()); }

  BlockPanel panel_of(const std::byte* const* inputs, int64_t panel) const {
    return {.codes = inputs[1] + panel * g_.code_bytes(),
            .scales = inputs[2] + panel * g_.block_bytes(g_.half ? 2 : 4),
            .zeros = g_.zeros ? reinterpret_cast<const uint8_t*>(inputs[3]) + panel * g_.block_bytes(1) : nullptr,
            .half = g_.half,
            .bits = g_.bits,
            .block = g_.block};
  }

  // Rows of x as digits, by all threads. False where an element is not finite.
  bool split(const RunContext& context, const Pointers& at, Share rows) const {
    BlockUnit* units = units_of(at.shared);
    const float* x = at.x + rows.begin * g_.k;
    const int64_t all = (rows.end - rows.begin) * g_.blocks;
    const Share share = share_of(all, context.thread, context.threads);
    for (int64_t i = share.begin; i < share.end; ++i) {
      const int64_t k = i % g_.blocks * g_.block;
      units[i] = micro_->split(x + i / g_.blocks * g_.k + k, std::min(g_.block, g_.k - k), g_.block, g_.bits,
                               digits_of(at.shared) + i * g_.block / 4 * kDigits);
    }
    context.barrier.arrive_and_wait();
    return std::none_of(units, units + all, [](const BlockUnit& unit) { return std::isnan(unit.unit); });
  }

  // What is no panel of ours is not written, though a tile is as wide as it is.
  void run_panels(const Pointers& at, Share rows, Share panels) const {
    const int64_t col = panels.begin * kPanel;
    for (int64_t row = 0, count = kMaxBlockRows; row < rows.end - rows.begin; row += count) {
      while (rows.end - rows.begin - row < count || micro_->run[count] == nullptr) count /= 2;
      BlockTile tile{.panels = {},
                     .blocks = g_.blocks,
                     .digits = digits_of(at.shared) + row * g_.blocks * g_.block / 4 * kDigits,
                     .units = units_of(at.shared) + row * g_.blocks,
                     .bias = at.bias == nullptr ? nullptr : at.bias + col,
                     .out = at.out + (rows.begin + row) * g_.cols + col,
                     .ld_out = g_.cols,
                     .cols = std::min(panels.end * kPanel, g_.cols) - col};
      for (int64_t k = 0; k < kMaxBlockPanels; ++k)
        tile.panels[k] = panel_of(at.inputs, std::min(panels.begin + k, panels.end - 1));
      (is_lone(rows) ? micro_->run_lone_4 : micro_->run[count])(tile);
    }
  }

  BlockGeometry g_;
  const BlockMicroTable* micro_;
  ExpandedProduct product_;
  EpiloguePlan epilogue_;
};

}  // namespace

Refusal serves_block_linear(const KernelCall& call) {
  const DType scales = call.inputs[2].dtype;
  return Terms("block_linear", call)
      .of(DType::f32, 1)
      .plain()
      .hold(scales == DType::f32 || scales == DType::f16, "takes scales of f32 and f16; got ", dtype_name(scales))
      .steps_on_rows();
}

std::unique_ptr<Kernel> make_block_linear(const KernelCall& call) { return std::make_unique<BlockLinear>(call); }

bool is_block_weight(const KernelCall& call, int input) {
  return input == 1 || input == 2 || (input == 3 && call.params.integer("zero_points", 0) != 0);
}

int64_t packed_block_bytes(const KernelCall& call, int input) {
  const BlockGeometry g(call);
  return g.panels() *
         (input == 1 ? g.code_bytes() : g.block_bytes(dtype_bytes(call.inputs[static_cast<size_t>(input)].dtype)));
}

std::vector<std::byte> pack_block(const KernelCall& call, int input, std::span<const std::byte> weight) {
  const BlockGeometry g(call);
  HETNN_ASSERT(is_block_weight(call, input), "block_linear packs no input ", input);
  std::vector<std::byte> packed(static_cast<size_t>(packed_block_bytes(call, input)));
  if (input > 1) {
    const int64_t each = dtype_bytes(call.inputs[static_cast<size_t>(input)].dtype);
    for (int64_t col = 0; col < g.cols; ++col)
      for (int64_t b = 0; b < g.blocks; ++b)
        std::copy_n(weight.data() + (col * g.blocks + b) * each, each,
                    packed.data() + ((col / kPanel * g.blocks + b) * kPanel + col % kPanel) * each);
    return packed;
  }
  // Four bytes of one column are a group: code i of them moves to step i / 4 of byte i % 4.
  const int64_t groups = g.blocks * g.block * g.bits / 32;
  const uint32_t mask = (1U << g.bits) - 1;
  for (int64_t col = 0; col < g.cols; ++col) {
    const std::byte* from = weight.data() + col * groups * 4;
    std::byte* to = packed.data() + col / kPanel * g.code_bytes() + col % kPanel * 4;
    for (int64_t group = 0; group < groups; ++group, from += 4, to += kPanel * 4) {
      uint32_t given, turned = 0;
      std::memcpy(&given, from, 4);
      for (int i = 0; i < 32 / g.bits; ++i) turned |= (given >> (i * g.bits) & mask) << (i % 4 * 8 + i / 4 * g.bits);
      std::memcpy(to, &turned, 4);
    }
  }
  return packed;
}

}  // namespace hetnn::kernels
