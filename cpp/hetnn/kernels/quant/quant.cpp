// One loop over both layouts, with the conversion of an element as its parameter.
#include "hetnn/kernels/quant/quant.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>

#include "hetnn/base/convert.h"
#include "hetnn/base/error.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/base/steps.h"
#include "hetnn/kernels/elementwise/nary_narrow_ops.h"
#include "hetnn/kernels/nest.h"
#include "hetnn/kernels/quant/rows.h"
#include "hetnn/kernels/quant/tables.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kTileElems = 16384;
constexpr int64_t kSerialElems = 4096;

// y[i] = convert(x[i]).
template <typename From, typename To, typename Convert>
class ConvertKernel final : public Kernel {
 public:
  ConvertKernel(const TensorView& x, const TensorView& y, std::string_view name, Convert convert)
      : nest_(y.shape(), {{strides_of(y), 0}, broadcast_operand(x, y.shape(), name)}), convert_(std::move(convert)) {}

  bool serial() const override { return nest_.elems() <= kSerialElems; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const auto* from = reinterpret_cast<const From*>(inputs[0]);
    auto* to = reinterpret_cast<To*>(outputs[0]);
    nest_.for_tiles(context.thread, context.threads, kTileElems, [&](const Nest::Tile& tile) {
      for (int64_t row = 0; row < tile.rows; ++row) {
        To* y = to + tile.offsets[0] + row * nest_.row_stride(0);
        const From* x = from + tile.offsets[1] + row * nest_.row_stride(1);
        const int64_t dy = nest_.col_stride(0), dx = nest_.col_stride(1);
        if (dy == 1 && dx == 1) {
          for (int64_t k = 0; k < tile.cols; ++k) y[k] = convert_(x[k]);
        } else {
          for (int64_t k = 0; k < tile.cols; ++k) y[k * dy] = convert_(x[k * dx]);
        }
      }
    });
  }

 private:
  Nest nest_;
  Convert convert_;
};

// The same for any two element types: rows side by side are converted where they lie, others are gathered and scattered
// a block at a time.
class CastKernel final : public Kernel {
 public:
  CastKernel(const TensorView& x, const TensorView& y)
      : nest_(y.shape(), {{strides_of(y), 0}, broadcast_operand(x, y.shape(), "cast")}),
        from_(x.dtype),
        to_(y.dtype),
        convert_(from_, to_) {
    const bool widens = to_ == DType::f32 && is_narrow_float(from_),
               narrows = from_ == DType::f32 && is_narrow_float(to_);
    if (widens || narrows) halves_ = halves_conversion(widens ? from_ : to_);
  }

  bool serial() const override { return nest_.elems() <= kSerialElems; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const int64_t from_bytes = dtype_bytes(from_), to_bytes = dtype_bytes(to_);
    nest_.for_tiles(context.thread, context.threads, kTileElems, [&](const Nest::Tile& tile) {
      for (int64_t row = 0; row < tile.rows; ++row) {
        convert_row(inputs[0] + (tile.offsets[1] + row * nest_.row_stride(1)) * from_bytes,
                    outputs[0] + (tile.offsets[0] + row * nest_.row_stride(0)) * to_bytes, tile.cols);
      }
    });
  }

 private:
  static constexpr int64_t kBlock = 256;

  void convert(const std::byte* x, std::byte* y, int64_t count) const {
    if (!halves_) return convert_(x, y, count);
    if (to_ == DType::f32)
      return halves_->widen(reinterpret_cast<const uint16_t*>(x), reinterpret_cast<float*>(y), count);
    halves_->narrow(reinterpret_cast<const float*>(x), reinterpret_cast<uint16_t*>(y), count);
  }

  void convert_row(const std::byte* x, std::byte* y, int64_t count) const {
    const int64_t dx = nest_.col_stride(1), dy = nest_.col_stride(0);
    if (dx == 1 && dy == 1) return convert(x, y, count);
    alignas(64) std::byte from[kBlock * 8], to[kBlock * 8];
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t some = std::min(kBlock, count - begin);
      visit_width(from_, [&](auto zero) {
        using U = decltype(zero);
        const U* in = reinterpret_cast<const U*>(x) + begin * dx;
        for (int64_t k = 0; k < some; ++k) reinterpret_cast<U*>(from)[k] = in[k * dx];
      });
      convert(from, to, some);
      visit_width(to_, [&](auto zero) {
        using U = decltype(zero);
        U* out = reinterpret_cast<U*>(y) + begin * dy;
        for (int64_t k = 0; k < some; ++k) out[k * dy] = reinterpret_cast<const U*>(to)[k];
      });
    }
  }

  Nest nest_;
  DType from_, to_;
  ConvertElements convert_;
  std::optional<HalvesConversion> halves_ = std::nullopt;
};

