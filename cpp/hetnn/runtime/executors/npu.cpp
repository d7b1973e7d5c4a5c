// Runs the NPU's code on a simulated machine: one variant for each value of the symbols.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "hetnn/base/error.h"
#include "hetnn/npu/code.h"
#include "hetnn/npu/spec.h"
#include "hetnn/npu/timing.h"
#include "hetnn/npu/verify.h"
#include "hetnn/program/validate.h"
#include "hetnn/runtime/executor.h"
#include "hetnn/runtime/layout_copy.h"
#include "hetnn/sim/machine.h"

namespace hetnn::runtime {
namespace {

constexpr int64_t kMostDram_bytes = int64_t{1} << 36;

// One machine with a variant loaded.
class NpuVisit final : public Visit {
 public:
  NpuVisit(const npu::Spec& spec, const npu::Variant& variant, const std::vector<BoundBuffer>& buffers,
           sim::Machine machine)
      : spec_(spec), variant_(variant), buffers_(buffers), machine_(std::move(machine)) {}

  int64_t bytes() const override { return machine_.bytes(); }
  void upload(Addresses addresses) override {
    for (const npu::Port& port : variant_.inputs) {
      const auto id = static_cast<size_t>(port.buffer);
      copy_value(port.dtype, buffers_[id].shape, addresses[id], outside(buffers_[id]), place(port),
                 inside(port, buffers_[id]));
    }
  }
  void start(const Launch& launch, Event& done) override {
    const auto begin = Stop::Clock::now();
    machine_.run(launch.stop);
    if (spec_.paced) {
      const std::chrono::duration<double, std::micro> predicted_us(spec_.launch_us + machine_.seconds() * 1e6);
      sleep_until(begin + std::chrono::duration_cast<Stop::Clock::duration>(predicted_us), launch.stop);
    }
    done.set();
  }
  void download(Addresses addresses) override {
    for (const npu::Port& port : variant_.outputs) {
      const auto id = static_cast<size_t>(port.buffer);
      copy_value(port.dtype, buffers_[id].shape, place(port), inside(port, buffers_[id]), addresses[id],
                 outside(buffers_[id]));
    }
  }
  DeviceTimes times() const override { return {machine_.timing().cycles, machine_.seconds() * 1e6}; }

 private:
  std::byte* place(const npu::Port& port) { return machine_.arena() + port.offset_bytes; }
  static MapLayout outside(const BoundBuffer& buffer) { return {buffer.view.layout, buffer.view.pitch_elems}; }
  // The machine's memory is dense.
  static MapLayout inside(const npu::Port& port, const BoundBuffer& buffer) {
    return {port.layout, buffer.shape.size() == 4 ? buffer.shape[1] : 0};
  }

  static void sleep_until(Stop::Clock::time_point end, const Stop* stop) {
    for (auto now = Stop::Clock::now(); now < end; now = Stop::Clock::now()) {
      if (stop) stop->check();
      std::this_thread::sleep_until(stop ? std::min(end, now + Stop::kEvery) : end);
    }
  }

  const npu::Spec& spec_;
  const npu::Variant& variant_;
  const std::vector<BoundBuffer>& buffers_;
  sim::Machine machine_;
};

class NpuBound final : public BoundCode {
 public:
  NpuBound(const program::Weights& weights, const npu::Spec& spec, const npu::Code& code, const npu::Variant& variant,
           const std::vector<uint64_t>& words, const std::vector<BoundBuffer>& buffers)
      : weights_(weights), spec_(spec), code_(code), variant_(variant), words_(words), buffers_(buffers) {}

  std::unique_ptr<Visit> open(std::span<const int64_t>) const override {
    std::vector<std::span<const std::byte>> constants;
    constants.reserve(code_.constants.size());
    for (const npu::Constant& c : code_.constants) constants.push_back(weights_.at(c.offset_bytes, c.size_bytes));
    return std::make_unique<NpuVisit>(spec_, variant_, buffers_,
                                      sim::Machine(spec_, words_, constants, variant_.dram_bytes));
  }

 private:
  const program::Weights& weights_;
  const npu::Spec& spec_;
  const npu::Code& code_;
  const npu::Variant& variant_;
  const std::vector<uint64_t>& words_;
  const std::vector<BoundBuffer>& buffers_;
};

class NpuExecutor final : public Executor {
 public:
  explicit NpuExecutor(const Load& load)
      : load_(load),
        code_(npu::read_code(load.code.as_text(npu::kCodeVersion, load.called), load.called)),
        symbols_(program::free_symbols(load.program)),
        spec_(npu::parse_spec(code_.spec_json, load.called)) {
    const program::References references(load.program, load.called);
    for (size_t k = 0; k < code_.constants.size(); ++k)
      references.in_weights(code_.constants[k].offset_bytes, code_.constants[k].size_bytes, text("constants[", k, "]"));
    for (size_t k = 0; k < code_.variants.size(); ++k) {
      const std::string field = text("variants[", k, "]");
      check(code_.variants[k], field, references);
      words_.push_back(checked_words(code_.variants[k], field, references));
    }
  }

  std::vector<Moment> moments() const override { return {{load_.subprogram.inputs, load_.subprogram.outputs}}; }

