// Code of the general processor as JSON text and back.
#include <algorithm>
#include <array>

#include "hetnn/base/counted.h"
#include "hetnn/base/json_fields.h"
#include "hetnn/ops/sizes.h"
#include "hetnn/program/cpu_code.h"
#include "hetnn/program/validate.h"

namespace hetnn::program {
namespace {

using json::At;
using json::Convert;
using json::Fields;
using json::Json;
using json::object;
using ops::AttrKind;

// Tables are the only tensors among the attributes of what runs.
Convert<Tensor> table() {
  const Convert<std::vector<int8_t>> values = json::list_of(json::integer<int8_t>());
  return {[=](const At& at, Tensor& into) {
            const std::vector<int8_t> read = values.value(at);
            into = Tensor::of({static_cast<int64_t>(read.size())}, read);
          },
          [=](const Tensor& from) {
            const auto read = from.values<int8_t>();
            return values.write({read.begin(), read.end()});
          },
          values.schema};
}

template <typename V>
Convert<ops::Attr> alternative(Convert<V> as) {
  return {[read = as.read](const At& at, ops::Attr& into) { read(at, into.emplace<V>()); },
          [write = as.write](const ops::Attr& from) { return write(std::get<V>(from)); }, as.schema};
}

// Operators know the kinds of their attributes, so values need no tags.
const Convert<ops::Attr>& attr_of(AttrKind kind) {
  static const std::array<Convert<ops::Attr>, std::variant_size_v<ops::Attr>> kinds = {
      alternative(json::truth()),
      alternative(json::dim()),
      alternative(json::real()),
      alternative(json::any_text()),
      alternative(json::dtype()),
      alternative(json::shape()),
      alternative(json::list_of(json::real())),
      alternative(table())};
  return kinds[static_cast<size_t>(kind)];
}

Json attrs_json(const ops::Attrs& attrs) {
  Json out = Json::object();
  for (const auto& [name, attr] : attrs) out[name] = attr_of(ops::attr_kind(attr)).write(attr);
  return out;
}

Convert<const ops::OpDef*> op() {
  return {[](const At& at, const ops::OpDef*& into) {
            const std::string& name = json::read_text(at, 1);
            into = ops::OpTable::global().find(name);
            if (!into) {
              throw Unsupported(text("the executable calls the operator '", name,
                                     "', which this version of hetnn does not have. Compile the model again."));
            }
          },
          [](const ops::OpDef* const& from) { return Json(from->name); },
          {{"type", "string"}}};
}

// A visit has pointers for every command of every block.
constexpr int64_t kMostBlocks = 1 << 12;

// The attributes of the operator, which is read before them.
template <typename T>
Convert<T> attrs() {
  return {[](const At& at, T& into) {
            at.each_entry([&](const std::string& name, const At& value) {
              const ops::AttrDef* def = into.op->find_attr(name);
              if (!def) value.fail(text("is no attribute of ", into.op->name));
              attr_of(def->kind).read(value, into.attrs[name]);
            });
          },
          [](const T& from) { return attrs_json(from.attrs); },
          {{"type", "object"}}};
}

// Integers and texts.
Convert<ops::Attrs> options() {
  return {[](const At& at, ops::Attrs& into) {
            at.each_entry([&](const std::string& name, const At& value) {
              if (value.json.is_string()) {
                into[name] = json::read_text(value, 0);
              } else {
                into[name] = Dim(json::read_integer(value, INT64_MIN, INT64_MAX));
              }
            });
          },
          attrs_json,
          {{"type", "object"}}};
}

const Fields<Step>& step_fields() {
  static const Fields<Step> fields = {
      {"op", &Step::op, op(), "the operator"},
      {"attrs", attrs<Step>(), "its attributes"},
      {"operand", &Step::operand, json::index(), "the first of the command's inputs that it takes"},
      {"main", &Step::main, json::integer<int32_t>(0), "which of the operator's inputs the running value is",
       json::Presence::optional}};
  return fields;
}

const Fields<Command>& command_fields() {
  static const Fields<Command> fields = {
      {"op", &Command::op, op(), "the operator"},
      {"attrs", attrs<Command>(), "its attributes"},
      {"inputs", &Command::inputs, json::indices(), "buffers, then the operands of the steps"},
      {"outputs", &Command::outputs, json::indices(), "buffers"},
      {"steps", &Command::steps, json::list_of(object(step_fields)), "calls fused behind"},
      {"variant", &Command::variant, json::any_text(), "the kernel; empty: the operator's meaning"},
      {"options", &Command::options, options(), "what the kernel was chosen with"},
      {"node", &Command::node, json::any_text(), "the source node"}};
  return fields;
}

const Fields<CpuCode>& code_fields() {
  static const Fields<CpuCode> fields = {
      {"commands", &CpuCode::commands, json::list_of(object(command_fields)), "calls in order"},
      {"keep_denormals", &CpuCode::keep_denormals, json::truth(),
       "whether numbers too small for a normal f32 or f64 are computed with; else they count as zeros",
       json::Presence::optional},
      {"deterministic", &CpuCode::deterministic, json::truth(),
       "whether kernels were chosen that round as the operators' own sums do", json::Presence::optional},
      {"blocks", &CpuCode::blocks, json::integer<int64_t>(1, kMostBlocks),
       "the calls run for so many blocks of a batch, one after another", json::Presence::optional},
      {"in_blocks", &CpuCode::in_blocks, json::indices(),
       "inputs and outputs of the subprogram that hold all blocks, along axis 0", json::Presence::optional}};
  return fields;
}

// A command is a call whose types are those of its buffers, so that its operator's inference proves the outputs.
class Checker {
 public:
  Checker(const Program& program, const Subprogram& subprogram, const CpuCode& code, const std::string& called)
      : references_(program, called),
        called_(called),
        types_(types_of_buffers(program)),
        known_(symbols_before(program, subprogram)),
        undefined_(subprogram.defines.begin(), subprogram.defines.end()) {
    check_blocks(subprogram, code);
    types_ = types_in_code(program, code);
  }

