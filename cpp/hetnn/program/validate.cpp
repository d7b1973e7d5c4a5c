// Everything the runtime relies on, checked before it runs a program.
#include <set>

#include "hetnn/base/error.h"
#include "hetnn/program/pack.h"

namespace hetnn::program {
namespace {

class Validator {
 public:
  Validator(const Program& program, const std::string& called) : program_(program), called_(called) {}

  void run() {
    std::set<std::string> symbols;
    for (const Symbol& symbol : program_.symbols) {
      check(!symbol.name.empty() && symbols.insert(symbol.name).second, "symbols",
            text("the name '", symbol.name, "' is empty or stands twice"));
      check(symbol.min >= 0 && symbol.min <= symbol.max, "symbols",
            text("'", symbol.name, "' has the range ", symbol.min, "..", symbol.max));
    }
    symbols_ = std::move(symbols);
    for (size_t k = 0; k < program_.buffers.size(); ++k) buffer(program_.buffers[k], text("buffers[", k, "]"));
    ports(program_.inputs, Place::input, "inputs");
    ports(program_.outputs, Place::output, "outputs");
    states();
    for (size_t k = 0; k < program_.subprograms.size(); ++k) subprogram(k);
  }

 private:
  void check(bool holds, const std::string& field, const std::string& found) const {
    if (!holds) throw InvalidModel(text(called_, ": ", field, ": ", found, ". The file is damaged or was altered."));
  }
  void known(const Dim& dim, const std::string& field) const {
    std::set<std::string> used;
    dim.collect_symbols(used);
    for (const std::string& name : used)
      check(symbols_.contains(name), field, text("the symbol '", name, "' is not declared"));
  }
  void within_weights(int64_t offset, int64_t size, const std::string& field) const {
    const auto all = static_cast<int64_t>(program_.weights.bytes.size());
    check(offset >= 0 && size >= 0 && offset <= all && size <= all - offset, field,
          text("bytes [", offset, ", +", size, ") lie outside the ", all, " bytes of weights"));
    check(offset % kAlignment == 0, field, text("offset ", offset, " is no multiple of ", kAlignment));
  }
  void buffer(const Buffer& b, const std::string& field) const {
    check(b.shape.size() <= 8, field, text("rank ", b.shape.size(), " is above 8"));
    for (const Dim& dim : b.shape) {
      known(dim, field);
      check(!dim.is_static() || dim.value() >= 0, field, text("a dimension is ", dim));
    }
    known(b.pitch, field);
    if (b.layout == Layout::nhwc) {
      check(b.shape.size() >= 3, field, text("layout nhwc with rank ", b.shape.size()));
      check(!b.pitch.is_static() || !b.shape[1].is_static() || b.pitch.value() >= b.shape[1].value(), field,
            text("pitch ", b.pitch, " is below ", b.shape[1], " channels"));
    }
    if (b.place == Place::constant) {
      within_weights(b.offset_bytes, b.size_bytes, field);
      check(is_static(b.shape), field, "a constant's shape holds symbols");
      if (!b.packed)
        check(b.layout == Layout::plain && b.size_bytes == elements(b.shape).value() * dtype_bytes(b.dtype), field,
              text("its ", b.size_bytes, " bytes do not hold ", to_string(b.shape)));
    } else if (b.place != Place::arena) {
      check(b.layout == Layout::plain, field, "an input or output of the model is not plain");
    }
  }
  void id(int32_t buffer, const std::string& field, bool writes) const {
    check(buffer >= 0 && static_cast<size_t>(buffer) < program_.buffers.size(), field,
          text("there is no buffer ", buffer));
    const Place place = program_.buffers[static_cast<size_t>(buffer)].place;
    check(!writes || place == Place::arena || place == Place::output, field,
          text("buffer ", buffer, " is an input or a constant and is written"));
  }
  void ports(const std::vector<Port>& ports, Place place, const std::string& field) const {
    std::set<int32_t> seen;
    for (const Port& port : ports) {
      id(port.buffer, field, false);
      check(program_.buffers[static_cast<size_t>(port.buffer)].place == place, field,
            text("buffer ", port.buffer, " of '", port.name, "' lies elsewhere"));
      check(seen.insert(port.buffer).second, field, text("buffer ", port.buffer, " stands twice"));
    }
  }
  void states() const {
    std::vector<Port> inputs = program_.inputs, outputs = program_.outputs;
    for (const State& s : program_.states) {
      inputs.push_back({s.name, s.input});
      outputs.push_back({s.name, s.output});
    }
    ports(inputs, Place::input, "states");
    ports(outputs, Place::output, "states");
    for (const State& s : program_.states) {
      const Buffer &in = program_.buffers[static_cast<size_t>(s.input)],
                   &out = program_.buffers[static_cast<size_t>(s.output)];
      const std::string field = text("states '", s.name, "'");
      check(in.dtype == out.dtype && in.shape == out.shape && is_static(in.shape), field,
            "its input and output are not of one type of fixed shape");
      within_weights(s.offset_bytes, s.size_bytes, field);
      check(s.size_bytes == elements(in.shape).value() * dtype_bytes(in.dtype), field,
            text("its ", s.size_bytes, " bytes do not hold ", to_string(in.shape)));
    }
  }
  void subprogram(size_t index) const {
    const Subprogram& s = program_.subprograms[index];
    const std::string field = text("subprograms[", index, "]");
    for (int32_t buffer : s.inputs) id(buffer, field + ".inputs", false);
    for (int32_t buffer : s.outputs) id(buffer, field + ".outputs", true);
    for (int32_t before : s.depends_on)
      check(before >= 0 && static_cast<size_t>(before) < index, field + ".depends_on",
            text(before, " is no earlier subprogram"));
    if (auto* cpu = std::get_if<CpuCode>(&s.code)) {
      check(s.kind == "cpu", field + ".kind", text("'", s.kind, "' with code for cpu"));
      for (size_t k = 0; k < cpu->commands.size(); ++k) {
        const std::string at = text(field, ".commands[", k, "]");
        for (int32_t buffer : cpu->commands[k].inputs) id(buffer, at, false);
        for (int32_t buffer : cpu->commands[k].outputs) id(buffer, at, true);
        for (const auto& [name, param] : cpu->commands[k].params) {
          if (auto* dim = std::get_if<Dim>(&param)) known(*dim, at);
          if (auto* dims = std::get_if<std::vector<Dim>>(&param)) {
            for (const Dim& dim : *dims) known(dim, at);
          }
        }
      }
    } else if (auto* npu = std::get_if<NpuCode>(&s.code)) {
      check(s.kind == "npu", field + ".kind", text("'", s.kind, "' with code for npu"));
      for (size_t k = 0; k < npu->variants.size(); ++k) variant(s, npu->variants[k], text(field, ".variants[", k, "]"));
    } else if (auto* reference = std::get_if<ReferenceCode>(&s.code)) {
      check(s.kind == "reference", field + ".kind", text("'", s.kind, "' with code for reference"));
      within_weights(reference->text_offset_bytes, reference->text_bytes, field + ".text");
    }
  }
  void variant(const Subprogram& s, const NpuVariant& v, const std::string& field) const {
    check(v.word_count >= 0 && v.word_count < (int64_t{1} << 40), field, text("word_count is ", v.word_count));
    within_weights(v.words_offset_bytes, v.word_count * 8, field + ".words");
    within_weights(v.image_offset_bytes, v.image_bytes, field + ".image");
    check(v.dram_bytes >= 0 && v.dram_bytes < (int64_t{1} << 40), field, text("dram_bytes is ", v.dram_bytes));
    check(v.inputs.size() == s.inputs.size() && v.outputs.size() == s.outputs.size(), field,
          "its ports are not the subprogram's");
    for (const std::string& name : symbols_)
      check(v.bindings.contains(name), field + ".bindings", text("the symbol '", name, "' has no value"));
    for (size_t k = 0; k < v.inputs.size(); ++k) port(v, v.inputs[k], s.inputs[k], field);
    for (size_t k = 0; k < v.outputs.size(); ++k) port(v, v.outputs[k], s.outputs[k], field);
  }
  void port(const NpuVariant& v, const NpuPort& p, int32_t buffer, const std::string& field) const {
    check(p.buffer == buffer, field, text("port of buffer ", p.buffer, " where ", buffer, " is wanted"));
    const Buffer& b = program_.buffers[static_cast<size_t>(buffer)];
    check(p.dtype == b.dtype, field,
          text("'", b.name, "' holds ", dtype_name(b.dtype), " outside and ", dtype_name(p.dtype), " inside"));
    const std::vector<int64_t> shape = evaluate(b.shape, v.bindings);
    // Values of other ranks are copied as one block, so both sides must be dense.
    check(shape.size() == 4 || (p.layout == Layout::plain && b.layout == Layout::plain), field,
          text("'", b.name, "' has layout nhwc with rank ", shape.size()));
    int64_t bytes = dtype_bytes(p.dtype);
    for (const int64_t dim : shape) {
      check(dim >= 0 && (dim == 0 || bytes <= v.dram_bytes / dim), field,
            text("'", b.name, "' is larger than the accelerator's memory"));
      bytes *= dim;
    }
    check(p.offset_bytes >= 0 && bytes <= v.dram_bytes && p.offset_bytes <= v.dram_bytes - bytes, field,
          text("'", b.name, "' lies outside the accelerator's memory"));
  }

  const Program& program_;
  const std::string& called_;
  std::set<std::string> symbols_;
};

}  // namespace

void validate(const Program& program, const std::string& called) { Validator(program, called).run(); }

}  // namespace hetnn::program
