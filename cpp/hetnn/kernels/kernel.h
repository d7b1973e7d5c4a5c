// The contract of every CPU kernel: how a call is described, how a kernel is made from it, and how it is run.
//
// A kernel is made once from shapes, layouts and parameters (never from pointers), is immutable afterwards, and may be
// run by any number of callers at once, each with its own pointers and scratch. What each kernel takes (inputs,
// parameters) is written in the header of its family, which is called as its folder: gemm/gemm.h, conv/conv.h,
// pool/pool.h, elementwise/elementwise.h, and so on.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/base/dtype.h"
#include "hetnn/base/layout.h"
#include "hetnn/base/parallel.h"
#include "hetnn/kernels/params.h"
#include "hetnn/ops/call.h"

namespace hetnn::kernels {

/// Shape and layout of one operand; holds no pointer. `dims` are always in the model's logical, channels-first order.
///  - plain: dense, row-major, in logical order.
///  - nhwc:  rank 3 to 5, logical [N, C, spatial...], stored [N, spatial..., C] with `pitch_elems` >= C elements from
///  one
///           pixel to the next. Kernels neither read nor write the pitch - C lanes behind a pixel, so a view may be a
///           channel slice of a wider buffer.
///  - strided: a stride for each axis, as of a value that is only seen in another order.
/// A packed view stands for bytes made by the family's `pack` function from a plain weight; `dims` stay the weight's
/// logical shape and `layout` is plain.
struct TensorView {
  DType dtype = DType::f32;
  int rank = 0;
  std::array<int64_t, 8> dims{};
  Layout layout = Layout::plain;
  int64_t pitch_elems = 0;              // nhwc only
  std::array<int64_t, 8> strides = {};  // in elements; strided only
  bool packed = false;

  /// Number of logical elements (1 for rank 0).
  int64_t elems() const;
  /// Bytes of them, without gaps.
  int64_t elem_bytes() const { return elems() * dtype_bytes(dtype); }
  /// Bytes from the first to one past the last element, gaps included. Not defined for packed views.
  int64_t span_bytes() const;
  std::span<const int64_t> shape() const { return {dims.data(), static_cast<size_t>(rank)}; }

  static TensorView plain(DType dtype, std::span<const int64_t> shape);
  /// pitch_elems 0 means: no gap (pitch = C).
  static TensorView nhwc(DType dtype, std::span<const int64_t> shape, int64_t pitch_elems = 0);
  static TensorView strided(DType dtype, std::span<const int64_t> shape, std::span<const int64_t> strides);
  static TensorView of_weight(DType dtype, std::span<const int64_t> shape);
};

/// An elementwise function applied to the result while it is in registers or in the first-level cache.
struct Step {
  std::string function;        // a row of the elementwise functions
  int input = -1;              // the first operand: its position in the call's inputs; -1 for none
  std::vector<double> values;  // constants of the function
  int main = 0;                // which of the function's operands the running value is; the others follow in order
  DType dtype = DType::f32;    // of what is compared or chosen; truth values are 1 and 0 while a tile is worked on
  bool operator==(const Step&) const = default;
};

struct KernelCall {
  std::span<const TensorView> inputs;  // the operator's own that are present, then the operands of the steps
  std::span<const TensorView> outputs;
  const Params& params;
  std::span<const Step> steps = {};
};

/// What one thread of the inference's parallel region sees.
struct RunContext {
  int thread;            // this thread, 0 <= thread < threads
  int threads;           // how many threads call run
  SpinBarrier& barrier;  // of those threads
  std::byte* scratch;    // scratch_bytes(threads) bytes shared by the threads, 64-byte aligned
  /// Set where inputs hold what the operator's `check` refuses, which then says why; the outputs are of no account.
  std::atomic<bool>* refused = nullptr;

  void refuse() const {
    if (refused) refused->store(true, std::memory_order_relaxed);
  }
};

/// An input, and where in output 0 its first byte stands.
struct Part {
  int input;
  int64_t offset_bytes;
};

class Kernel {
 public:
  virtual ~Kernel() = default;