  void check(const Command& command, const std::string& at) {
    if (own_inputs(command) < 0) wrong(at, "has more operands of steps than inputs");
    for (const int32_t id : command.inputs) {
      if (id >= 0) references_.read(id, at);
    }
    for (const int32_t id : command.outputs) references_.written(id, at);
    ops::Call call = call_of(command, types_);
    const std::vector<ops::Type> made = inferred(call, at);
    for (const std::string& symbol : defined_symbols(call)) {
      if (undefined_.erase(symbol) == 0) wrong(at, text("gives a value to ", symbol, ", which is not its to define"));
    }
    if (made.size() != command.outputs.size())
      wrong(at,
            text("has ", counted(command.outputs.size(), "output"), "; ", command.op->name, " writes ", made.size()));
    const auto writes = [&](size_t k, const ops::Type& value) {
      const ops::Type& written = *type(command.outputs[k]);
      if (value != written) wrong(at, text("writes ", to_string(value), " into a buffer of ", to_string(written)));
    };
    for (size_t k = 1; k < made.size(); ++k) writes(k, made[k]);
    ops::Type running = made.empty() ? ops::Type{} : made[0];
    size_t next = call.inputs.size();
    for (const Step& step : command.steps) {
      const int32_t operands = operand_count(step);
      if (operands > 0 && static_cast<size_t>(step.operand) != next)
        wrong(at, "has a step whose operand is not the next of its inputs");
      next += static_cast<size_t>(operands);
      ops::Call follower{
          .op = step.op, .inputs = {}, .outputs = {}, .attrs = step.attrs, .name = command.node, .loc = {}};
      if (step.main > operands) wrong(at, "has a step whose running value is none of its operator's inputs");
      for (int32_t k = 0; k < operands; ++k) {
        const ops::Type* operand = type(command.inputs[static_cast<size_t>(step.operand) + static_cast<size_t>(k)]);
        if (!operand) wrong(at, "has a step without its operand");
        follower.inputs.push_back({operand, nullptr});
      }
      follower.inputs.insert(follower.inputs.begin() + step.main, {&running, nullptr});
      const std::vector<ops::Type> followed = inferred(follower, at);
      const bool converts = step.op->has(ops::Trait::elementwise) && !running.quant && followed.size() == 1 &&
                            followed[0] == ops::Type{followed[0].dtype, running.shape};
      // The result of integers and another value of them has a scale of its own.
      const bool requantizes = operands > 0 && running.quant && followed.size() == 1 &&
                               followed[0] == ops::Type{running.dtype, running.shape, followed[0].quant};
      if (!converts && !requantizes && followed != std::vector<ops::Type>{running})
        wrong(at, text("has a step ", step.op->name, " that changes the type ", to_string(running)));
      running = followed[0];
    }
    if (!made.empty()) writes(0, running);
  }

  void finish() const {
    if (!undefined_.empty()) wrong("commands", text("give no value to ", *undefined_.begin()));
  }