template <typename From, typename To, typename Convert>
std::unique_ptr<Kernel> make(const KernelCall& call, std::string_view name, Convert convert) {
  return std::make_unique<ConvertKernel<From, To, Convert>>(call.inputs[0], call.outputs[0], name, std::move(convert));
}

bool is_narrow_integer(DType dtype) { return dtype == DType::i8 || dtype == DType::u8 || dtype == DType::i16; }

// What quantize and dequantize share: one scale, and the type of the integers.
Refusal serves_integers(std::string_view name, const KernelCall& call, DType integers) {
  const DType x = call.inputs[0].dtype;
  return Terms(name, call)
      .hold(is_narrow_integer(integers) || (integers == DType::i32 && x == integers), "takes i8, u8 and i16; got ",
            dtype_name(integers))
      .hold(call.params.integer("scale_count", 1) == 1, "takes one scale; got one for each index of an axis");
}

// Calls f(T{}) with the C++ type of i8, u8 or i16.
template <typename F>
std::unique_ptr<Kernel> visit_narrow(DType dtype, F&& f) {
  if (dtype == DType::i8) return f(int8_t{});
  if (dtype == DType::u8) return f(uint8_t{});
  HETNN_ASSERT(dtype == DType::i16, dtype_name(dtype));
  return f(int16_t{});
}

// The same by rows, where the elements of both sides lie side by side; others one by one.
template <typename From, typename To, typename Rows>
class RowsKernel final : public Kernel {
 public:
  RowsKernel(const KernelCall& call, std::string_view name, Rows rows)
      : nest_(call.outputs[0].shape(),
              {{strides_of(call.outputs[0]), 0}, broadcast_operand(call.inputs[0], call.outputs[0].shape(), name)}),
        rows_(rows) {}

  bool serial() const override { return nest_.elems() <= kSerialElems; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const int64_t dy = nest_.col_stride(0), dx = nest_.col_stride(1);
    nest_.for_tiles(context.thread, context.threads, kTileElems, [&](const Nest::Tile& tile) {
      for (int64_t row = 0; row < tile.rows; ++row) {
        const From* x = reinterpret_cast<const From*>(inputs[0]) + tile.offsets[1] + row * nest_.row_stride(1);
        To* y = reinterpret_cast<To*>(outputs[0]) + tile.offsets[0] + row * nest_.row_stride(0);
        if (dx == 1 && dy == 1) {
          rows_(x, tile.cols, y);
          continue;
        }
        From from[kBlock];
        To to[kBlock];
        for (int64_t c = 0; c < tile.cols; c += kBlock) {
          const int64_t n = std::min(kBlock, tile.cols - c);
          for (int64_t k = 0; k < n; ++k) from[k] = x[(c + k) * dx];
          rows_(from, n, to);
          for (int64_t k = 0; k < n; ++k) y[(c + k) * dy] = to[k];
        }
      }
    });
  }

 private:
  static constexpr int64_t kBlock = 256;

  Nest nest_;
  Rows rows_;
};

// rows(x, n, y) converts so many.
template <typename From, typename To, typename Rows>
std::unique_ptr<Kernel> make_by_rows(const KernelCall& call, std::string_view name, Rows rows) {
  return std::make_unique<RowsKernel<From, To, Rows>>(call, name, rows);
}

std::unique_ptr<Kernel> of_table(const KernelCall& call, std::string_view name,
                                 const std::array<int8_t, 256>& entries) {
  return make_by_rows<int8_t, int8_t>(call, name,
                                      [entries, look_up = quant_rows().look_up](const int8_t* x, int64_t n, int8_t* y) {
                                        look_up(x, n, entries.data(), y);
                                      });
}

}  // namespace

Refusal serves_quantize(const KernelCall& call) {
  return Terms("quantize", call)
      .is(call.inputs[0], DType::f32, "its input")
      .hold(serves_integers("quantize", call, call.outputs[0].dtype));
}

