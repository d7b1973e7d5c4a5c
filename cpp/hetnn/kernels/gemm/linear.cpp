// linear: rows of the input times a packed weight.
#include <algorithm>
#include <cstring>

#include "hetnn/base/error.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/kernels/gemm/amx_micro.h"
#include "hetnn/kernels/gemm/brain_product.h"
#include "hetnn/kernels/gemm/gemm.h"
#include "hetnn/kernels/gemm/integer_product.h"
#include "hetnn/kernels/gemm/matmul_geometry.h"
#include "hetnn/kernels/gemm/panels.h"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/packing.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/query/work.h"

namespace hetnn::kernels {
namespace {

struct LinearGeometry {
  PanelShape shape;
  bool bias;
};

LinearGeometry linear_geometry(const KernelCall& call, DType dtype = DType::f32) {
  const bool bias = call.params.integer("bias", 0) != 0;
  const TensorView& x = call.inputs[0];
  const TensorView& weight = call.inputs[1];
  HETNN_ASSERT(x.rank > 0 && weight.rank == 2 && x.dims[static_cast<size_t>(x.rank - 1)] == weight.dims[1], "x ",
               view_text(x), ", weight ", view_text(weight));
  LinearGeometry geometry{.shape = {}, .bias = bias};
  geometry.shape.k = weight.dims[1];
  geometry.shape.cols = weight.dims[0];
  geometry.shape.rows = row_view(x).rows;
  geometry.shape.elem_bytes = dtype_bytes(dtype);
  if (is_narrow_float(weight.dtype)) geometry.shape.weights = weight.dtype;
  geometry.shape.a_bytes = x.elems() * dtype_bytes(dtype);
  HETNN_ASSERT(call.outputs[0].elems() == geometry.shape.rows * geometry.shape.cols, view_text(call.outputs[0]));
  return geometry;
}

PanelShape weight_shape(const KernelCall& call) {
  PanelShape shape;
  if (is_narrow_float(call.inputs[1].dtype)) {
    shape.weights = call.inputs[1].dtype;
  } else {
    shape.elem_bytes = dtype_bytes(call.inputs[1].dtype);
  }
  shape.cols = call.inputs[1].dims[0];
  shape.k = call.inputs[1].dims[1];
  return shape;
}

template <typename Product>
class Linear final : public Kernel {
 public:
  Linear(const KernelCall& call, const LinearGeometry& geometry)
      : product_(geometry.shape, call), bias_(geometry.bias) {}

  int64_t scratch_bytes(int threads) const override { return threads * product_.scratch_bytes_per_thread(); }

  bool serial() const override { return product_.shape().is_small(); }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const PanelShape& s = product_.shape();
    const DenseRows rows(inputs[0], s.k * s.elem_bytes);
    auto run = product_.run_on(inputs, inputs[1], bias_ ? inputs[2] : nullptr, outputs[0], s.cols);
    run.source = &rows;
    product_.run(run, context.thread, context.threads,
                 context.scratch + context.thread * product_.scratch_bytes_per_thread());
  }

 private:
  Product product_;
  bool bias_;
};

// All of f32 but the weight, where it is kept narrow.
Refusal serves_f32_linear(const KernelCall& call, bool narrow) {
  const bool bias = call.params.integer("bias", 0) != 0;
  const DType weight = call.inputs[1].dtype;
  Terms terms(narrow ? "linear_narrow" : "linear", call);
  terms.of(DType::f32, 1)
      .hold(narrow ? is_narrow_float(weight) : weight == DType::f32, "takes a weight of ",
            narrow ? "f16 or bf16" : "f32", "; got ", dtype_name(weight))
      .plain();
  if (bias) terms.is(call.inputs[2], DType::f32, "the bias");
  return terms.steps_on_rows();
}

}  // namespace

Refusal serves_linear(const KernelCall& call) { return serves_f32_linear(call, false); }
Refusal serves_narrow_linear(const KernelCall& call) { return serves_f32_linear(call, true); }

Refusal serves_brain_linear(const KernelCall& call) {
  return Terms("linear_bf16", call)
      .of(DType::bf16, call.inputs.size())
      .plain()
      .hold(BrainProduct::refuse_steps("linear_bf16", call));
}

Refusal serves_integer_linear(const KernelCall& call) {
  Terms terms("linear_i8", call);
  terms.reads(DType::i8, 2).plain();
  if (call.params.integer("bias", 0) != 0 && !has_real_sums(call)) terms.is(call.inputs[2], DType::i32, "the bias");
  return terms.then([&] { return IntegerProduct::serves(weight_shape(call), call); });
}

std::unique_ptr<Kernel> make_linear(const KernelCall& call) {
  return std::make_unique<Linear<PanelProduct>>(call, linear_geometry(call));
}

// By tiles, or by pairs.
bool halves_pay(const KernelCall& call) {
  const PanelShape shape = linear_geometry(call, DType::bf16).shape;
  return shape.rows >= kTileRows && (uses_amx() || BrainProduct::pairs_pay(shape));
}

std::unique_ptr<Kernel> make_brain_linear(const KernelCall& call) {
  return std::make_unique<Linear<BrainProduct>>(call, linear_geometry(call, DType::bf16));
}

std::unique_ptr<Kernel> make_integer_linear(const KernelCall& call) {
  return std::make_unique<Linear<IntegerProduct>>(call, linear_geometry(call, DType::i8));
}

bool is_linear_weight(const KernelCall& /*call*/, int input) { return input == 1; }

// Of a weight of f32, which may be a value.
std::unique_ptr<Packer> make_linear_packer(const KernelCall& call, int input) {
  HETNN_ASSERT(input == 1, "linear packs input 1 only; got ", input);
  const PanelShape shape = weight_shape(call);
  return std::make_unique<PanelPacker>(shape, PackStrides{0, shape.k, 0, 1});
}

