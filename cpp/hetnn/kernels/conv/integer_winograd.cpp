// Winograd convolution of bytes: tiles in, 36 products, tiles out.
#include "hetnn/kernels/conv/integer_winograd.h"

#include <algorithm>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/base/error.h"
#include "hetnn/kernels/conv/implicit.h"
#include "hetnn/kernels/conv/integer_winograd_transform.h"
#include "hetnn/kernels/conv/winograd.h"
#include "hetnn/kernels/gemm/integer_product.h"
#include "hetnn/kernels/isa.h"

namespace hetnn::kernels {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

constexpr int64_t kOutputs = kWinogradOutput;
// 9 * C * 128 * 128 stays below 2^25.
constexpr int64_t kMostChannels = 227;
// Transformed inputs of a block of tiles, which stay in a second-level cache with the weights of a tile's columns.
constexpr int64_t kBlock_bytes = 512 << 10;
constexpr int64_t kApart = kPointsApart_bytes / static_cast<int64_t>(sizeof(int16_t));
constexpr int64_t kLine_bytes = 64, kLineElems = kLine_bytes / 2;

int64_t panels_of(const WindowGeometry& g) { return ceil_div(g.out_channels, kPanel); }
int64_t panel_elems(const WindowGeometry& g) { return ceil_div(g.channels, 2) * 2 * kPanel; }

class IntegerWinogradConv final : public Kernel {
 public:
  IntegerWinogradConv(const KernelCall& call, const WindowGeometry& g)
      : g_(g),
        tiles_(g, kWinogradOutput),
        stride_(ceil_div(g.channels, kWordsAtOnce) * kWordsAtOnce),
        product_(direct_shape(g, 1), call),
        bias_(call.params.integer("bias", 0) != 0),
        in_pitch_(call.inputs[0].pitch_elems),
        out_pitch_(call.outputs[0].pitch_elems),
        zeros_(static_cast<size_t>(g.channels)),
        micro_(&integer_micro_table().words),
        transforms_(&integer_winograd_table()) {
    std::fill_n(zeros_.as<int8_t>(), g.channels, product_.row_zero());
    width_ = micro_->max_rows[2] > 0 && panels_of(g) > 1 ? 2 : 1;
    const int64_t most_rows = micro_->max_rows[width_];
    const int64_t fitting = kBlock_bytes / (kWinogradPoints * stride_ * 2);
    block_tiles_ = std::min(tiles_.count(), std::max(most_rows, fitting / most_rows * most_rows));
  }

  int64_t scratch_bytes(int threads) const override { return threads * bytes_per_thread(); }
  bool serial() const override { return product_.shape().is_small(); }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    std::byte* const scratch = context.scratch + context.thread * bytes_per_thread();
    const auto run = product_.run_on(inputs, inputs[1], bias_ ? inputs[2] : nullptr, outputs[0], out_pitch_);
    const auto* weights =
        reinterpret_cast<const int16_t*>(inputs[1] + IntegerProduct::packed_bytes(product_.shape(), 1));
    const Share share = share_of(tiles_.count(), context.thread, context.threads);
    const int64_t blocks = ceil_div(share.end - share.begin, block_tiles_);
    for (int64_t i = 0; i < blocks; ++i) {
      const Share tiles{share.begin + (share.end - share.begin) * i / blocks,
                        share.begin + (share.end - share.begin) * (i + 1) / blocks};
      transform_input(tiles, inputs[0], weights, reinterpret_cast<int16_t*>(scratch));
      multiply(tiles, run, weights, scratch);
      each_line(tiles, [&](const Line& line) { product_.add_to(run, line.pixels); });
    }
  }

 private:
  // Outputs of one row of the image, and where they stand among those of some tiles.
  struct Line {
    Share pixels;
    int64_t row, first;  // of the tiles: 0 to 3; the first tile's number
  };

  int64_t point() const { return block_tiles_ * stride_ + kApart; }
  int64_t products_point() const { return int64_t{micro_->max_rows[width_]} * width_ * kPanel; }
  int64_t inputs_bytes() const { return kWinogradPoints * point() * 2; }
  int64_t products_bytes() const { return kWinogradPoints * products_point() * 4; }
  int64_t sums_bytes() const { return kOutputs * kOutputs * products_point() * 4; }
  int64_t bytes_per_thread() const { return ceil_div(inputs_bytes() + products_bytes() + sums_bytes(), 64) * 64; }

