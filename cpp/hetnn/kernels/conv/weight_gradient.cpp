// conv2d_weight_gradient as products: channels under a tap are the rows, filters the columns, and places of the result
// what is summed over.
//
// The images are copied plain with a border, split by the strides' phases, so that under every tap a row is one run of
// elements; the gradients are packed with zeros in the gaps that those runs have between lines.
#include <algorithm>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/kernels/conv/conv.h"
#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/gemm/panels.h"
#include "hetnn/kernels/move/transpose.h"
#include "hetnn/kernels/query/machine.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

// Copies of so many bytes are made and multiplied at a time.
int64_t chunk_bytes() { return this_machine().cache_bytes[kSecondLevel]; }

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

WindowGeometry gradient_geometry(const KernelCall& call) {
  const TensorView& weight = call.outputs[0];
  return window_geometry(call, call.inputs[0], call.inputs[1], weight.dims[2], weight.dims[3]);
}

class WeightGradient final : public Kernel {
 public:
  WeightGradient(const KernelCall& call, const WindowGeometry& g)
      : g_(g),
        lines_(g.out_height + (g.rows.kernel - 1) * g.rows.dilation / g.rows.stride),
        line_(g.out_width + (g.columns.kernel - 1) * g.columns.dilation / g.columns.stride),
        x_(call.inputs[0]),
        gradient_(call.inputs[1]) {
    // A batch is cut alike whatever the threads are: sums go on from cut to cut.
    const int64_t image_bytes = (g.channels * plane() + panels() * panel_elems()) * 4;
    const int64_t most = std::max<int64_t>(1, chunk_bytes() / std::max<int64_t>(1, image_bytes));
    const int64_t chunks = std::max<int64_t>(1, (g.batch + most - 1) / most);
    images_ = std::max<int64_t>(1, (g.batch + chunks - 1) / chunks);
    for (const int64_t images : {images_, g.batch % images_}) {
      PanelShape shape;
      shape.rows = g.channels / g.groups * g.taps();
      shape.taps = images;
      shape.k = places();
      shape.cols = g.out_channels / g.groups;
      shape.a_bytes = images * g.channels / g.groups * plane() * 4;
      products_.emplace_back(shape, EpiloguePlan());
      product_bytes_ = std::max(product_bytes_, products_.back().scratch_bytes_per_thread());
    }
  }