int64_t packed_linear_bytes(const KernelCall& call, int /*input*/) { return weight_shape(call).packed_bytes(); }

std::vector<std::byte> pack_linear(const KernelCall& call, int input, std::span<const std::byte> weight) {
  HETNN_ASSERT(input == 1, "linear packs input 1 only; got ", input);
  const TensorView& view = call.inputs[1];
  HETNN_ASSERT(static_cast<int64_t>(weight.size()) == view.elems() * dtype_bytes(view.dtype), weight.size(), " bytes");
  const PanelShape shape = weight_shape(call);
  std::vector<std::byte> packed(static_cast<size_t>(packed_linear_bytes(call, input)));
  pack_float_panels(shape, weight.data(), {0, shape.k, 0, 1}, packed.data());
  return packed;
}

int64_t packed_brain_bytes(const KernelCall& call, int input) {
  return input == 2 ? BrainProduct::packed_bias_bytes(call.inputs[2].elems()) : packed_linear_bytes(call, input);
}

std::vector<std::byte> pack_brain(const KernelCall& call, int input, std::span<const std::byte> weight) {
  return input == 2 ? BrainProduct::pack_bias(call.inputs[2].elems(), weight) : pack_linear(call, input, weight);
}

int64_t packed_integer_linear_bytes(const KernelCall& call, int input) {
  return IntegerProduct::packed_bytes(weight_shape(call), input);
}

std::vector<std::byte> pack_integer_linear(const KernelCall& call, int input, std::span<const std::byte> weight) {
  const PanelShape shape = weight_shape(call);
  return IntegerProduct::pack(shape, call, input, weight, {0, shape.k, 0, 1});
}

namespace {

// Of a network's weights, which come from memory.
Work linear_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  const TensorView& x = call.inputs[0];
  const PanelShape shape = weight_shape(call);
  const double moved = bytes_of({&x, 1}) + bytes_of(call.outputs);
  Work work = product_work(1, shape.k > 0 ? x.elems() / shape.k : 0, 1, shape.k, shape.cols);
  work.fetch(moved, moved, machine).bytes[kMemory] += static_cast<double>(shape.packed_bytes());
  return work;
}

Work matmul_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  const MatmulGeometry g = matmul_geometry(call);
  const double moved = bytes_of(call.inputs.first(2)) + bytes_of(call.outputs);
  Work work = product_work(static_cast<int64_t>(g.a_offsets.size()), g.m, 1, g.k, g.n);
  return work.fetch(moved, moved, machine);
}

}  // namespace

std::span<const Variant> gemm_variants() {
  static constexpr Variant kVariants[] = {
      {.name = "linear",
       .op = "linear",
       .speed = "product",
       .serves = serves_linear,
       .create = make_linear,
       .layout = LayoutWish::plain,
       .takes_steps = true,
       .is_weight = is_linear_weight,
       .pack = pack_with<make_linear_packer>,
       .packed_bytes = packed_bytes_with<make_linear_packer>,
       .packer = make_linear_packer,
       .work = linear_work},
      {.name = "linear_narrow",
       .op = "linear",
       .speed = "product",
       .serves = serves_narrow_linear,
       .create = make_linear,
       .layout = LayoutWish::plain,
       .takes_steps = true,
       .is_narrow = [](int input) { return input == 1; },
       .is_weight = is_linear_weight,
       .pack = pack_linear,
       .packed_bytes = packed_linear_bytes},
      {.name = "linear_bf16",
       .op = "linear",
       .speed = "product",
       .serves = serves_brain_linear,
       .create = make_brain_linear,
       .layout = LayoutWish::plain,
       .halves = halves_pay,
       .takes_steps = true,
       .is_weight = BrainProduct::is_weight,
       .pack = pack_brain,
       .packed_bytes = packed_brain_bytes},
      {.name = "linear_i8",
       .op = "linear",
       .speed = "product",
       .serves = serves_integer_linear,
       .create = make_integer_linear,
       .layout = LayoutWish::plain,
       .integers = true,
       .takes_steps = true,
       .is_weight = IntegerProduct::is_weight,
       .pack = pack_integer_linear,
       .packed_bytes = packed_integer_linear_bytes},
      {.name = "block_linear",
       .op = "block_linear",
       .speed = "product",
       .serves = serves_block_linear,
       .create = make_block_linear,
       .layout = LayoutWish::plain,
       .takes_steps = true,
       .is_narrow = [](int input) { return input == 2; },
       .is_weight = is_block_weight,
       .pack = pack_block,
       .packed_bytes = packed_block_bytes},
      {.name = "matmul_i8",
       .op = "matmul",
       .speed = "product",
       .serves = serves_integer_matmul,
       .create = make_integer_matmul,
       .layout = LayoutWish::plain,
       .integers = true,
       .takes_steps = true},
      {.name = "matmul",
       .op = "matmul",
       .speed = "product",
       .serves = serves_matmul,
       .create = make_matmul,
       .layout = LayoutWish::plain,
       .takes_steps = true,
       .work = matmul_work},
      {.name = "grouped_matmul",
       .op = "grouped_matmul",
       .speed = "product",
       .serves = serves_grouped_matmul,
       .create = make_grouped_matmul,
       .layout = LayoutWish::plain,
       .is_narrow = [](int input) { return input == 1; },
       .is_weight = is_linear_weight,
       .pack = pack_grouped,
       .packed_bytes = packed_grouped_bytes},
  };
  return kVariants;
}

}  // namespace hetnn::kernels
