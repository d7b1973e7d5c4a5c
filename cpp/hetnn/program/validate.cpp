// What the runtime relies on in every program, whatever its devices are.
#include "hetnn/program/validate.h"

#include "hetnn/base/bool_bytes.h"
#include "hetnn/base/error.h"

namespace hetnn::program {
namespace {

constexpr size_t kMostSubprograms = 2048;

class Validator {
 public:
  Validator(const Program& program, const std::string& called) : program_(program), references_(program, called) {}

  void run() {
    std::set<std::string> symbols, defined;
    for (const Subprogram& subprogram : program_.subprograms)
      defined.insert(subprogram.defines.begin(), subprogram.defines.end());
    for (const Symbol& symbol : program_.symbols) {
      check(!symbol.name.empty() && symbols.insert(symbol.name).second, "symbols",
            text("the name '", symbol.name, "' is empty or stands twice"));
      check((symbol.min >= 0 || defined.contains(symbol.name)) && symbol.min <= symbol.max, "symbols",
            text("'", symbol.name, "' has the range ", symbol.min, "..", symbol.max));
    }
    known_ = free_symbols(program_);
    // What runs at once is planned for every two of them.
    check(program_.subprograms.size() <= kMostSubprograms, "subprograms",
          text("there are ", program_.subprograms.size(), "; at most ", kMostSubprograms, " can be run"));
    for (size_t k = 0; k < program_.buffers.size(); ++k) buffer(program_.buffers[k], text("buffers[", k, "]"));
    ports(program_.inputs, Place::input, "inputs");
    ports(program_.outputs, Place::output, "outputs");
    states();
    for (const Port& port : program_.inputs) sizes(port.buffer, "inputs");
    for (size_t k = 0; k < program_.buffers.size(); ++k) {
      const Place place = program_.buffers[k].place;
      check((place != Place::input && place != Place::output) || named_.contains(static_cast<int32_t>(k)),
            text("buffers[", k, "]"), "it is an input or output of the caller that no port and no state names");
    }
    for (size_t k = 0; k < program_.subprograms.size(); ++k) subprogram(k);
    for (const int32_t id : named_) {
      check(program_.buffers[static_cast<size_t>(id)].place != Place::output || writer_.contains(id), "outputs",
            text("no subprogram writes buffer ", id, ", an output of the model"));
    }
  }

 private:
  void check(bool holds, const std::string& field, const std::string& found) const {
    references_.check(holds, field, found);
  }
  void buffer(const Buffer& b, const std::string& field) const {
    check(b.shape.size() <= 8, field, text("rank ", b.shape.size(), " is above 8"));
    for (const Dim& dim : b.shape) {
      references_.known(dim, field);
      check(!dim.is_static() || dim.value() >= 0, field, text("a dimension is ", dim));
    }
    references_.known(b.pitch, field);
    if (b.layout == Layout::nhwc) {
      check(b.shape.size() >= 3 && b.shape.size() <= 5, field, text("layout nhwc with rank ", b.shape.size()));
      check(!b.pitch.is_static() || !b.shape[1].is_static() || b.pitch.value() >= b.shape[1].value(), field,
            text("pitch ", b.pitch, " is below ", b.shape[1], " channels"));
    }
    for (const Dim& stride : b.strides) {
      references_.known(stride, field);
      check(!stride.is_static() || stride.value() >= 0, field, text("a stride is ", stride));
    }
    check(b.strides.size() == (b.layout == Layout::strided ? b.shape.size() : 0), field,
          text(b.strides.size(), " strides of ", b.shape.size(), " axes, layout ", layout_name(b.layout)));
    if (b.place == Place::constant) {
      references_.in_weights(b.offset_bytes, b.size_bytes, field);
      check(is_static(b.shape), field, "a constant's shape holds symbols");
      check(b.layout == Layout::plain || (b.layout == Layout::nhwc && !b.packed && b.pitch == b.shape[1]), field,
            "a constant is neither plain nor nhwc without gaps");
      if (!b.packed) holds(b.offset_bytes, b.size_bytes, b.shape, b.dtype, field);
    } else {
      check(!b.packed, field, "it is packed and no constant; only constants are packed, when compiling");
      check(b.place == Place::arena || b.layout == Layout::plain, field,
            "an input or output of the model is not plain");
    }
    if (const auto fault = ops::quant_fault({b.dtype, b.shape, b.quant})) check(false, field, "it " + fault->text);
  }
  // A range of the weights is the elements, whose number may be any.
  void holds(int64_t offset_bytes, int64_t bytes, const Shape& shape, DType dtype, const std::string& field) const {
    check(bytes % dtype_bytes(dtype) == 0 && elements(shape) == Dim(bytes / dtype_bytes(dtype)), field,
          text("its ", bytes, " bytes do not hold ", to_string(shape)));
    if (dtype != DType::boolean) return;
    const auto untrue = first_not_bool(program_.weights.at(offset_bytes, bytes));
    check(!untrue, field, text("element ", untrue.value_or(0), " of a bool is neither 0 nor 1"));
  }
  void ports(const std::vector<Port>& ports, Place place, const std::string& field) {
    std::set<int32_t> seen;
    for (const Port& port : ports) {
      references_.read(port.buffer, field);
      check(program_.buffers[static_cast<size_t>(port.buffer)].place == place, field,
            text("buffer ", port.buffer, " of '", port.name, "' lies elsewhere"));
      check(seen.insert(port.buffer).second, field, text("buffer ", port.buffer, " stands twice"));
      named_.insert(port.buffer);
    }
  }
  void states() {
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
      references_.in_weights(s.offset_bytes, s.size_bytes, field);
      holds(s.offset_bytes, s.size_bytes, in.shape, in.dtype, field);
    }
  }
  void subprogram(size_t index) {
    const Subprogram& s = program_.subprograms[index];
    const std::string field = text("subprograms[", index, "]");
    for (int32_t buffer : s.inputs) {
      references_.read(buffer, field + ".inputs");
      sizes(buffer, field + ".inputs");
    }
    for (const std::string& symbol : s.defines) {
      references_.known(Dim::symbol(symbol), field + ".defines");
      check(known_.insert(symbol).second, field + ".defines", text("the symbol '", symbol, "' has a value already"));
    }
    for (int32_t buffer : s.outputs) {
      references_.written(buffer, field + ".outputs");
      sizes(buffer, field + ".outputs");
    }
    std::set<int32_t> earlier;
    for (int32_t before : s.depends_on) {
      check(before >= 0 && static_cast<size_t>(before) < index, field + ".depends_on",
            text(before, " is no earlier subprogram"));
      check(earlier.insert(before).second, field + ".depends_on", text(before, " stands twice"));
    }
    // Subprograms that do not wait for one another run at once.
    for (int32_t buffer : s.inputs) {
      if (auto at = writer_.find(buffer); at != writer_.end())
        check(earlier.contains(at->second), field + ".depends_on",
              text(at->second, " is missing, which writes buffer ", buffer));
    }
    for (int32_t buffer : s.outputs)
      check(writer_.emplace(buffer, static_cast<int32_t>(index)).second, field + ".outputs",
            text("buffer ", buffer, " is written by another subprogram too"));
  }

