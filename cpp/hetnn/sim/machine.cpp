// Executes decoded words on bytes.
#include "hetnn/sim/machine.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "hetnn/base/error.h"

namespace hetnn::sim {
namespace {

using namespace hetnn::npu;  // NOLINT(google-build-using-namespace): the instructions' own names

constexpr int64_t kWord = 4;  // bytes that one bit of the shadow stands for

float act_of(float value, int64_t act, float low, float high) {
  if (act == static_cast<int64_t>(Act::relu)) return value <= 0 ? 0.0F : value;
  if (act == static_cast<int64_t>(Act::clamp)) return value < low ? low : value > high ? high : value;
  return value;
}

}  // namespace

Machine::Machine(const Spec& spec, std::span<const uint64_t> words, std::span<const std::byte> weights,
                 int64_t arena_bytes)
    : spec_(spec),
      instructions_(decode(words)),
      weights_(weights),
      arena_(static_cast<size_t>(arena_bytes)),
      scratchpad_(static_cast<size_t>(spec.scratchpad().bytes)),
      shadow_(static_cast<size_t>(spec.scratchpad().bytes / kWord + 1)),
      timing_(time_stream(spec_, instructions_)) {}

const std::byte* Machine::dram(int64_t region, int64_t addr, int64_t bytes, bool writes) {
  const bool arena = region == static_cast<int64_t>(Region::arena);
  const auto size = static_cast<int64_t>(arena ? arena_.size() : weights_.size());
  HETNN_ASSERT(addr >= 0 && bytes >= 0 && addr <= size - bytes && (arena || !writes), "instruction ", at_, " (",
               to_text(instructions_[at_]), ") reaches bytes [", addr, ", +", bytes, ") of a region of ", size);
  return (arena ? arena_.data() : weights_.data()) + addr;
}

std::byte* Machine::sram(int64_t addr, int64_t bytes) {
  HETNN_ASSERT(addr >= 0 && bytes >= 0 && addr <= static_cast<int64_t>(scratchpad_.size()) - bytes, "instruction ", at_,
               " (", to_text(instructions_[at_]), ") reaches bytes [", addr, ", +", bytes, ") of a scratchpad of ",
               scratchpad_.size());
  return scratchpad_.data() + addr;
}

void Machine::mark(int64_t addr, int64_t bytes) {
  std::fill(shadow_.begin() + addr / kWord, shadow_.begin() + (addr + bytes + kWord - 1) / kWord, true);
}

const std::byte* Machine::written(int64_t addr, int64_t bytes) {
  const std::byte* out = sram(addr, bytes);
  const auto first = shadow_.begin() + addr / kWord, last = shadow_.begin() + (addr + bytes + kWord - 1) / kWord;
  HETNN_ASSERT(std::find(first, last, false) == last, "instruction ", at_, " (", to_text(instructions_[at_]),
               ") reads scratchpad that was never written");
  return out;
}

const float* Machine::read_rows(int64_t addr, int64_t rows, int64_t pitch, int64_t channels) {
  sram(addr, rows > 0 ? (rows - 1) * pitch + channels * kWord : 0);
  for (int64_t r = 0; r < rows; ++r) written(addr + r * pitch, channels * kWord);
  return reinterpret_cast<const float*>(scratchpad_.data() + addr);
}

float* Machine::write_rows(int64_t addr, int64_t rows, int64_t pitch, int64_t channels) {
  sram(addr, rows > 0 ? (rows - 1) * pitch + channels * kWord : 0);
  for (int64_t r = 0; r < rows; ++r) mark(addr + r * pitch, channels * kWord);
  return reinterpret_cast<float*>(scratchpad_.data() + addr);
}

template <>
void Machine::execute(const DmaLoad& i) {
  for (int64_t b = 0; b < i.size2; ++b) {
    for (int64_t a = 0; a < i.size1; ++a) {
      const std::byte* from = dram(i.region, i.dram_addr + b * i.dram_stride2 + a * i.dram_stride1, i.size0, false);
      const int64_t to = i.sram_addr + b * i.sram_stride2 + a * i.sram_stride1;
      std::memcpy(sram(to, i.size0), from, static_cast<size_t>(i.size0));
      mark(to, i.size0);
    }
  }
}

template <>
void Machine::execute(const DmaStore& i) {
  for (int64_t b = 0; b < i.size2; ++b) {
    for (int64_t a = 0; a < i.size1; ++a) {
      const std::byte* from = written(i.sram_addr + b * i.sram_stride2 + a * i.sram_stride1, i.size0);
      // Checked as writable, so this is the arena.
      auto* to =
          const_cast<std::byte*>(dram(i.region, i.dram_addr + b * i.dram_stride2 + a * i.dram_stride1, i.size0, true));
      std::memcpy(to, from, static_cast<size_t>(i.size0));
    }
  }
}

template <>
void Machine::execute(const Conv2d& i) {
  HETNN_ASSERT(i.dtype == static_cast<int64_t>(DType::f32) && !i.load_acc && !i.store_acc, "instruction ", at_,
               ": the simulator computes f32 sums in one go");
  const int64_t filters = i.groups * i.out_c, row = i.in_row_pitch / kWord, pixel = i.in_pixel_pitch / kWord;
  for (int64_t y = 0; y < i.in_h; ++y)
    read_rows(i.in_addr + y * i.in_row_pitch, i.in_w, i.in_pixel_pitch, i.groups * i.in_c);
  const auto* in = reinterpret_cast<const float*>(scratchpad_.data() + i.in_addr);
  const float* weights = read_rows(i.weight_addr, 1, 0, i.kernel_h * i.kernel_w * i.in_c * filters);
  const float* bias = i.has_bias ? read_rows(i.bias_addr, 1, 0, filters) : nullptr;
  const float low = float_of_bits(i.clamp_lo), high = float_of_bits(i.clamp_hi);
  std::vector<float> sums(static_cast<size_t>(filters));
  for (int64_t oy = 0; oy < i.out_h; ++oy) {
    for (int64_t ox = 0; ox < i.out_w; ++ox) {
      std::fill(sums.begin(), sums.end(), 0.0F);
      for (int64_t ky = 0; ky < i.kernel_h; ++ky) {
        const int64_t y = oy * i.stride_h + ky * i.dilation_h - i.pad_top;
        if (y < 0 || y >= i.in_h) continue;
        for (int64_t kx = 0; kx < i.kernel_w; ++kx) {
          const int64_t x = ox * i.stride_w + kx * i.dilation_w - i.pad_left;
          if (x < 0 || x >= i.in_w) continue;
          const float* from = in + y * row + x * pixel;
          const float* w = weights + (ky * i.kernel_w + kx) * i.in_c * filters;
          if (i.in_c == 1 && i.out_c == 1) {
            for (int64_t c = 0; c < i.groups; ++c) sums[static_cast<size_t>(c)] += from[c] * w[c];
            continue;
          }
          for (int64_t c = 0; c < i.in_c; ++c) {
            for (int64_t g = 0; g < i.groups; ++g) {
              const float value = from[g * i.in_c + c];
              const float* line = w + c * filters + g * i.out_c;
              float* to = sums.data() + g * i.out_c;
              for (int64_t f = 0; f < i.out_c; ++f) to[f] += value * line[f];
            }
          }
        }
      }
      const int64_t at = i.out_addr + oy * i.out_row_pitch + ox * i.out_pixel_pitch;
      if (i.add_output) written(at, filters * kWord);
      float* to = write_rows(at, 1, 0, filters);
      for (int64_t f = 0; f < filters; ++f) {
        float value = sums[static_cast<size_t>(f)] + (bias ? bias[f] : 0.0F);
        if (i.add_output) value += to[f];
        to[f] = act_of(value, i.act, low, high);
      }
    }
  }
}

template <>
void Machine::execute(const Matmul& i) {
  HETNN_ASSERT(i.dtype == static_cast<int64_t>(DType::f32), "instruction ", at_,
               ": the simulator multiplies f32 matrices");
  const float* a = read_rows(i.a_addr, i.m, i.a_pitch, i.k);
  const float* b = read_rows(i.b_addr, i.transpose_b ? i.n : i.k, i.b_pitch, i.transpose_b ? i.k : i.n);
  float* out = write_rows(i.out_addr, i.m, i.out_pitch, i.n);
  const float low = float_of_bits(i.clamp_lo), high = float_of_bits(i.clamp_hi);
  for (int64_t m = 0; m < i.m; ++m) {
    float* to = out + m * i.out_pitch / kWord;
    for (int64_t n = 0; n < i.n; ++n) {
      float sum = 0;
      for (int64_t k = 0; k < i.k; ++k) {
        sum += a[m * i.a_pitch / kWord + k] *
               (i.transpose_b ? b[n * i.b_pitch / kWord + k] : b[k * i.b_pitch / kWord + n]);
      }
      to[n] = act_of(sum, i.act, low, high);
    }
  }
}

template <>
void Machine::execute(const Elementwise& i) {
  HETNN_ASSERT(i.dtype == static_cast<int64_t>(DType::f32), "instruction ", at_, ": the simulator combines f32 values");
  const float* a = read_rows(i.a_addr, i.rows, i.a_pitch, i.channels);
  const float* b = read_rows(i.b_addr, i.b_kind ? 1 : i.rows, i.b_pitch, i.channels);
  float* out = write_rows(i.out_addr, i.rows, i.out_pitch, i.channels);
  const float sa = float_of_bits(i.scale_a), sb = float_of_bits(i.scale_b), low = float_of_bits(i.clamp_lo),
              high = float_of_bits(i.clamp_hi);
  for (int64_t r = 0; r < i.rows; ++r) {
    for (int64_t c = 0; c < i.channels; ++c) {
      const float x = sa * a[r * i.a_pitch / kWord + c], y = sb * b[(i.b_kind ? 0 : r * i.b_pitch / kWord) + c];
      float value = 0;
      switch (static_cast<ElementwiseOp>(i.op)) {
        case ElementwiseOp::add:
          value = x + y;
          break;
        case ElementwiseOp::sub:
          value = x - y;
          break;
        case ElementwiseOp::mul:
          value = x * y;
          break;
        case ElementwiseOp::max:
          value = x != x || x > y ? x : y;
          break;
        case ElementwiseOp::min:
          value = x != x || x < y ? x : y;
          break;
      }
      out[r * i.out_pitch / kWord + c] = act_of(value, i.act, low, high);
    }
  }
}

template <>
void Machine::execute(const Pool& i) {
  HETNN_ASSERT(i.dtype == static_cast<int64_t>(DType::f32), "instruction ", at_, ": the simulator pools f32 values");
  for (int64_t y = 0; y < i.in_h; ++y) read_rows(i.in_addr + y * i.in_row_pitch, i.in_w, i.in_pixel_pitch, i.channels);
  const auto* in = reinterpret_cast<const float*>(scratchpad_.data() + i.in_addr);
  const bool largest = i.op == static_cast<int64_t>(PoolOp::max);
  for (int64_t oy = 0; oy < i.out_h; ++oy) {
    for (int64_t ox = 0; ox < i.out_w; ++ox) {
      float* to = write_rows(i.out_addr + oy * i.out_row_pitch + ox * i.out_pixel_pitch, 1, 0, i.channels);
      std::fill_n(to, i.channels, largest ? -std::numeric_limits<float>::infinity() : 0.0F);
      int64_t inside = 0, padded = 0;
      for (int64_t ky = 0; ky < i.kernel_h; ++ky) {
        for (int64_t kx = 0; kx < i.kernel_w; ++kx) {
          const int64_t y = oy * i.stride_h + ky * i.dilation_h - i.pad_top,
                        x = ox * i.stride_w + kx * i.dilation_w - i.pad_left;
          padded += y < i.in_h + i.pad_bottom && x < i.in_w + i.pad_right;
          if (y < 0 || y >= i.in_h || x < 0 || x >= i.in_w) continue;
          ++inside;
          const float* from = in + (y * i.in_row_pitch + x * i.in_pixel_pitch) / kWord;
          for (int64_t c = 0; c < i.channels; ++c)
            to[c] = !largest ? to[c] + from[c] : from[c] > to[c] || from[c] != from[c] ? from[c] : to[c];
        }
      }
      const int64_t divisor = i.divisor > 0 ? i.divisor : i.count_pad ? padded : inside;
      for (int64_t c = 0; !largest && c < i.channels; ++c) to[c] /= static_cast<float>(divisor);
    }
  }
}

template <>
void Machine::execute(const Activation& i) {
  HETNN_ASSERT(i.dtype == static_cast<int64_t>(DType::f32) && i.act != static_cast<int64_t>(Act::table), "instruction ",
               at_, ": the simulator activates f32 values");
  const float* in = read_rows(i.in_addr, i.rows, i.in_pitch, i.channels);
  float* out = write_rows(i.out_addr, i.rows, i.out_pitch, i.channels);
  const float low = float_of_bits(i.clamp_lo), high = float_of_bits(i.clamp_hi);
  for (int64_t r = 0; r < i.rows; ++r) {
    for (int64_t c = 0; c < i.channels; ++c)
      out[r * i.out_pitch / kWord + c] = act_of(in[r * i.in_pitch / kWord + c], i.act, low, high);
  }
}

template <>
void Machine::execute(const Move& i) {
  for (int64_t c = 0; c < i.size2; ++c) {
    for (int64_t b = 0; b < i.size1; ++b) {
      for (int64_t a = 0; a < i.size0; ++a) {
        const std::byte* from =
            written(i.in_addr + c * i.in_stride2 + b * i.in_stride1 + a * i.in_stride0, i.elem_bytes);
        const int64_t to = i.out_addr + c * i.out_stride2 + b * i.out_stride1 + a * i.out_stride0;
        std::memcpy(sram(to, i.elem_bytes), from, static_cast<size_t>(i.elem_bytes));
        mark(to, i.elem_bytes);
      }
    }
  }
}

template <>
void Machine::execute(const Reduce& i) {
  HETNN_ASSERT(i.dtype == static_cast<int64_t>(DType::f32), "instruction ", at_, ": the simulator reduces f32 values");
  const float* in = read_rows(i.in_addr, i.rows, i.in_pitch, i.channels);
  const int64_t count = i.over_channels ? i.rows : i.channels;
  float* out = write_rows(i.out_addr, 1, 0, count);
  const float scale = float_of_bits(i.scale);
  std::fill_n(out, count, i.op ? -std::numeric_limits<float>::infinity() : 0.0F);
  for (int64_t r = 0; r < i.rows; ++r) {
    for (int64_t c = 0; c < i.channels; ++c) {
      const float value = in[r * i.in_pitch / kWord + c];
      float& to = out[i.over_channels ? r : c];
      to = i.op == 0 ? to + value : value > to || value != value ? value : to;
    }
  }
  for (int64_t k = 0; i.op == 0 && k < count; ++k) out[k] *= scale;
}

void Machine::run() {
  std::fill(shadow_.begin(), shadow_.end(), false);
  for (at_ = 0; at_ < instructions_.size(); ++at_) {
    std::visit(
        [&](const auto& instruction) {
          using I = std::decay_t<decltype(instruction)>;
          if constexpr (I::kEngine != Engine::none) execute(instruction);
        },
        instructions_[at_]);
  }
}

}  // namespace hetnn::sim
