// Closed forms for cycles, and the clock that follows the engines through a stream.
#include "hetnn/npu/timing.h"

#include <algorithm>
#include <cmath>

#include "hetnn/base/error.h"
#include "hetnn/npu/access.h"

namespace hetnn::npu {
namespace {

int64_t ceil_div64(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Cycles stay below this, so that figures of a sheet and sizes of a stream may be any.
constexpr int64_t kMost_cycles = int64_t{1} << 61;
__extension__ using Wide = __int128;
int64_t times(int64_t a, int64_t b) { return static_cast<int64_t>(std::min<Wide>(Wide{a} * b, kMost_cycles)); }
int64_t whole(double cycles) {
  return static_cast<int64_t>(std::min(std::ceil(cycles), static_cast<double>(kMost_cycles)));
}

int64_t step_cycles(const Mac& mac, DType dtype) {
  auto at = mac.step_cycles.find(dtype);
  return at == mac.step_cycles.end() ? 1 : at->second;
}

DType dtype_of(int64_t field) { return static_cast<DType>(field); }

MacWork work_of(const Conv2d& i) {
  return {.dtype = dtype_of(i.dtype),
          .out_h = i.out_h,
          .out_w = i.out_w,
          .in_c = i.in_c,
          .out_c = i.out_c,
          .kernel = i.kernel_h * i.kernel_w,
          .groups = i.groups};
}
MacWork work_of(const Matmul& i) {
  return {.dtype = dtype_of(i.dtype), .out_h = 1, .out_w = i.m, .in_c = i.k, .out_c = i.n, .is_rows = true};
}

struct CostOf {
  const Spec& spec;

  Cost operator()(const End&) const { return {}; }
  Cost operator()(const Signal&) const { return {}; }
  Cost operator()(const Wait&) const { return {}; }
  Cost operator()(const DmaLoad& i) const { return transfer(i, false); }
  Cost operator()(const DmaStore& i) const { return transfer(i, true); }
  Cost operator()(const Conv2d& i) const { return product(work_of(i)); }
  Cost operator()(const Matmul& i) const { return product(work_of(i)); }
  Cost operator()(const Elementwise& i) const {
    return vector(i.dtype, static_cast<double>(i.rows) * static_cast<double>(i.channels), elementwise(i.dtype));
  }
  Cost operator()(const Activation& i) const {
    return vector(i.dtype, static_cast<double>(i.rows) * static_cast<double>(i.channels),
                  of_type(spec.vector.act_cycles, dtype_of(i.dtype), 1));
  }
  Cost operator()(const Reduce& i) const {
    return vector(i.dtype, static_cast<double>(i.rows) * static_cast<double>(i.channels), elementwise(i.dtype));
  }
  Cost operator()(const Softmax& i) const { return rows(i, spec.vector.softmax_cycles.value_or(0)); }
  Cost operator()(const Normalize& i) const { return rows(i, spec.vector.normalize_cycles.value_or(0)); }
  Cost operator()(const Move& i) const {
    const DType dtype = i.elem_bytes == 1   ? DType::i8
                        : i.elem_bytes == 2 ? DType::f16
                        : i.elem_bytes == 4 ? DType::f32
                                            : DType::i64;
    return vector(static_cast<int64_t>(dtype),
                  static_cast<double>(i.size0) * static_cast<double>(i.size1) * static_cast<double>(i.size2), 1);
  }
  Cost operator()(const Pool& i) const {
    return vector(i.dtype,
                  static_cast<double>(i.out_h * i.out_w) * static_cast<double>(i.channels) *
                      static_cast<double>(i.kernel_h * i.kernel_w),
                  elementwise(i.dtype));
  }

 private:
  template <typename I>
  Cost transfer(const I& i, bool store) const {
    const Memory& memory = i.region == static_cast<int64_t>(Region::weights) ? spec.constants() : spec.dram;
    const int64_t whole = dma_cycles(memory, i.size0, i.size1 * i.size2, store);
    const int64_t latency = store ? memory.write_latency_cycles : memory.read_latency_cycles;
    const int64_t hidden = spec.dma.max_outstanding > 1 ? std::min(latency, whole) : 0;
    return {.cycles = whole - hidden, .latency_cycles = hidden, .dma_bytes = i.size0 * i.size1 * i.size2};
  }
  Cost product(const MacWork& work) const {
    return {.cycles = mac_cycles(spec, work), .macs = work.macs(), .dtype = work.dtype};
  }
  double elementwise(int64_t dtype) const { return of_type(spec.vector.elem_cycles, dtype_of(dtype), 1); }
  template <typename I>
  Cost rows(const I& i, double each) const {
    return {.cycles = row_cycles(spec, i.rows, i.channels, each),
            .vector_elems = static_cast<double>(i.rows) * static_cast<double>(i.channels),
            .dtype = dtype_of(i.dtype)};
  }
  Cost vector(int64_t dtype, double elems, double each) const {
    return {.cycles = vector_cycles(spec, elems, each), .vector_elems = elems, .dtype = dtype_of(dtype)};
  }
};

// Not less than the cycles of a layer.
double most_cycles(const Mac& mac, const TopologyLayer& layer) {
  const auto p = static_cast<double>(layer.pixels), q = static_cast<double>(layer.products),
             f = static_cast<double>(layer.filters);
  if (mac.kind != MacKind::systolic)
    return p * f *
           std::max(q * static_cast<double>(step_cycles(mac, DType::f32)), static_cast<double>(mac.min_block_cycles));
  const auto rows = static_cast<double>(mac.rows), cols = static_cast<double>(mac.cols);
  const bool os = mac.dataflow == Dataflow::os, is = mac.dataflow == Dataflow::is;
  const double sr = os ? p : q, sc = is ? p : f, t = os ? q : is ? f : p;
  return (sr / rows + 1) * (sc / cols + 1) * (2 * rows + cols + t);
}

void demand_countable(double cycles, std::string_view layer) {
  constexpr double kMost = 9007199254740992;  // 2^53
  if (cycles <= kMost) return;
  throw InvalidModel(text("layer '", layer, "' takes more than 2^53 cycles, which nothing counts. Make it smaller."));
}

}  // namespace

int64_t systolic_cycles(const Mac& mac, int64_t pixels, int64_t products, int64_t filters) {
  int64_t sr = products, sc = filters, t = pixels, fill = 2 * mac.rows;
  if (mac.dataflow == Dataflow::os) {
    sr = pixels, sc = filters, t = products, fill = mac.rows;
  } else if (mac.dataflow == Dataflow::is) {
    sr = products, sc = pixels, t = filters;
  }
  const int64_t folds = times(ceil_div64(sr, mac.rows), ceil_div64(sc, mac.cols));
  if (!mac.preload_hidden || mac.dataflow == Dataflow::os) return times(folds, fill + mac.cols + t - 2) - 1;
  // The first fold loads its operand in sight, later ones while the array works.
  return times(folds, mac.rows + mac.cols + t - 2) + mac.rows - 1;
}

int64_t mac_cycles(const Spec& spec, const MacWork& work) {
  const Mac& mac = spec.mac;
  if (mac.kind == MacKind::systolic) {
    return times(times(step_cycles(mac, work.dtype), ceil_div64(work.groups, spec.cores)),
                 systolic_cycles(mac, work.out_h * work.out_w, times(work.kernel, work.in_c),
                                 work.groups > 1 ? work.out_c : ceil_div64(work.out_c, spec.cores)));
  }
  const int64_t block = mac.block_height * mac.block_width * mac.block_channels;
  const int64_t channels = std::max<int64_t>(mac.macs_per_cycle / block, 1);  // input channels of one step
  const int64_t pixels = work.is_rows
                             ? ceil_div64(work.out_w, mac.block_height * mac.block_width)
                             : times(ceil_div64(work.out_h, mac.block_height), ceil_div64(work.out_w, mac.block_width));
  const bool depthwise = work.in_c == 1 && work.out_c == 1;
  // Depthwise groups fill the block's channels side by side, each with one input channel.
  const int64_t blocks = times(pixels, depthwise ? ceil_div64(work.groups, mac.block_channels)
                                                 : times(work.groups, ceil_div64(work.out_c, mac.block_channels)));
  const int64_t steps = times(work.kernel, depthwise ? 1 : ceil_div64(work.in_c, channels));
  return times(ceil_div64(blocks, spec.cores),
               std::max(times(steps, step_cycles(mac, work.dtype)), mac.min_block_cycles));
}

int64_t dma_cycles(const Memory& memory, int64_t run_bytes, int64_t runs, bool store) {
  const int64_t burst = std::max<int64_t>(memory.burst_bytes, 1);
  const double bytes = static_cast<double>(ceil_div64(run_bytes, burst) * burst) * static_cast<double>(runs);
  return (store ? memory.write_latency_cycles : memory.read_latency_cycles) + whole(bytes / memory.rate(store));
}

int64_t scratchpad_cycles(const Spec& spec, const ScratchpadBytes& bytes) {
  double most = 0;
  for (size_t k = 0; k < spec.sram.size(); ++k) most = std::max(most, bytes[k] / spec.sram[k].rate());
  return whole(most);
}

int64_t scratchpad_cycles(const Spec& spec, const ContentBytes& bytes) {
  ScratchpadBytes out = {};
  for (size_t content = 0; content < kContents; ++content)
    out[spec.homes[content]] += static_cast<double>(bytes[content]);
  return scratchpad_cycles(spec, out);
}

int64_t vector_cycles(const Spec& spec, double elems, double cycles_each) {
  const double lanes = static_cast<double>(spec.vector.lanes) * static_cast<double>(spec.cores);
  return whole(std::ceil(elems / lanes) * cycles_each);
}

int64_t row_cycles(const Spec& spec, int64_t rows, int64_t channels, double cycles_each) {
  const double row = std::ceil(static_cast<double>(channels) / static_cast<double>(spec.vector.lanes)) * cycles_each +
                     spec.vector.row_cycles;
  return whole(static_cast<double>(ceil_div64(rows, spec.cores)) * row);
}

Cost cost_of(const Spec& spec, const Instruction& instruction) {
  Cost out = std::visit(CostOf{spec}, instruction);
  const Engine engine = engine_of(instruction);
  if (engine == Engine::none) return out;
  int64_t read_latency = 0, write_latency = 0;
  for (const Access& access : accesses_of(instruction)) {
    const size_t at = spec.memory_at(static_cast<int64_t>(access.addr));
    out.scratchpad_bytes[at] += static_cast<double>(access.bytes * access.inner * access.outer);
    if (access.writes)
      write_latency = std::max(write_latency, spec.sram[at].write_latency_cycles);
    else
      read_latency = std::max(read_latency, spec.sram[at].read_latency_cycles);
  }
  out.cycles = std::max(out.cycles, scratchpad_cycles(spec, out.scratchpad_bytes));
  if (engine != Engine::dma) out.cycles += read_latency + write_latency;
  return out;
}

void Clock::step(const Instruction& instruction) {
  if (auto* signal = std::get_if<Signal>(&instruction)) {
    const auto from = static_cast<size_t>(signal->from), to = static_cast<size_t>(signal->to);
    tokens_[from][to].push_back(done_at_[from]);
    return;
  }
  if (auto* wait = std::get_if<Wait>(&instruction)) {
    const auto at = static_cast<size_t>(wait->at), from = static_cast<size_t>(wait->from);
    size_t& taken = taken_[from][at];
    if (taken == tokens_[from][at].size()) {
      throw InvalidModel(text("engine ", engine_name(static_cast<Engine>(at)), " waits for a token of ",
                              engine_name(static_cast<Engine>(from)),
                              " that nobody sends before; the engines would stand still for ever."));
    }
    const int64_t ready = tokens_[from][at][taken++];
    totals_.wait_cycles[at] += std::max<int64_t>(ready - free_at_[at], 0);
    free_at_[at] = std::max(free_at_[at], ready);
    return;
  }
  const Engine engine = engine_of(instruction);
  if (engine == Engine::none) return;
  const Cost cost = cost_of(spec_, instruction);
  const auto at = static_cast<size_t>(engine);
  if (engine == Engine::dma &&
      static_cast<int64_t>(transfers_.size()) >= std::max<int64_t>(spec_.dma.max_outstanding, 1)) {
    free_at_[at] = std::max(free_at_[at], transfers_.front());
    transfers_.pop_front();
  }
  free_at_[at] = std::min(free_at_[at] + cost.cycles, kMost_cycles);
  done_at_[at] = std::max(done_at_[at], std::min(free_at_[at] + cost.latency_cycles, kMost_cycles));
  if (engine == Engine::dma) transfers_.push_back(done_at_[at]);
  totals_.busy_cycles[at] = std::min(totals_.busy_cycles[at] + cost.cycles, kMost_cycles);
  totals_.dma_bytes += cost.dma_bytes;
  totals_.macs += cost.macs;
  totals_.energy_nj += 1e-3 * (cost.macs * of_type(spec_.energy_pj.mac, cost.dtype, 0) +
                               cost.vector_elems * of_type(spec_.energy_pj.vector_op, cost.dtype, 0) +
                               static_cast<double>(cost.dma_bytes) * outside_pj(instruction));
  for (size_t k = 0; k < spec_.sram.size(); ++k)
    totals_.energy_nj += 1e-3 * cost.scratchpad_bytes[k] * spec_.energy_pj.sram_byte_pj(spec_.sram[k].name);
  totals_.cycles = now_cycles();
}

double Clock::outside_pj(const Instruction& instruction) const {
  const auto* load = std::get_if<DmaLoad>(&instruction);
  const bool constant = load && load->region == static_cast<int64_t>(Region::weights);
  return constant && spec_.flash ? spec_.energy_pj.flash_byte : spec_.energy_pj.dram_byte;
}

int64_t Clock::now_cycles() const { return *std::max_element(done_at_.begin(), done_at_.end()); }

Timing time_stream(const Spec& spec, std::span<const Instruction> instructions) {
  Clock clock(spec);
  for (const Instruction& instruction : instructions) clock.step(instruction);
  return clock.totals();
}

LayerTiming time_layer(const Spec& spec, const TopologyLayer& layer, double words_per_cycle) {
  LayerTiming out{.name = layer.name};
  out.macs =
      static_cast<double>(layer.pixels) * static_cast<double>(layer.products) * static_cast<double>(layer.filters);
  const bool systolic = spec.mac.kind == MacKind::systolic;
  demand_countable(most_cycles(spec.mac, layer), layer.name);
  out.compute_cycles =
      systolic
          ? systolic_cycles(spec.mac, layer.pixels, layer.products, layer.filters)
          : mac_cycles(spec, {.out_w = layer.pixels, .in_c = layer.products, .out_c = layer.filters, .is_rows = true});
  if (words_per_cycle > 0 && std::isfinite(words_per_cycle)) {
    // Each operand has a channel of its own; what the slowest needs beyond the compute time is a stall.
    const double weights = static_cast<double>(layer.products) * static_cast<double>(layer.filters);
    const double outputs = static_cast<double>(layer.pixels) * static_cast<double>(layer.filters);
    const double slowest = std::max({static_cast<double>(layer.input_words), weights, outputs}) / words_per_cycle;
    demand_countable(slowest, layer.name);
    out.stall_cycles = std::max<int64_t>(static_cast<int64_t>(std::ceil(slowest)) - out.compute_cycles, 0);
  }
  out.total_cycles = out.compute_cycles + out.stall_cycles;
  const double multipliers = static_cast<double>(systolic ? spec.mac.rows * spec.mac.cols : spec.mac.macs_per_cycle);
  // SCALE-Sim's count is one below the cycles that pass, which shows where there are few.
  out.utilization =
      out.total_cycles > 0 ? std::min(1.0, out.macs / (static_cast<double>(out.total_cycles) * multipliers)) : 1;
  return out;
}

}  // namespace hetnn::npu
