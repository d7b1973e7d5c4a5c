// Code of the general processor as JSON text and back.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "hetnn/base/error.h"
#include "hetnn/base/json_reader.h"
#include "hetnn/program/cpu_code.h"
#include "hetnn/program/validate.h"

namespace hetnn::program {
namespace {

using Json = nlohmann::ordered_json;
using ops::AttrKind;

Json dim_json(const Dim& dim) { return dim.is_static() ? Json(dim.value()) : Json(dim.to_string()); }

Json real_json(double value) {
  // JSON has no infinities and no NaN.
  return std::isfinite(value) ? Json(value) : Json(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

// Operators know the kinds of their attributes, so values need no tags. Of tensors only tables of i8 are attributes of
// what runs.
Json attr_json(const ops::Attr& attr) {
  Json list = Json::array();
  switch (ops::attr_kind(attr)) {
    case AttrKind::boolean:
      return std::get<bool>(attr);
    case AttrKind::integer:
      return dim_json(std::get<Dim>(attr));
    case AttrKind::real:
      return real_json(std::get<double>(attr));
    case AttrKind::string:
      return std::get<std::string>(attr);
    case AttrKind::dtype:
      return dtype_name(std::get<DType>(attr));
    case AttrKind::integers:
      for (const Dim& dim : std::get<std::vector<Dim>>(attr)) list.push_back(dim_json(dim));
      return list;
    case AttrKind::reals:
      for (double value : std::get<std::vector<double>>(attr)) list.push_back(real_json(value));
      return list;
    case AttrKind::tensor:
      for (int8_t value : std::get<Tensor>(attr).values<int8_t>()) list.push_back(value);
      return list;
  }
  throw InternalError("an attribute of no kind");
}

Json attrs_json(const ops::Attrs& attrs) {
  Json out = Json::object();
  for (const auto& [name, attr] : attrs) out[name] = attr_json(attr);
  return out;
}

int8_t byte_of(const JsonReader& r) {
  const int64_t value = r.integer();
  if (value < -128 || value > 127) r.wrong("an integer in [-128, 127]");
  return static_cast<int8_t>(value);
}

ops::Attr attr_of(const JsonReader& r, AttrKind kind) {
  switch (kind) {
    case AttrKind::boolean:
      return r.boolean();
    case AttrKind::integer:
      return r.dim();
    case AttrKind::real:
      return r.real();
    case AttrKind::string:
      return r.string();
    case AttrKind::dtype:
      return r.dtype();
    case AttrKind::integers:
      return r.shape();
    case AttrKind::reals:
      return r.map([](const JsonReader& value) { return value.real(); });
    case AttrKind::tensor: {
      const std::vector<int8_t> values = r.map(byte_of);
      return Tensor::of({static_cast<int64_t>(values.size())}, values);
    }
  }
  throw InternalError("an attribute of no kind");
}

const ops::OpDef* op_of(const JsonReader& r) {
  const std::string name = r.string();
  if (const ops::OpDef* op = ops::OpTable::global().find(name)) return op;
  throw Unsupported(text("the executable calls the operator '", name,
                         "', which this version of hetnn does not have. Compile the model again."));
}

ops::Attrs attrs_of(const JsonReader& r, const ops::OpDef& op) {
  ops::Attrs out;
  r.each([&](const std::string& name, const JsonReader& value) {
    const ops::AttrDef* def = op.find_attr(name);
    if (!def) value.wrong(text("an attribute of ", op.name));
    out.emplace(name, attr_of(value, def->kind));
  });
  return out;
}

Step step_of(const JsonReader& r) {
  r.only({"op", "attrs", "operand"});
  Step out{op_of(r["op"]), {}, r["operand"].id()};
  out.attrs = attrs_of(r["attrs"], *out.op);
  return out;
}

Command command_of(const JsonReader& r) {
  r.only({"op", "attrs", "inputs", "outputs", "steps", "variant", "options", "node"});
  Command out;
  out.op = op_of(r["op"]);
  out.attrs = attrs_of(r["attrs"], *out.op);
  out.inputs = r["inputs"].ids();
  out.outputs = r["outputs"].ids();
  out.steps = r["steps"].map(step_of);
  out.variant = r["variant"].string();
  r["options"].each([&](const std::string& name, const JsonReader& value) {
    out.options.emplace(name, value.is_text() ? ops::Attr(value.string()) : ops::Attr(Dim(value.integer())));
  });
  out.node = r["node"].string();
  return out;
}

// A command is a call whose types are those of its buffers, so that its operator's inference proves the outputs.
class Checker {
 public:
  Checker(const Program& program, const Subprogram& subprogram, const std::string& called)
      : references_(program, called),
        called_(called),
        known_(symbols_before(program, subprogram)),
        undefined_(subprogram.defines.begin(), subprogram.defines.end()) {
    for (const Buffer& buffer : program.buffers) types_.push_back(type_of(buffer));
  }

  void check(const Command& command, const std::string& at) {
    const size_t operands =
        static_cast<size_t>(std::ranges::count_if(command.steps, [](const Step& step) { return step.operand >= 0; }));
    if (operands > command.inputs.size()) wrong(at, "has more operands of steps than inputs");
    const size_t own = command.inputs.size() - operands;
    for (const int32_t id : command.inputs) {
      if (id >= 0) references_.read(id, at);
    }
    for (const int32_t id : command.outputs) references_.written(id, at);
    ops::Call call{
        .op = command.op, .inputs = {}, .outputs = {}, .attrs = command.attrs, .name = command.node, .loc = {}};
    for (size_t k = 0; k < own; ++k) call.inputs.push_back({type(command.inputs[k]), nullptr});
    const std::vector<ops::Type> made = inferred(call, at);
    for (const std::string& symbol : defined_symbols(call)) {
      if (undefined_.erase(symbol) == 0) wrong(at, text("gives a value to ", symbol, ", which is not its to define"));
    }
    if (made.size() != command.outputs.size())
      wrong(at, text("has ", command.outputs.size(), " outputs; ", command.op->name, " writes ", made.size()));
    for (size_t k = 0; k < made.size(); ++k) {
      const ops::Type& written = *type(command.outputs[k]);
      if (made[k] != written) wrong(at, text("writes ", to_string(made[k]), " into a buffer of ", to_string(written)));
    }
    size_t next = own;
    for (const Step& step : command.steps) {
      if (step.operand >= 0 && static_cast<size_t>(step.operand) != next++)
        wrong(at, "has a step whose operand is not the next of its inputs");
      ops::Call follower{
          .op = step.op, .inputs = {}, .outputs = {}, .attrs = step.attrs, .name = command.node, .loc = {}};
      follower.inputs.push_back({made.data(), nullptr});
      if (step.operand >= 0) {
        const ops::Type* operand = type(command.inputs[static_cast<size_t>(step.operand)]);
        if (!operand) wrong(at, "has a step without its operand");
        follower.inputs.push_back({operand, nullptr});
      }
      if (inferred(follower, at) != std::vector<ops::Type>{made[0]})
        wrong(at, text("has a step ", step.op->name, " that changes the type ", to_string(made[0])));
    }
  }

  void finish() const {
    if (!undefined_.empty()) wrong("commands", text("give no value to ", *undefined_.begin()));
  }

 private:
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
  const std::set<std::string> known_;  // symbols that have values when the code begins
  std::set<std::string> undefined_;    // those of the subprogram's that no command so far defines
  std::vector<ops::Type> types_;
};

}  // namespace

ops::Type type_of(const Buffer& buffer) { return {buffer.dtype, buffer.shape, buffer.quant}; }

Code write_cpu_code(const CpuCode& code) {
  Json commands = Json::array();
  for (const Command& c : code.commands) {
    Json steps = Json::array();
    for (const Step& step : c.steps)
      steps.push_back({{"op", step.op->name}, {"attrs", attrs_json(step.attrs)}, {"operand", step.operand}});
    commands.push_back({{"op", c.op->name},
                        {"attrs", attrs_json(c.attrs)},
                        {"inputs", c.inputs},
                        {"outputs", c.outputs},
                        {"steps", steps},
                        {"variant", c.variant},
                        {"options", attrs_json(c.options)},
                        {"node", c.node}});
  }
  return Code::of_text("cpu", kCpuCodeVersion,
                       Json{{"commands", commands}}.dump(-1, ' ', false, Json::error_handler_t::replace));
}

CpuCode read_cpu_code(const Subprogram& subprogram, const Program& program, const std::string& called) {
  const Json parsed = parse_json(subprogram.code.as_text(kCpuCodeVersion, called), called + ": its code");
  CpuCode out{JsonReader(parsed, called).only({"commands"})["commands"].map(command_of)};
  Checker checker(program, subprogram, called);
  for (size_t k = 0; k < out.commands.size(); ++k) checker.check(out.commands[k], text("commands[", k, "]"));
  checker.finish();
  return out;
}

}  // namespace hetnn::program