  /// Bytes of scratch one run needs when `threads` threads take part.
  virtual int64_t scratch_bytes(int /*threads*/) const { return 0; }

  /// True when the work is too small to share: run is then called by thread 0 alone, with threads = 1.
  virtual bool serial() const { return false; }

  /// Called by all threads of one parallel region. Does not throw. Pointers are aligned to their element size at least.
  /// Outputs overlap no inputs, but for what `parts` and `writes_over` allow. When run returns, this thread's share is
  /// written: the caller sets a barrier before anything that reads the outputs or reuses the inputs or the scratch.
  /// Results do not depend on the number of threads. Of an operator with a `check`, run refuses what that would.
  virtual void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const = 0;

  /// Where in input 0 the elements of output 0 stand, as far apart as the output has them; nullopt where the kernel
  /// computes. Whoever lets the output lie there need not run it.
  virtual std::optional<int64_t> view() const { return std::nullopt; }

  /// The inputs that output 0 contains, as far apart as they are themselves. What lies there when the kernel runs, in
  /// its place in the output, is not moved.
  virtual std::vector<Part> parts() const { return {}; }

  /// Whether output 0 may lie just where that input does: it is of the same size, and no element of it is read when
  /// another one was written in its place.
  virtual bool writes_over(size_t /*input*/) const { return false; }
};

/// Of a call that the variant serves.
using KernelFactory = std::unique_ptr<Kernel> (*)(const KernelCall&);

/// Why a kernel does not serve a call, as a sentence that names the kernel; nothing where it serves it.
using Refusal = std::optional<std::string>;

/// Whether the kernel serves a call, which its operator's inference has taken: a question of types, layouts, parameters
/// and steps, for which nothing is made and nothing thrown.
using ServesFunction = Refusal (*)(const KernelCall&);

/// Turns a plain weight (input number `input` of `call`, whose view has its logical shape) into the bytes the kernel
/// reads. The result depends on the call's shapes of weights and its parameters alone, not on the machine.
using PackFunction = std::vector<std::byte> (*)(const KernelCall& call, int input, std::span<const std::byte> weight);

/// Makes the bytes that a kernel reads of a weight, when compiling or in a run. Immutable, and made as a kernel is.
class Packer {
 public:
  virtual ~Packer() = default;
  virtual int64_t packed_bytes() const = 0;
  /// Parts of the packed weight that are written independently of one another.
  virtual int64_t parts() const = 0;
  /// Writes some of the parts. Does not throw and allocates nothing.
  virtual void pack(Share parts, const std::byte* weight, std::byte* packed) const = 0;
};

/// Of a weight of a call that the variant serves.
using PackerFactory = std::unique_ptr<Packer> (*)(const KernelCall& call, int input);

/// The bytes of what PackFunction makes, without making it.
using PackedBytes = int64_t (*)(const KernelCall& call, int input);

/// Whether that input is a weight to be packed in this call: when compiling where it is a constant, else in every run,
/// if the variant has a packer. The others are passed as they are.
using WeightTest = bool (*)(const KernelCall& call, int input);

struct Machine;  // query/machine.h
struct Work;     // query/work.h

/// What a kernel that serves the call computes and moves in a run by `threads` threads.
using WorkFunction = Work (*)(const KernelCall& call, const Machine& machine, int threads);

/// Parameters of which only a measurement on this machine says the best value, for these shapes and for a run by
/// `threads` threads. They change no result and no packed weight.
using TuneFunction = ops::Attrs (*)(const KernelCall& call, int threads);

/// Where feature maps (one vector of channels a pixel) are welcome: `same` writes the layout it reads, and the other
/// one where it has to; `kept` writes no other than that of its first input; `plain` reads and writes plain memory;
/// `written_plain` reads either and writes plain memory; `turned` reads and writes either, channels last where that is
/// how plain memory then lies; `strided` reads its first three inputs and writes its result by strides, the last of
/// which is 1, and the rest plain.
enum class LayoutWish : uint8_t { plain, written_plain, turned, same, kept, channels_last, strided };

/// A fast way to compute an operator. Of those that serve a call the one of least predicted time computes it
/// (query/best.h); where none does, the operator's meaning.
struct Variant {
  std::string_view name;   // of the kernel, in files and traces
  std::string_view op;     // the operator; empty: those that `function` says
  std::string_view speed;  // the class of work that its time is predicted by, where it has no `work` of its own
  ServesFunction serves;
  KernelFactory create;  // asked for nothing but what it serves: make_kernel
  LayoutWish layout = LayoutWish::same;
  bool integers = false;  // computes with the integers of quantized i8 themselves; the others do not know their scales
  /// Of a kernel that computes with values of f16 or bf16 themselves, for which steps behind it are given up: whether
  /// that takes less time here than computing in f32.
  bool (*halves)(const KernelCall&) = nullptr;
  bool takes_steps = false;
  /// Its steps run on tiles of a nest: their operands have any shape that broadcasts, and the result is written in the
  /// type that the last of them leaves, which is that of output 0. The others write the type that the operator does.
  bool tiles = false;
  bool (*is_table)(int input) = nullptr;   // inputs that are constants, since only the compiler checks all of them
  bool (*is_narrow)(int input) = nullptr;  // constants of f16 or bf16 that are read as they are, where others are f32
  WeightTest is_weight = nullptr;          // null: no input is packed
  PackFunction pack = nullptr;
  PackedBytes packed_bytes = nullptr;
  PackerFactory packer = nullptr;  // null: weights must be constants
  /// What its packed weights are: variants of an operator with the same one read the same bytes, so that a file made
  /// for one may run by another. Empty: no other variant's.
  std::string_view packing = {};
  WorkFunction work = nullptr;  // null: what its class takes
  TuneFunction tune = nullptr;  // null: nothing to measure
};

/// The variant of that name, or null.
const Variant* find_kernel(std::string_view name);

/// The variants for calls of that kind, first those that win where times are equal: of a call on quantized i8 those
/// that compute with integers, where there are any. Whether one takes a call's types and shapes, `serves` says.
std::vector<const Variant*> variants_of(const ops::Call& call);

/// Whether one of those variants is made so.
bool is_made_by(KernelFactory create, const ops::Call& call);

/// Why the variant does not serve the call; nothing where it does. A weight that is not packed is one that a run gives.
Refusal refusal_of(const Variant& variant, const KernelCall& call);

/// The kernel of a call. Unsupported with the reason where the variant refuses it; InternalError where it serves a call
/// that it then cannot be made for.
std::unique_ptr<Kernel> make_kernel(const Variant& variant, const KernelCall& call);

/// Whether a variant of the operator reads that input, a constant of f16 or bf16, as it is.
bool reads_narrow(const ops::OpDef& op, int input);

/// Whether the variant is one of the operator's.
bool computes(const Variant& variant, const ops::OpDef& op);

/// All variants, in a fixed order.
std::span<const Variant> all_kernels();

/// What a kernel reads of a call without symbols: its attributes; for every optional input whether it is there, 0 or 1,
/// under the input's name; for elementwise functions `op` and `values`; for what converts quantized values `scale` and
/// `zero_point`; of every quantized operand and result `NAME.scales`,
/// `NAME.zeros` and `NAME.axis`; `operator`, its name.
Params params_of(const ops::Call& call);

/// The class of work of an elementwise function: `elementwise` where its bytes take the time, `transcendental` where
/// its arithmetic does.
std::string_view speed_of(std::string_view function);

/// The elementwise function that `call` is, with its constants; nullopt when it is none. `input` stays -1.
std::optional<Step> function_of(const ops::Call& call);

}  // namespace hetnn::kernels
