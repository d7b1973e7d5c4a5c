// Weights of Winograd convolutions, transformed.
#include "hetnn/base/error.h"
#include "hetnn/kernels/conv/implicit.h"
#include "hetnn/kernels/conv/winograd.h"
#include "hetnn/kernels/conv/winograd_transform.h"
#include "hetnn/kernels/gemm/panels.h"

namespace hetnn::kernels {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// U = G w G^T in double, then w; a part is sixteen columns of all matrices and of w. Of lines U = G w.
class WinogradPacker final : public Packer {
 public:
  explicit WinogradPacker(const WindowGeometry& g)
      : taps_(g.taps()),
        points_(WinogradTiles(g, kWinogradOutput).points()),
        channels_(g.channels),
        out_channels_(g.out_channels),
        itself_(direct_shape(g), PackStrides{0, g.channels * g.taps(), 1, g.taps()}) {
    // Row i of G is (1, p, p^2) / product of (p - q) over the other finite points q; the last (0, 0, 1).
    const double points[5] = {0, kWinogradA, -kWinogradA, kWinogradB, -kWinogradB};
    for (int i = 0; i < 5; ++i) {
      double divisor = 1;
      for (int j = 0; j < 5; ++j)
        if (j != i) divisor *= points[i] - points[j];
      for (int power = 0; power < 3; ++power)
        transform_[i][power] = (power == 0 ? 1.0 : power == 1 ? points[i] : points[i] * points[i]) / divisor;
    }
    transform_[5][2] = 1;
  }

  int64_t packed_bytes() const override { return points_ * point_elems() * 4 + itself_.packed_bytes(); }
  int64_t parts() const override { return ceil_div(out_channels_, kPanel); }
  void pack(Share parts, const std::byte* weight, std::byte* packed) const override {
    auto* to = reinterpret_cast<float*>(packed);
    for (int64_t o = parts.begin * kPanel; o < parts.end * kPanel; ++o)
      o < out_channels_ ? pack_filter(o, reinterpret_cast<const float*>(weight), to) : clear_filter(o, to);
    itself_.pack(parts, weight, packed + points_ * point_elems() * 4);
  }

 private:
  int64_t point_elems() const { return ceil_div(out_channels_, kPanel) * channels_ * kPanel; }
  float* place(int64_t o, int64_t c, float* to) const {
    return to + (o / kPanel * channels_ + c) * kPanel + o % kPanel;
  }

  void clear_filter(int64_t o, float* to) const {
    for (int64_t c = 0; c < channels_; ++c)
      for (int64_t point = 0; point < points_; ++point) place(o, c, to)[point * point_elems()] = 0;
  }

  // Row i of G times three elements `step` apart.
  double transformed(int i, const auto* w, int64_t step) const {
    return transform_[i][0] * w[0] + transform_[i][1] * w[step] + transform_[i][2] * w[2 * step];
  }

  void pack_filter(int64_t o, const float* weight, float* to) const {
    for (int64_t c = 0; c < channels_; ++c) {
      const float* w = weight + (o * channels_ + c) * taps_;
      float* at = place(o, c, to);
      for (int i = 0; i < kWinogradInput; ++i) {
        if (taps_ == 3) {
          at[i * point_elems()] = static_cast<float>(transformed(i, w, 1));
          continue;
        }
        const double half[3] = {transformed(i, w, 3), transformed(i, w + 1, 3), transformed(i, w + 2, 3)};
        for (int j = 0; j < kWinogradInput; ++j)
          at[(i * kWinogradInput + j) * point_elems()] = static_cast<float>(transformed(j, half, 1));
      }
    }
  }

  int64_t taps_, points_;
  int64_t channels_, out_channels_;
  PanelPacker itself_;
  double transform_[kWinogradInput][3] = {};
};

}  // namespace

int64_t transformed_bytes(const WindowGeometry& g, int64_t side) {
  const WinogradTiles tiles(g, side);
  return tiles.store_weights() ? tiles.points() * ceil_div(g.out_channels, kPanel) * g.channels * kPanel * 4 : 0;
}

std::unique_ptr<Packer> make_winograd_packer(const WindowGeometry& g) {
  HETNN_ASSERT(!refuse_winograd(g, kWinogradOutput));
  return std::make_unique<WinogradPacker>(g);
}

}  // namespace hetnn::kernels