std::unique_ptr<Kernel> make_quantize(const KernelCall& call) {
  const DType to = call.outputs[0].dtype;
  const double scale = call.params.real("scale");
  const int64_t zero = call.params.integer("zero_point", 0);
  return visit_narrow(to, [&]<typename T>(T) -> std::unique_ptr<Kernel> {
    if (call.params.text("q_rounding", "half_even_fp32") != "half_even_fp32")
      return make<float, T>(call, "quantize", [scale, zero](float x) { return integer_of<T, true>(x, scale, zero); });
    if constexpr (std::is_same_v<T, int8_t>) {
      return make_by_rows<float, T>(
          call, "quantize",
          [to_integers = quant_rows().to_integers, scale = static_cast<float>(scale),
           zero = static_cast<int32_t>(zero)](const float* x, int64_t n, T* y) { to_integers(x, n, scale, zero, y); });
    } else {
      return make<float, T>(call, "quantize", [scale, zero](float x) { return integer_of<T>(x, scale, zero); });
    }
  });
}

Refusal serves_dequantize(const KernelCall& call) {
  return Terms("dequantize", call)
      .is(call.outputs[0], DType::f32, "its output")
      .hold(serves_integers("dequantize", call, call.inputs[0].dtype));
}

std::unique_ptr<Kernel> make_dequantize(const KernelCall& call) {
  const DType from = call.inputs[0].dtype;
  const double scale = call.params.real("scale");
  const int64_t zero = call.params.integer("zero_point", 0);
  auto to_real = [scale, zero](auto q) { return real_of(q, scale, zero); };
  if (from == DType::i32) return make<int32_t, float>(call, "dequantize", to_real);
  return visit_narrow(from, [&]<typename T>(T) -> std::unique_ptr<Kernel> {
    if constexpr (std::is_same_v<T, int8_t>) {
      return make_by_rows<T, float>(
          call, "dequantize",
          [to_reals = quant_rows().to_reals, scale = static_cast<float>(scale), zero = static_cast<int32_t>(zero)](
              const T* x, int64_t n, float* y) { to_reals(x, n, scale, zero, y); });
    } else {
      return make<T, float>(call, "dequantize", to_real);
    }
  });
}

Refusal serves_lookup(const KernelCall& call) { return Terms("lookup", call).of(DType::i8, 1); }

std::unique_ptr<Kernel> make_lookup(const KernelCall& call) {
  const std::vector<int64_t> table = call.params.integers("table");
  HETNN_ASSERT(table.size() == 256, table.size(), " entries");
  std::array<int8_t, 256> entries{};
  std::transform(table.begin(), table.end(), entries.begin(), [](int64_t entry) { return static_cast<int8_t>(entry); });
  return of_table(call, "lookup", entries);
}

Refusal serves_integer_unary(const KernelCall& call) {
  return Terms("unary_i8", call).of(DType::i8, 1).hold(refuse_scales(call));
}

std::unique_ptr<Kernel> make_integer_unary(const KernelCall& call) {
  const std::vector<int8_t> table = table_of(call);
  std::array<int8_t, 256> entries{};
  std::ranges::copy(table, entries.begin());
  return of_table(call, "unary_i8", entries);
}

Refusal serves_cast(const KernelCall& call) {
  const DType from = call.inputs[0].dtype, to = call.outputs[0].dtype;
  return Terms("cast", call)
      .hold(!is_stored(from) && !is_stored(to), "converts what is computed in; got ", dtype_name(from), " to ",
            dtype_name(to));
}

std::unique_ptr<Kernel> make_cast(const KernelCall& call) {
  return std::make_unique<CastKernel>(call.inputs[0], call.outputs[0]);
}

std::span<const Variant> quant_variants() {
  static constexpr Variant kVariants[] = {
      {.name = "cast", .op = "cast", .speed = "elementwise", .serves = serves_cast, .create = make_cast},
      {.name = "quantize", .op = "quantize", .speed = "move", .serves = serves_quantize, .create = make_quantize},
      {.name = "dequantize",
       .op = "dequantize",
       .speed = "move",
       .serves = serves_dequantize,
       .create = make_dequantize},
      {.name = "lookup", .op = "lookup", .speed = "move", .serves = serves_lookup, .create = make_lookup},
      {.name = "unary_i8",
       .op = "",
       .speed = "move",
       .serves = serves_integer_unary,
       .create = make_integer_unary,
       .integers = true},
  };
  return kVariants;
}

}  // namespace hetnn::kernels