  // Meanwhile, the weights of the first columns are fetched.
  void transform_input(Share tiles, const std::byte* input, const int16_t* weights, int16_t* to) const {
    const auto* x = reinterpret_cast<const int8_t*>(input);
    const int8_t* pixels[kWinogradPoints];
    const int64_t elems = std::min<int64_t>(width_, panels_of(g_)) * panel_elems(g_);
    const int64_t count = tiles.end - tiles.begin;
    for (int64_t tile = tiles.begin; tile < tiles.end; ++tile, to += stride_) {
      const WinogradTiles::Place place = tiles_.place_of(tile);
      const int64_t iy = place.y - g_.rows.before, ix = place.x - g_.columns.before;
      const int64_t left = std::clamp<int64_t>(-ix, 0, kWinogradInput);
      const int64_t right = std::clamp<int64_t>(g_.width - ix, left, kWinogradInput);
      for (int64_t r = 0; r < kWinogradInput; ++r) {
        const bool inside = iy + r >= 0 && iy + r < g_.height;
        const int8_t* row = x + ((place.n * g_.height + iy + r) * g_.width + ix) * in_pitch_;
        const int8_t** const of_row = pixels + r * kWinogradInput;
        for (int64_t c = 0; c < kWinogradInput; ++c) of_row[c] = row + c * in_pitch_;
        if (!inside || left > 0) std::fill_n(of_row, inside ? left : kWinogradInput, zeros_.as<int8_t>());
        if (right < kWinogradInput) std::fill_n(of_row + right, kWinogradInput - right, zeros_.as<int8_t>());
      }
      for (int64_t p = kWinogradPoints * (tile - tiles.begin) / count;
           p < kWinogradPoints * (tile - tiles.begin + 1) / count; ++p)
        for (int64_t at = 0; at < elems; at += kLineElems)
          __builtin_prefetch(weights + p * panels_of(g_) * panel_elems(g_) + at, 0, 2);
      transforms_->input({pixels, to, point(), g_.channels});
    }
  }

  // Of some columns at a time and as many tiles as registers hold: all points, then the outputs.
  void multiply(Share tiles, const IntegerRun& run, const int16_t* weights, std::byte* scratch) const {
    const auto* inputs = reinterpret_cast<const int16_t*>(scratch);
    auto* products = reinterpret_cast<int32_t*>(scratch + inputs_bytes());
    auto* sums = reinterpret_cast<int32_t*>(scratch + inputs_bytes() + products_bytes());
    const int64_t panels = panels_of(g_), elems = panel_elems(g_);
    const int64_t count = tiles.end - tiles.begin, chunks = ceil_div(count, micro_->max_rows[width_]);
    const std::byte* rows[kMaxIntegerRows];
    IntegerTile part{};
    part.rows = rows;
    part.taps = 1;
    part.k = ceil_div(g_.channels, 2) * 4;
    part.panel_stride = elems * 2;
    for (int64_t panel = 0; panel < panels; panel += width_) {
      const int64_t width = std::min<int64_t>(width_, panels - panel), cols = width * kPanel;
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        const int64_t begin = count * chunk / chunks, end = count * (chunk + 1) / chunks;
        // Each chunk fetches a part of the next columns' weights.
        const int64_t fetched = chunk * elems;
        const bool fetch =
            panel + width < panels && fetched < elems * std::min<int64_t>(width_, panels - panel - width);
        for (int64_t p = 0; p < kWinogradPoints; ++p) {
          for (int64_t r = begin; r < end; ++r)
            rows[r - begin] = reinterpret_cast<const std::byte*>(inputs + p * point() + r * stride_);
          part.panel = reinterpret_cast<const std::byte*>(weights + (p * panels + panel) * elems);
          part.prefetch = fetch ? part.panel + (width * elems + fetched) * 2 : part.panel;
          part.prefetch_step = fetch ? kLine_bytes : 0;
          part.sums = products + p * products_point();
          micro_->run[width][end - begin](part);
        }
        const int64_t line = (end - begin) * kOutputs * cols;
        for (int64_t r = begin; r < end; ++r)
          transforms_->output({products + (r - begin) * cols, products_point(), sums + (r - begin) * kOutputs * cols,
                               line, cols, cols});
        const Share columns{panel * kPanel, std::min(g_.out_channels, panel * kPanel + cols)};
        each_line({tiles.begin + begin, tiles.begin + end}, [&](const Line& of) {
          product_.finish(run, {sums + of.row * line + of.first * kOutputs * cols, cols, of.pixels, columns});
        });
      }
    }
  }

  // Tiles side by side have rows of outputs that lie side by side.
  template <typename Do>
  void each_line(Share tiles, const Do& act) const {
    for (int64_t tile = tiles.begin; tile < tiles.end;) {
      const WinogradTiles::Place at = tiles_.place_of(tile);
      const int64_t count = std::min(tiles_.columns.tiles - tile % tiles_.columns.tiles, tiles.end - tile);
      for (int64_t row = 0; row < at.rows; ++row) {
        const int64_t first = ((at.n * g_.out_height) + at.y + row) * g_.out_width;
        act(Line{{first + at.x, first + std::min(g_.out_width, at.x + count * kOutputs)}, row, tile - tiles.begin});
      }
      tile += count;
    }
  }

  WindowGeometry g_;
  WinogradTiles tiles_;
  int64_t stride_;  // elements from one tile's transformed channels to the next one's
  IntegerProduct product_;
  bool bias_;
  int64_t in_pitch_, out_pitch_;
  AlignedBuffer zeros_;
  const IntegerTiles* micro_;
  const IntegerWinogradTable* transforms_;
  int width_ = 1;
  int64_t block_tiles_ = 1;
};