  int64_t scratch_bytes(int threads) const override {
    return sums_bytes() + copy_bytes() + packed_bytes() + threads * aligned(product_bytes_);
  }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    auto* sums = reinterpret_cast<float*>(context.scratch);
    auto* copy = reinterpret_cast<float*>(context.scratch + sums_bytes());
    auto* packed = reinterpret_cast<float*>(context.scratch + sums_bytes() + copy_bytes());
    std::byte* own =
        context.scratch + sums_bytes() + copy_bytes() + packed_bytes() + context.thread * aligned(product_bytes_);
    for (int64_t first = 0; first < g_.batch; first += images_) {
      const int64_t images = std::min(images_, g_.batch - first);
      copy_images(first, images, reinterpret_cast<const float*>(inputs[0]), copy, context);
      pack_gradients(first, images, reinterpret_cast<const float*>(inputs[1]), packed, context);
      context.barrier.arrive_and_wait();
      multiply(products_[images == images_ ? 0 : 1], first > 0, copy, packed, sums, own, context);
      context.barrier.arrive_and_wait();
    }
    write(sums, reinterpret_cast<float*>(outputs[0]), context);
  }

 private:
  /// The elements of a group's channel c under tap t are row c * taps + t, a run of them in every image.
  class Rows final : public RowSource {
   public:
    Rows(const WeightGradient& of, const float* copy, int64_t images) : of_(of), copy_(copy), images_(images) {}
    void fill(int64_t first, int64_t count, const std::byte** table, int64_t stride) const override {
      const WindowGeometry& g = of_.g_;
      for (int64_t r = 0; r < count; ++r) {
        const int64_t c = (first + r) / g.taps(), tap = (first + r) % g.taps();
        const int64_t y = tap / g.columns.kernel * g.rows.dilation, x = tap % g.columns.kernel * g.columns.dilation;
        const int64_t phase = y % g.rows.stride * g.columns.stride + x % g.columns.stride;
        const float* at =
            copy_ + c * of_.plane() + (phase * of_.lines_ + y / g.rows.stride) * of_.line_ + x / g.columns.stride;
        for (int64_t image = 0; image < images_; ++image, at += g.channels * of_.plane())
          table[image * stride + r] = reinterpret_cast<const std::byte*>(at);
      }
    }

   private:
    const WeightGradient& of_;
    const float* copy_;
    int64_t images_;
  };

  // Elements of a channel of an image in the copy: [phases of rows][phases of columns][lines][line].
  int64_t plane() const { return g_.rows.stride * g_.columns.stride * lines_ * line_; }
  // What is summed over in an image: from the first place of the result to the last, the gaps between lines too.
  int64_t places() const { return (g_.out_height - 1) * line_ + g_.out_width; }
  int64_t panel_elems() const { return places() * kPanel; }  // of an image
  int64_t group_panels() const { return (g_.out_channels / g_.groups + kPanel - 1) / kPanel; }
  int64_t panels() const { return g_.groups * group_panels(); }
  int64_t copy_bytes() const { return aligned(images_ * g_.channels * plane() * 4); }
  int64_t packed_bytes() const { return aligned(images_ * panels() * panel_elems() * 4); }
  int64_t sums_bytes() const { return aligned(g_.channels * g_.taps() * (g_.out_channels / g_.groups) * 4); }

  // [images][channels][plane] of this thread's lines.
  void copy_images(int64_t first, int64_t images, const float* x, float* copy, const RunContext& context) const {
    const int64_t down = g_.rows.stride, across = g_.columns.stride;
    const Share share = share_of(images * down * across * lines_, context.thread, context.threads);
    for (int64_t unit = share.begin; unit < share.end; ++unit) {
      const int64_t line = unit % lines_, phase = unit / lines_ % (down * across),
                    image = unit / lines_ / (down * across);
      const int64_t y = line * down + phase / across - g_.rows.before, left = phase % across - g_.columns.before;
      float* to = copy + image * g_.channels * plane() + (phase * lines_ + line) * line_;
      // Elements i of the line whose column left + i * across lies in the image.
      const bool inside = y >= 0 && y < g_.height;
      const int64_t begin = inside ? std::min(line_, left < 0 ? (-left + across - 1) / across : 0) : line_;
      const int64_t end = std::clamp(left < g_.width ? (g_.width - left + across - 1) / across : 0, begin, line_);
      for (int64_t c = 0; c < g_.channels; ++c) {
        std::fill_n(to + c * plane(), begin, 0.0f);
        std::fill_n(to + c * plane() + end, line_ - end, 0.0f);
      }
      if (begin == end) continue;
      const int64_t from = y * g_.width + left + begin * across;
      if (x_.layout == Layout::nhwc) {
        transpose(x + ((first + image) * g_.height * g_.width + from) * x_.pitch_elems, across * x_.pitch_elems,
                  to + begin, plane(), end - begin, g_.channels);
        continue;
      }
      for (int64_t c = 0; c < g_.channels; ++c) {
        const float* row = x + ((first + image) * g_.channels + c) * g_.height * g_.width + from;
        for (int64_t i = begin; i < end; ++i) to[c * plane() + i] = row[(i - begin) * across];
      }
    }
  }

  // [panels][images][places][16] of this thread's lines.
  void pack_gradients(int64_t first, int64_t images, const float* gradient, float* packed,
                      const RunContext& context) const {
    const int64_t cols = g_.out_channels / g_.groups, size = g_.out_height * g_.out_width;
    const Share share = share_of(panels() * images * g_.out_height, context.thread, context.threads);
    for (int64_t unit = share.begin; unit < share.end; ++unit) {
      const int64_t y = unit % g_.out_height, image = unit / g_.out_height % images,
                    panel = unit / g_.out_height / images;
      const int64_t in_group = panel % group_panels() * kPanel, channel = panel / group_panels() * cols + in_group;
      const int64_t some = std::min(kPanel, cols - in_group);
      float* to = packed + (panel * images + image) * panel_elems() + y * line_ * kPanel;
      const bool is_last = y + 1 == g_.out_height;
      std::fill_n(to + g_.out_width * kPanel, is_last ? 0 : (line_ - g_.out_width) * kPanel, 0.0f);
      if (some < kPanel) std::fill_n(to, g_.out_width * kPanel, 0.0f);
      if (gradient_.layout == Layout::nhwc) {
        const float* from = gradient + ((first + image) * size + y * g_.out_width) * gradient_.pitch_elems + channel;
        for (int64_t i = 0; i < g_.out_width; ++i, from += gradient_.pitch_elems)
          std::copy_n(from, some, to + i * kPanel);
      } else {
        transpose(gradient + ((first + image) * g_.out_channels + channel) * size + y * g_.out_width, size, to, kPanel,
                  some, g_.out_width);
      }
    }
  }

  // sums [groups][rows][columns], on top of what they are where this goes on.
  void multiply(const PanelProduct& product, bool goes_on, const float* copy, const float* packed, float* sums,
                std::byte* scratch, const RunContext& context) const {
    const PanelShape& shape = product.shape();
    const bool apart = g_.groups >= 2 * context.threads;  // groups are dealt out whole
    const Share groups = apart ? share_of(g_.groups, context.thread, context.threads) : Share{0, g_.groups};
    for (int64_t group = groups.begin; group < groups.end; ++group) {
      const Rows rows(*this, copy + group * (g_.channels / g_.groups) * plane(), shape.taps);
      PanelRun run;
      run.source = &rows;
      run.panels = packed + group * shape.packed_bytes() / 4;
      run.out = sums + group * shape.rows * shape.cols;
      run.ld_out = shape.cols;
      if (goes_on) run.addend = run.out;
      run.ld_addend = run.ld_out;
      product.run(run, apart ? 0 : context.thread, apart ? 1 : context.threads, scratch);
    }
  }

  // [filters][channels of a group][taps] of this thread's rows.
  void write(const float* sums, float* out, const RunContext& context) const {
    const PanelShape& shape = products_[0].shape();
    const Share rows = share_of(shape.rows, context.thread, context.threads);
    for (int64_t group = 0; group < g_.groups;
         ++group, sums += shape.rows * shape.cols, out += shape.rows * shape.cols) {
      if (g_.batch > 0) {
        transpose(sums + rows.begin * shape.cols, shape.cols, out + rows.begin, shape.rows, rows.end - rows.begin,
                  shape.cols);
        continue;
      }
      for (int64_t o = 0; o < shape.cols; ++o)
        std::fill(out + o * shape.rows + rows.begin, out + o * shape.rows + rows.end, 0.0f);
    }
  }

  WindowGeometry g_;
  int64_t lines_, line_;
  TensorView x_, gradient_;
  int64_t images_;                      // of the batch at once
  std::vector<PanelProduct> products_;  // of so many images, and of those that are left at the end
  int64_t product_bytes_ = 0;
};

}  // namespace

Refusal serves_conv2d_weight_gradient(const KernelCall& call) {
  return Terms("conv2d_weight_gradient", call).of(DType::f32, 2).hold(refuse_windows(call));
}

std::unique_ptr<Kernel> make_conv2d_weight_gradient(const KernelCall& call) {
  return std::make_unique<WeightGradient>(call, gradient_geometry(call));
}

}  // namespace hetnn::kernels