 private:
  void check_blocks(const Subprogram& subprogram, const CpuCode& code) const {
    if (code.blocks == 1 && code.in_blocks.empty()) return;
    if (!undefined_.empty()) wrong("blocks", "give values to symbols");
    for (const int32_t id : code.in_blocks) {
      references_.read(id, "in_blocks");
      const Shape& shape = type(id)->shape;
      const auto names = [&](const std::vector<int32_t>& ids) { return std::ranges::find(ids, id) != ids.end(); };
      if (!names(subprogram.inputs) && !names(subprogram.outputs))
        wrong("in_blocks", "names what is no input and no output");
      if (std::ranges::count(code.in_blocks, id) > 1 || shape.empty() || !shape[0].is_static() ||
          shape[0].value() % code.blocks != 0)
        wrong("in_blocks", text("cannot cut ", to_string(shape), " into ", code.blocks, " blocks"));
    }
    for (const int32_t id : subprogram.outputs)
      if (std::ranges::find(code.in_blocks, id) == code.in_blocks.end())
        wrong("in_blocks", "leaves out an output, which every block would write");
  }

  const ops::Type* type(int32_t id) const { return id < 0 ? nullptr : &types_[static_cast<size_t>(id)]; }

  std::vector<ops::Type> inferred(ops::Call& call, const std::string& at) const {
    for (const auto& [name, attr] : call.attrs) {
      if (auto* dim = std::get_if<Dim>(&attr)) references_.known(*dim, at);
      if (auto* dims = std::get_if<std::vector<Dim>>(&attr)) {
        for (const Dim& dim : *dims) references_.known(dim, at);
      }
    }
    std::set<std::string> needed;
    collect_needed_symbols(call, needed);
    for (const std::string& symbol : needed) {
      if (!known_.contains(symbol)) wrong(at, text("needs the symbol ", symbol, ", which has no value yet"));
    }
    try {
      complete(call);
      return infer_types(call);
    } catch (const InvalidModel& error) {
      wrong(at, error.what());
    }
  }

  [[noreturn]] void wrong(const std::string& at, const std::string& what) const {
    throw InvalidModel(text(called_, ": ", at, " ", what, ". The file is damaged or was altered."));
  }

  const References references_;
  const std::string& called_;
  std::vector<ops::Type> types_;       // of the program's buffers, as commands have them
  const std::set<std::string> known_;  // symbols that have values when the code begins
  std::set<std::string> undefined_;    // those of the subprogram's that no command so far defines
};

}  // namespace

ops::Type type_of(const Buffer& buffer) { return {buffer.dtype, buffer.shape, buffer.quant}; }

std::vector<ops::Type> types_of_buffers(const Program& program) {
  std::vector<ops::Type> out;
  for (const Buffer& buffer : program.buffers) out.push_back(type_of(buffer));
  return out;
}

std::vector<ops::Type> types_in_code(const Program& program, const CpuCode& code) {
  std::vector<ops::Type> out = types_of_buffers(program);
  for (const int32_t id : code.in_blocks) {
    Dim& entries = out[static_cast<size_t>(id)].shape[0];
    entries = entries.value() / code.blocks;
  }
  return out;
}

int32_t operand_count(const Step& step) {
  if (step.operand < 0) return 0;
  const auto given = step.attrs.find("coefficients");
  const auto* coefficients = given == step.attrs.end() ? nullptr : std::get_if<std::vector<double>>(&given->second);
  const bool several =
      !step.op->inputs.empty() && step.op->inputs.back().variadic && coefficients && coefficients->size() > 1;
  if (several) return static_cast<int32_t>(coefficients->size()) - 1;
  return std::max(1, static_cast<int32_t>(step.op->inputs.size()) - 1);
}

int64_t own_inputs(const Command& command) {
  auto out = static_cast<int64_t>(command.inputs.size());
  for (const Step& step : command.steps) out -= operand_count(step);
  return out;
}

ops::Call call_of(const Command& command, const std::vector<ops::Type>& buffers) {
  ops::Call out{command.op, {}, {}, command.attrs, command.node, {}};
  for (int64_t k = 0; k < own_inputs(command); ++k) {
    const int32_t id = command.inputs[static_cast<size_t>(k)];
    out.inputs.push_back({id < 0 ? nullptr : &buffers[static_cast<size_t>(id)], nullptr});
  }
  return out;
}

Code write_cpu_code(const CpuCode& code) {
  return Code::of_text("cpu", kCpuCodeVersion, json::to_text(code_fields().write(code)));
}

std::string cpu_code_schema() { return json::schema_text("The code of a CPU", code_fields().schema()); }

CpuCode read_cpu_code(const Code& code, const Subprogram& subprogram, const Program& program,
                      const std::string& called) {
  const Json document = json::parse(code.as_text(kCpuCodeVersion, called), kCpuCodeJson, called);
  CpuCode out = code_fields().value({document, kCpuCodeJson, called});
  Checker checker(program, subprogram, out, called);
  for (size_t k = 0; k < out.commands.size(); ++k) checker.check(out.commands[k], text("commands[", k, "]"));
  checker.finish();
  return out;
}

}  // namespace hetnn::program