// Rows of G, each by what keeps it whole: 24, -6, -6, 24, 24 and 6.
constexpr int32_t kWeightTransform[kWinogradInput][3] = {{6, 0, 0}, {-1, -1, -1}, {-1, 1, -1},
                                                         {1, 2, 4}, {1, -2, 4},   {0, 0, 6}};

}  // namespace

Refusal refuse_integer_winograd(const WindowGeometry& g, int32_t weight_zero) {
  if (Refusal refused = refuse_winograd(g, kWinogradOutput)) return refused;
  if (g.taps() != 9 || g.rows.dilation != 1 || g.columns.dilation != 1)
    return text("winograd of bytes takes 3x3 windows of dilation 1; got ", g.rows.kernel, "x", g.columns.kernel,
                ", dilation ", g.rows.dilation, "x", g.columns.dilation, ".");
  if (weight_zero != 0) return text("winograd of bytes takes weights of zero point 0; got ", weight_zero, ".");
  if (g.channels > kFewChannels && g.channels <= kMostChannels) return std::nullopt;
  return text("winograd of bytes sums ", kFewChannels + 1, " to ", kMostChannels, " channels; got ", g.channels, ".");
}

bool has_integer_winograd() { return integer_winograd_table().input != nullptr && !uses_amx(); }

std::unique_ptr<Kernel> make_integer_winograd_conv(const KernelCall& call, const WindowGeometry& g) {
  return std::make_unique<IntegerWinogradConv>(call, g);
}

int64_t integer_winograd_bytes(const WindowGeometry& g) { return kWinogradPoints * panels_of(g) * panel_elems(g) * 2; }

void transform_integer_weight(const WindowGeometry& g, std::span<const std::byte> weight, std::byte* to) {
  const auto* w = reinterpret_cast<const int8_t*>(weight.data());
  auto* words = reinterpret_cast<int16_t*>(to);
  const int64_t point = panels_of(g) * panel_elems(g);
  for (int64_t o = 0; o < g.out_channels; ++o) {
    for (int64_t c = 0; c < g.channels; ++c, w += 9) {
      int32_t half[kWinogradInput][3];
      for (int i = 0; i < kWinogradInput; ++i)
        for (int col = 0; col < 3; ++col)
          half[i][col] = kWeightTransform[i][0] * w[col] + kWeightTransform[i][1] * w[3 + col] +
                         kWeightTransform[i][2] * w[6 + col];
      int16_t* at = words + o / kPanel * panel_elems(g) + (c / 2 * kPanel + o % kPanel) * 2 + c % 2;
      for (int i = 0; i < kWinogradInput; ++i)
        for (int j = 0; j < kWinogradInput; ++j, at += point)
          *at = static_cast<int16_t>(half[i][0] * kWeightTransform[j][0] + half[i][1] * kWeightTransform[j][1] +
                                     half[i][2] * kWeightTransform[j][2]);
    }
  }
}

}  // namespace hetnn::kernels