  // The symbols of the buffer's shape have values when it is read or written.
  void sizes(int32_t buffer, const std::string& field) const {
    const Buffer& b = program_.buffers[static_cast<size_t>(buffer)];
    for (const std::string& symbol : symbols_of(b))
      check(known_.contains(symbol), field, text("the symbol '", symbol, "' of '", b.name, "' has no value yet"));
  }

  const Program& program_;
  const References references_;
  std::set<int32_t> named_;            // buffers of ports and states
  std::map<int32_t, int32_t> writer_;  // buffer -> subprogram
  std::set<std::string> known_;        // symbols that have values behind the subprograms so far
};

}  // namespace

std::set<std::string> free_symbols(const Program& program) {
  std::set<std::string> out;
  for (const Symbol& symbol : program.symbols) out.insert(symbol.name);
  for (const Subprogram& subprogram : program.subprograms) {
    for (const std::string& symbol : subprogram.defines) out.erase(symbol);
  }
  return out;
}

std::set<std::string> symbols_before(const Program& program, const Subprogram& subprogram) {
  std::set<std::string> out = free_symbols(program);
  for (const Subprogram& earlier : program.subprograms) {
    if (&earlier == &subprogram) break;
    out.insert(earlier.defines.begin(), earlier.defines.end());
  }
  return out;
}

std::set<std::string> symbols_of(const Buffer& buffer) {
  std::set<std::string> out;
  for (const Dim& dim : buffer.shape) dim.collect_symbols(out);
  buffer.pitch.collect_symbols(out);
  for (const Dim& stride : buffer.strides) stride.collect_symbols(out);
  return out;
}

References::References(const Program& program, std::string called) : program_(program), called_(std::move(called)) {
  for (const Symbol& symbol : program.symbols) symbols_.insert(symbol.name);
}

void References::check(bool holds, const std::string& field, const std::string& found) const {
  if (!holds) throw InvalidModel(text(called_, ": ", field, ": ", found, ". The file is damaged or was altered."));
}

void References::known(const Dim& dim, const std::string& field) const {
  std::set<std::string> used;
  dim.collect_symbols(used);
  for (const std::string& name : used)
    check(symbols_.contains(name), field, text("the symbol '", name, "' is not declared"));
}

void References::in_weights(int64_t offset_bytes, int64_t bytes, const std::string& field) const {
  check(program_.weights.holds(offset_bytes, bytes), field,
        text("bytes [", offset_bytes, ", +", bytes, ") lie outside the ", program_.weights.size_bytes(),
             " bytes of weights"));
  check(offset_bytes % kAlignment == 0, field, text("offset ", offset_bytes, " is no multiple of ", kAlignment));
}

void References::read(int32_t buffer, const std::string& field) const {
  check(buffer >= 0 && static_cast<size_t>(buffer) < program_.buffers.size(), field,
        text("there is no buffer ", buffer));
}

void References::written(int32_t buffer, const std::string& field) const {
  read(buffer, field);
  const Place place = program_.buffers[static_cast<size_t>(buffer)].place;
  check(place == Place::arena || place == Place::output, field,
        text("buffer ", buffer, " is an input or a constant and is written"));
}

void validate(const Program& program, const std::string& called) {
  Validator(program, called).run();
  for (size_t k = 0; k < program.bodies.size(); ++k) validate(program.bodies[k], text(called, ": bodies[", k, "]"));
}

Code Code::of_text(std::string kind, int64_t version, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {std::move(kind), version, {bytes.begin(), bytes.end()}};
}

std::string_view Code::as_text(int64_t expected_version, const std::string& called) const {
  if (version != expected_version) {
    throw InvalidModel(text(called, ": its code for '", kind, "' is of version ", version,
                            "; this version of hetnn reads ", expected_version, ". Compile the model again."));
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace hetnn::program
