// One rule set an instruction: choices, sizes, and the ranges that it reads and
// writes.
#include "hetnn/npu/verify.h"

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "hetnn/base/dtype.h"
#include "hetnn/base/error.h"
#include "hetnn/base/integer_rows.h"
#include "hetnn/npu/access.h"
#include "hetnn/npu/order.h"

namespace hetnn::npu {
namespace {

int64_t bytes_of(int64_t dtype) { return dtype_bytes(static_cast<DType>(dtype)); }

class Verifier {
 public:
  Verifier(const Spec& spec, int64_t arena_bytes) : spec_(spec), arena_bytes_(arena_bytes) {}

  void step(const Instruction& instruction, bool last) {
    instruction_ = &instruction;
    check(std::holds_alternative<End>(instruction) == last, "the stream ends with one end");
    std::visit([this](const auto& i) { verify(i); }, instruction);
    const std::vector<Access> accesses = accesses_of(instruction);
    if (const Engine engine = engine_of(instruction); engine != Engine::none) {
      for (const Access& access : accesses) reach(engine, access);
      demand_order(engine, accesses);
    }
    ++at_;
  }

  Needs finish() const {
    for (int from = 0; from < kEngines; ++from) {
      for (int to = 0; to < kEngines; ++to) {
        if (const size_t left = tokens_[static_cast<size_t>(from)][static_cast<size_t>(to)].size(); left != 0) {
          throw InvalidModel(text("instruction stream: engine ", engine_name(static_cast<Engine>(from)), " passes ",
                                  left, " tokens to ", engine_name(static_cast<Engine>(to)), " that it never takes."));
        }
      }
    }
    return needs_;
  }

 private:
  void check(bool holds, const std::string& wanted) const {
    if (!holds)
      throw InvalidModel(
          text("instruction ", at_, " (", to_text(*instruction_), "): ", wanted, ". The stream was altered."));
  }
  void check_at_most(int64_t value, int64_t most, std::string_view field) const {
    check(value <= most, text(field, " is at most ", most));
  }
  void check_positive(int64_t value, std::string_view field) const { check(value > 0, text(field, " is positive")); }
  void check_dtype(int64_t dtype, bool integers = true) const {
    const auto type = static_cast<DType>(dtype);
    const bool known = dtype < static_cast<int64_t>(std::size(kAllDTypes));
    check(known && (type == DType::f32 || type == DType::f16 || (integers && type == DType::i8)),
          integers ? "dtype is f32, f16 or i8" : "dtype is f32 or f16");
  }
  static bool is_i8(int64_t dtype) { return static_cast<DType>(dtype) == DType::i8; }
  template <typename I>
  void check_rounding(const I& i) const {
    if (!is_i8(i.dtype)) return;
    check(i.rounding < static_cast<int64_t>(std::size(kRoundings)) &&
              spec_.numerics.rounds(static_cast<Rounding>(i.rounding)),
          "its engine knows the rounding");
  }

  void reach(Engine engine, const Access& access) {
    check(access.end() <= spec_.end_address(),
          text(access.what, " lies in the scratchpad of ", spec_.end_address(), " bytes"));
    const size_t at = spec_.memory_at(static_cast<int64_t>(access.addr));
    const Memory& memory = spec_.sram[at];
    check(access.end() <= spec_.base_of(at) + memory.bytes, text(access.what, " lies in one scratchpad"));
    check(Spec::reaches(spec_.reach_of(engine), access.operand, memory),
          text(access.what, " lies in a scratchpad that ", engine_name(engine), " reaches, and not in '", memory.name,
               "'"));
    needs_.scratchpad_bytes = std::max(needs_.scratchpad_bytes, static_cast<int64_t>(access.end()));
  }
  // Whatever other engines did before to the same bytes is finished, as far as tokens tell.
  void demand_order(Engine engine, std::span<const Access> accesses) {
    const Finished known = clocks_.of(engine);
    const Finished needed = touched_.touch(accesses, engine, clocks_.issue(engine));
    for (size_t other = 0; other < needed.size(); ++other) {
      if (needed[other] <= known[other]) continue;
      check(false, text("unordered: instruction ", issued_[other][static_cast<size_t>(needed[other] - 1)],
                        " of engine ", engine_name(static_cast<Engine>(other)),
                        " touches the same bytes, one of the two writes, and no token says that it is finished"));
    }
    issued_[static_cast<size_t>(engine)].push_back(at_);
  }
  // What an instruction holds at once fits into the scratchpad, even where runs
  // overlap there.
  void fits(std::string_view what, Wide bytes) const {
    check(bytes <= spec_.end_address(), text(what, " has no more bytes than the scratchpad, ", spec_.end_address()));
  }
  void accumulates(Wide sums) const {
    const int64_t bytes = spec_.mac.accumulator_bytes;
    check(bytes == 0 || sums * kSumBytes <= bytes, text("its sums fit the accumulators' ", bytes, " bytes"));
  }
  void work(double amount) {
    work_ += amount;
    if (work_ > kMostWork) {
      throw DoesNotFit(text("instruction ", at_, " (", to_text(*instruction_), "): the stream takes more than ",
                            kMostWork, " operations. Cut the model into smaller ones."));
    }
  }