  std::unique_ptr<const BoundCode> bind(const Sizes& sizes) const override {
    // Of sizes that depend on values there is no code.
    Bindings given = sizes.bindings;
    std::erase_if(given, [&](const auto& binding) { return !symbols_.contains(binding.first); });
    auto at = std::find_if(code_.variants.begin(), code_.variants.end(),
                           [&](const npu::Variant& variant) { return variant.bindings == given; });
    if (at == code_.variants.end()) return nullptr;
    return std::make_unique<NpuBound>(load_.program.weights, spec_, code_, *at,
                                      words_[static_cast<size_t>(at - code_.variants.begin())], sizes.buffers);
  }
  std::vector<Bindings> bound_sizes() const override {
    std::vector<Bindings> out;
    for (const npu::Variant& variant : code_.variants) out.push_back(variant.bindings);
    return out;
  }

 private:
  void check(const npu::Variant& v, const std::string& field, const program::References& references) const {
    const program::Subprogram& s = load_.subprogram;
    constexpr int64_t kMost = int64_t{1} << 40;
    references.check(v.word_count >= 0 && v.word_count < kMost, field, text("word_count is ", v.word_count));
    references.in_weights(v.words_offset_bytes, v.word_count * 8, field + ".words");
    if (v.dram_bytes > kMostDram_bytes) {
      throw DoesNotFit(text(load_.called, ": ", field, ".dram_bytes is ", v.dram_bytes,
                            "; a simulated NPU has at most ", kMostDram_bytes, ". Cut the model into smaller ones."));
    }
    references.check(v.inputs.size() == s.inputs.size() && v.outputs.size() == s.outputs.size(), field,
                     "its ports are not the subprogram's");
    int64_t words = 1;  // the end
    for (const npu::Run& run : v.runs) {
      references.check(run.layer < static_cast<int64_t>(v.layers.size()) && run.words <= v.word_count - words, field,
                       text("a run of ", run.words, " words is of layer ", run.layer));
      words += run.words;
    }
    references.check(words == v.word_count, field, text("its runs have ", words - 1, " words and an end"));
    for (const std::string& symbol : symbols_)
      references.check(v.bindings.contains(symbol), field + ".bindings",
                       text("the symbol '", symbol, "' has no value"));
    for (size_t k = 0; k < v.inputs.size(); ++k) check(v, v.inputs[k], s.inputs[k], field, references);
    for (size_t k = 0; k < v.outputs.size(); ++k) check(v, v.outputs[k], s.outputs[k], field, references);
  }

  // A copy, since another process may write the file: what is run is what was verified.
  std::vector<uint64_t> checked_words(const npu::Variant& v, const std::string& field,
                                      const program::References& references) const {
    const auto bytes = load_.program.weights.at(v.words_offset_bytes, v.word_count * 8);
    std::vector<uint64_t> out(static_cast<size_t>(v.word_count));
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    npu::Clock clock(spec_);
    try {
      const std::vector<npu::Instruction> instructions = npu::decode(out);
      npu::verify_stream(spec_, instructions, v.dram_bytes);
      for (const npu::Instruction& instruction : instructions) clock.step(instruction);
    } catch (const InvalidModel& error) {
      references.check(false, field, error.what());
    }
    references.check(clock.now_cycles() == v.cycles, field,
                     text("its stream takes ", clock.now_cycles(), " cycles; stated are ", v.cycles));
    return out;
  }

  void check(const npu::Variant& v, const npu::Port& p, int32_t buffer, const std::string& field,
             const program::References& references) const {
    references.check(p.buffer == buffer, field, text("port of buffer ", p.buffer, " where ", buffer, " is wanted"));
    const program::Buffer& b = load_.program.buffers[static_cast<size_t>(buffer)];
    references.check(
        p.dtype == b.dtype, field,
        text("'", b.name, "' holds ", dtype_name(b.dtype), " outside and ", dtype_name(p.dtype), " inside"));
    const std::vector<int64_t> shape = evaluate(b.shape, v.bindings);
    // Values of other ranks are copied as one block, so both sides must be dense.
    references.check(shape.size() == 4 || (p.layout == Layout::plain && b.layout == Layout::plain), field,
                     text("'", b.name, "' has layout nhwc with rank ", shape.size()));
    int64_t bytes = std::ranges::count(shape, 0) > 0 ? 0 : dtype_bytes(p.dtype);
    for (const int64_t dim : shape) {
      references.check(dim >= 0 && (dim == 0 || bytes <= v.dram_bytes / dim), field,
                       text("'", b.name, "' is larger than the accelerator's memory"));
      bytes *= dim;
    }
    references.check(p.offset_bytes >= 0 && bytes <= v.dram_bytes && p.offset_bytes <= v.dram_bytes - bytes, field,
                     text("'", b.name, "' lies outside the accelerator's memory"));
  }

  const Load load_;
  const npu::Code code_;
  const std::set<std::string> symbols_;  // of the inputs' shapes
  const npu::Spec spec_;
  std::vector<std::vector<uint64_t>> words_;  // of every variant
};

}  // namespace

std::unique_ptr<const Executor> load_npu(const Load& load) { return std::make_unique<NpuExecutor>(load); }

}  // namespace hetnn::runtime
