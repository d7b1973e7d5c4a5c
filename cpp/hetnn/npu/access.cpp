// One function an instruction, as the table's texts say.
#include "hetnn/npu/access.h"

#include <algorithm>
#include <utility>

#include "hetnn/base/dtype.h"
#include "hetnn/base/integer_rows.h"
#include "hetnn/base/requantize.h"

namespace hetnn::npu {
namespace {

int64_t bytes_of(int64_t dtype) { return dtype_bytes(static_cast<DType>(dtype)); }
bool is_i8(int64_t dtype) { return static_cast<DType>(dtype) == DType::i8; }
constexpr Wide kFactor = sizeof(Requant);

class Accesses {
 public:
  void operator()(const End&) {}
  void operator()(const Signal&) {}
  void operator()(const Wait&) {}
  void operator()(const DmaLoad& i) { transfer(i, true); }
  void operator()(const DmaStore& i) { transfer(i, false); }
  void operator()(const Conv2d& i) {
    const Wide elem = bytes_of(i.dtype), filters = Wide{i.groups} * i.out_c, channels = Wide{i.groups} * i.in_c;
    const Wide sums = Wide{i.out_h} * i.out_w * filters * kSumBytes;
    map({"the input", false, i.in_addr, channels * elem, i.in_w, i.in_pixel_pitch, i.in_h, i.in_row_pitch},
        i.in_wrap_row, i.in_wrap_addr);
    put(Operand::weights,
        {"the weights", false, i.weight_addr, Wide{i.kernel_h} * i.kernel_w * i.in_c * filters * elem});
    if (i.has_bias) put(Operand::weights, {"the bias", false, i.bias_addr, filters * kSumBytes});
    if (is_i8(i.dtype) && !i.store_acc) put(Operand::weights, {"the factors", false, i.quant_addr, filters * kFactor});
    if (i.load_acc) put(Operand::sums, {"the accumulators", false, i.acc_addr, sums});
    if (i.store_acc) return put(Operand::sums, {"the accumulators", true, i.acc_addr, sums});
    if (i.has_addend) {
      map({"the addend", false, i.add_addr, filters * elem, i.out_w, i.add_pixel_pitch, i.out_h, i.add_row_pitch},
          i.add_wrap_row, i.add_wrap_addr);
      if (is_i8(i.dtype)) put(Operand::weights, {"the addend's factors", false, i.add_quant_addr, 3 * kFactor});
    }
    map({"the output", true, i.out_addr, filters * elem, i.out_w, i.out_pixel_pitch, i.out_h, i.out_row_pitch},
        i.out_wrap_row, i.out_wrap_addr);
  }
  void operator()(const Matmul& i) {
    const Wide elem = bytes_of(i.dtype), b_rows = i.transpose_b ? i.n : i.k, b_columns = i.transpose_b ? i.k : i.n;
    put({"a", false, i.a_addr, i.k * elem, i.m, i.a_pitch});
    put(Operand::weights, {"b", false, i.b_addr, b_columns * elem, b_rows, i.b_pitch});
    if (is_i8(i.dtype)) put(Operand::weights, {"the factors", false, i.quant_addr, i.n * kFactor});
    if (i.has_addend) put({"the addend", false, i.add_addr, i.n * elem, i.m, i.add_pitch});
    put({"the output", true, i.out_addr, i.n * elem, i.m, i.out_pitch});
  }
  void operator()(const Elementwise& i) {
    const Wide row = i.channels * Wide{bytes_of(i.dtype)};
    put({"a", false, i.a_addr, row, i.rows, i.a_pitch});
    put({"b", false, i.b_addr, row, i.b_kind ? 1 : i.rows, i.b_pitch});
    if (is_i8(i.dtype)) put({"the factors", false, i.quant_addr, 3 * kFactor});
    put({"the output", true, i.out_addr, row, i.rows, i.out_pitch});
  }
  void operator()(const Activation& i) {
    const Wide row = i.channels * Wide{bytes_of(i.dtype)};
    put({"the input", false, i.in_addr, row, i.rows, i.in_pitch});
    if (i.act == static_cast<int64_t>(Act::table)) put({"the table", false, i.table_addr, 256});
    put({"the output", true, i.out_addr, row, i.rows, i.out_pitch});
  }
  void operator()(const Reduce& i) {
    const Wide elem = bytes_of(i.dtype);
    put({"the input", false, i.in_addr, i.channels * elem, i.rows, i.in_pitch});
    put({"the output", true, i.out_addr, (i.over_channels ? i.rows : i.channels) * elem});
  }
  void operator()(const Softmax& i) {
    rows(i);
    put({"the table", false, i.table_addr, sizeof(SoftmaxTable)});
  }
  void operator()(const Normalize& i) {
    rows(i);
    put({"the factors", false, i.factors_addr, Wide{i.channels} * sizeof(NormalFactor) + kNormalEpsBytes});
  }
  void operator()(const Pool& i) {
    const Wide pixel = i.channels * Wide{bytes_of(i.dtype)};
    map({"the input", false, i.in_addr, pixel, i.in_w, i.in_pixel_pitch, i.in_h, i.in_row_pitch}, i.in_wrap_row,
        i.in_wrap_addr);
    map({"the output", true, i.out_addr, pixel, i.out_w, i.out_pixel_pitch, i.out_h, i.out_row_pitch}, i.out_wrap_row,
        i.out_wrap_addr);
  }
  void operator()(const Move& i) {
    if (i.size0 == 0) return;
    const auto run = [&](Wide stride) { return Wide{i.size0 - 1} * stride + i.elem_bytes; };
    put({"the input", false, i.in_addr, run(i.in_stride0), i.size1, i.in_stride1, i.size2, i.in_stride2});
    put({"the output", true, i.out_addr, run(i.out_stride0), i.size1, i.out_stride1, i.size2, i.out_stride2});
  }

  std::vector<Access> take() { return std::move(out_); }

 private:
  void put(const Access& access) { put(access.writes ? Operand::results : Operand::maps, access); }
  void put(Operand operand, Access access) {
    access.operand = operand;
    if (!access.empty()) out_.push_back(access);
  }
  // A feature map, in two pieces where it lies in a ring.
  void map(Access access, Wide wrap_row, Wide wrap_addr) {
    if (wrap_row > 0 && wrap_row < access.outer) {
      Access rest = access;
      rest.addr = wrap_addr;
      rest.outer -= wrap_row;
      access.outer = wrap_row;
      put(rest);
    }
    put(access);
  }
  // Bytes in, bytes out.
  template <typename I>
  void rows(const I& i) {
    put({"the input", false, i.in_addr, i.channels, i.rows, i.in_pitch});
    put({"the output", true, i.out_addr, i.channels, i.rows, i.out_pitch});
  }
  template <typename I>
  void transfer(const I& i, bool writes) {
    put(writes ? Operand::loads : Operand::stores,
        {"what is moved", writes, i.sram_addr, i.size0, i.size1, i.sram_stride1, i.size2, i.sram_stride2});
  }

  std::vector<Access> out_;
};

}  // namespace

std::vector<Access> accesses_of(const Instruction& instruction) {
  Accesses accesses;
  std::visit(accesses, instruction);
  return accesses.take();
}

int64_t sram_reach_bytes(const Instruction& instruction) {
  Wide reach = 0;
  for (const Access& access : accesses_of(instruction)) reach = std::max(reach, access.end());
  return static_cast<int64_t>(reach);
}

}  // namespace hetnn::npu