  std::deque<Finished>& tokens(int64_t from, int64_t to) {
    return tokens_[static_cast<size_t>(from)][static_cast<size_t>(to)];
  }

  void verify(const End&) {}
  void verify(const Signal& i) {
    check_at_most(std::max(i.from, i.to), kEngines - 1, "an engine's number");
    tokens(i.from, i.to).push_back(clocks_.of(static_cast<Engine>(i.from)));
  }
  void verify(const Wait& i) {
    check_at_most(std::max(i.from, i.at), kEngines - 1, "an engine's number");
    std::deque<Finished>& passed = tokens(i.from, i.at);
    check(!passed.empty(), "the token it waits for was passed before");
    clocks_.learn(static_cast<Engine>(i.at), passed.front());
    passed.pop_front();
  }

  template <typename I>
  void transfer(const I& i) {
    check_at_most(i.region, static_cast<int64_t>(Region::arena), "region");
    const Wide runs = Wide{i.size1} * i.size2;
    // Runs are counted where there is nothing in them, too.
    fits("a transfer",
         Wide{std::max<int64_t>(i.size0, 1)} * std::max<int64_t>(i.size1, 1) * std::max<int64_t>(i.size2, 1));
    if (i.size0 == 0 || runs == 0) return;
    const Wide end =
        Wide{i.dram_addr} + Wide{i.size1 - 1} * i.dram_stride1 + Wide{i.size2 - 1} * i.dram_stride2 + i.size0;
    check(i.region != static_cast<int64_t>(Region::arena) || end <= arena_bytes_,
          text("what is moved lies in the arena of ", arena_bytes_, " bytes"));
    work(static_cast<double>(i.size0) * static_cast<double>(runs));
  }
  void verify(const DmaLoad& i) { transfer(i); }
  void verify(const DmaStore& i) {
    check(i.region == static_cast<int64_t>(Region::arena), "it stores to the arena");
    transfer(i);
  }

  void verify(const Conv2d& i) {
    check_dtype(i.dtype);
    check_rounding(i);
    check_at_most(i.act, static_cast<int64_t>(Act::clamp), "act");
    for (const int64_t each :
         {i.groups, i.in_c, i.out_c, i.kernel_h, i.kernel_w, i.stride_h, i.stride_w, i.dilation_h, i.dilation_w})
      check_positive(each, "every count, kernel, stride and dilation");
    const Wide elem = bytes_of(i.dtype), filters = Wide{i.groups} * i.out_c, channels = Wide{i.groups} * i.in_c;
    const Wide kernel = Wide{i.kernel_h} * i.kernel_w, pixels = Wide{i.out_h} * i.out_w;
    fits("the input", Wide{i.in_h} * i.in_w * channels * elem);
    fits("the weights", kernel * i.in_c * filters * elem);
    fits("the output", pixels * filters * elem);
    accumulates(pixels * filters);
    work(static_cast<double>(pixels) * static_cast<double>(kernel) * static_cast<double>(i.in_c) *
         static_cast<double>(filters));
  }

  void verify(const Matmul& i) {
    check_dtype(i.dtype);
    check_rounding(i);
    check_at_most(i.act, static_cast<int64_t>(Act::clamp), "act");
    for (const int64_t each : {i.m, i.k, i.n}) check_positive(each, "every count");
    const Wide elem = bytes_of(i.dtype);
    fits("a", Wide{i.m} * i.k * elem);
    fits("b", Wide{i.k} * i.n * elem);
    fits("the output", Wide{i.m} * i.n * elem);
    accumulates(Wide{i.m} * i.n);
    work(static_cast<double>(i.m) * static_cast<double>(i.k) * static_cast<double>(i.n));
  }

  // Rows of channels, of which an instruction reads and writes all.
  void rows(Wide rows, Wide channels, Wide elem) {
    fits("an operand", std::max<Wide>(rows, 1) * std::max<Wide>(channels, 1) * elem);
    work(static_cast<double>(rows) * static_cast<double>(channels));
  }
  void verify(const Elementwise& i) {
    check_dtype(i.dtype);
    check_rounding(i);
    check_at_most(i.op, static_cast<int64_t>(ElementwiseOp::min), "op");
    check_at_most(i.act, static_cast<int64_t>(Act::clamp), "act");
    const Wide elem = bytes_of(i.dtype);
    rows(i.rows, i.channels, elem);
  }
  void verify(const Activation& i) {
    check_dtype(i.dtype);
    const bool table = i.act == static_cast<int64_t>(Act::table);
    check(!table || is_i8(i.dtype), "tables are of i8");
    const Wide elem = bytes_of(i.dtype);
    rows(i.rows, i.channels, elem);
  }
  void verify(const Reduce& i) {
    check_dtype(i.dtype, false);
    const Wide elem = bytes_of(i.dtype);
    rows(i.rows, i.channels, elem);
  }

  void verify(const Softmax& i) {
    check(is_i8(i.dtype), "dtype is i8");
    check(spec_.vector.softmax_cycles.has_value(), "the vector engine computes softmax");
    check_positive(i.channels, "channels");
    rows(i.rows, i.channels, 1);
  }
  void verify(const Normalize& i) {
    check(is_i8(i.dtype), "dtype is i8");
    check(spec_.vector.normalize_cycles.has_value(), "the vector engine normalizes");
    check_positive(i.channels, "channels");
    check_at_most(i.channels, kMostNormalized, "channels");
    check_positive(i.shift, "shift");
    check_at_most(i.shift, kMostNormalShift, "shift");
    rows(i.rows, i.channels, 1);
  }

  void verify(const Pool& i) {
    check_dtype(i.dtype);
    check(
        i.rounding != static_cast<int64_t>(Rounding::half_even_fp32) || spec_.numerics.rounds(Rounding::half_even_fp32),
        "its engine knows the rounding");
    for (const int64_t each : {i.kernel_h, i.kernel_w, i.stride_h, i.stride_w, i.dilation_h, i.dilation_w, i.channels})
      check_positive(each, "every count, window, stride and dilation");
    const Wide elem = bytes_of(i.dtype), pixels = Wide{i.out_h} * i.out_w;
    fits("the input", Wide{i.in_h} * i.in_w * i.channels * elem);
    fits("the output", pixels * i.channels * elem);
    work(static_cast<double>(pixels) * static_cast<double>(i.channels) * static_cast<double>(i.kernel_h) *
         static_cast<double>(i.kernel_w));
  }

  void verify(const Move& i) {
    check(i.elem_bytes == 1 || i.elem_bytes == 2 || i.elem_bytes == 4 || i.elem_bytes == 8,
          "elem_bytes is 1, 2, 4 or 8");
    const Wide elems = Wide{i.size0} * i.size1 * i.size2;
    for (const Wide two : {Wide{i.size0} * i.size1, Wide{i.size1} * i.size2, Wide{i.size0} * i.size2, elems})
      fits("what is moved", two * i.elem_bytes);
    if (elems == 0) return;
    work(static_cast<double>(elems));
  }

  const Spec& spec_;
  const int64_t arena_bytes_;
  const Instruction* instruction_ = nullptr;
  size_t at_ = 0;
  double work_ = 0;
  Needs needs_;
  Touched touched_;
  EngineClocks clocks_;
  std::array<std::vector<size_t>, kEngines> issued_;  // where each engine's instructions stand
  // [from][to], passed and not yet taken: what the giver knew
  std::array<std::array<std::deque<Finished>, kEngines>, kEngines> tokens_;
};

}  // namespace

Needs verify_stream(const Spec& spec, std::span<const Instruction> instructions, int64_t arena_bytes) {
  if (instructions.empty()) throw InvalidModel("instruction stream: it has no words; the last is an end.");
  Verifier verifier(spec, arena_bytes);
  for (size_t k = 0; k < instructions.size(); ++k) verifier.step(instructions[k], k + 1 == instructions.size());
  return verifier.finish();
}

}  // namespace hetnn::npu
