// Bodies of loops: programs that a command of the general processor runs round after round.
#include "hetnn/runtime/loop_body.h"

#include <algorithm>
#include <chrono>

#include "hetnn/base/counted.h"
#include "hetnn/base/error.h"
#include "hetnn/ops/control/loop.h"
#include "hetnn/program/validate.h"

namespace hetnn::runtime {
namespace {

// Of the inputs that a round takes, those that the body is handed: what was left out of the program, which packed
// buffers are, it has itself.
std::vector<size_t> handed_inputs(const program::Command& command, const program::Program& program) {
  std::vector<size_t> out;
  for (size_t k = 0; k < std::max(command.inputs.size(), ops::kBeforeValues); ++k) {
    const int32_t id = k < command.inputs.size() ? command.inputs[k] : -1;
    if (id < 0 || !program.buffers[static_cast<size_t>(id)].packed) out.push_back(k);
  }
  return out;
}

const program::Buffer& buffer_of(const program::Program& program, const program::Port& port) {
  return program.buffers[static_cast<size_t>(port.buffer)];
}

}  // namespace

int64_t body_of(const program::Command& command) {
  const auto number = command.attrs.find("program");
  if (number == command.attrs.end()) return -1;
  const Dim* dim = std::get_if<Dim>(&number->second);
  return dim && dim->is_static() ? dim->value() : -1;
}

void check_body(const program::Command& command, const program::Program& program, const LoadedBodies& bodies,
                const std::string& called) {
  const int64_t number = body_of(command);
  if (number < 0) return;
  const program::References references(program, called);
  const std::string field = text("the body of '", command.node, "'");
  references.check(number < static_cast<int64_t>(bodies.size()), field,
                   text("it is number ", number, " of the ", bodies.size(), " there are"));
  const program::Program& body = bodies[static_cast<size_t>(number)]->program;
  const std::vector<ops::Type> types = program::types_of_buffers(program);
  ops::Call loop = program::call_of(command, types);
  ops::complete(loop);
  const ops::Body calls = ops::read_body(loop, "body");
  const std::vector<ops::Type> given = ops::body_inputs(loop, calls), made = ops::infer_body(loop, calls, given);
  const std::vector<size_t> handed = handed_inputs(command, program);
  // Those before are read by the loop itself.
  for (size_t k = 0, next = 0; k < ops::kBeforeValues + ops::carried_values(loop); ++k) {
    references.check(next < handed.size() && handed[next++] == k, field,
                     text("input ", k, " of the loop has no data, and may change from round to round"));
  }
  auto port = body.inputs.begin();
  for (const size_t k : handed) {
    references.check(port != body.inputs.end() && program::type_of(buffer_of(body, *port)) == given[k], field,
                     text("its inputs are not those of the loop, which hands it ", to_string(given[k])));
    ++port;
  }
  for (; port != body.inputs.end(); ++port) {
    const program::Buffer& size = buffer_of(body, *port);
    references.check(size.dtype == DType::i8 && size.shape.size() == 1, field,
                     text("'", port->name, "' is neither a value of the loop nor a size"));
    references.known(size.shape[0], field);
  }
  references.check(body.outputs.size() == made.size(), field,
                   text("it gives ", counted(body.outputs.size(), "value"), " where ", made.size(), " are wanted"));
  for (size_t k = 0; k < made.size(); ++k) {
    const program::Buffer& output = buffer_of(body, body.outputs[k]);
    references.check(output.dtype == made[k].dtype && output.shape.size() == made[k].shape.size(), field,
                     text("it gives a ", dtype_name(output.dtype), to_string(output.shape), " where ",
                          to_string(made[k]), " is wanted"));
  }
}

LoopBody::LoopBody(const program::Command& command, const program::Program& program,
                   const std::shared_ptr<const LoadedProgram>& body, const Sizes& sizes)
    : executable_(std::make_unique<Executable>(body, sizes.threads, static_cast<int32_t>(body_of(command)))),
      values_(handed_inputs(command, program)) {
  const std::vector<program::Port>& inputs = body->program.inputs;
  for (size_t k = values_.size(); k < inputs.size(); ++k)
    sizes_.push_back(evaluate(buffer_of(body->program, inputs[k]).shape, sizes.bindings));
}

std::vector<Tensor> LoopBody::run(std::span<const ops::View> round, const RunOptions& options) const {
  std::vector<ops::View> given;
  for (const size_t k : values_) given.push_back(round[k]);
  for (const std::vector<int64_t>& size : sizes_) given.emplace_back(DType::i8, size, nullptr);
  return executable_->run(given, options);
}

std::unique_ptr<ops::RunningBody> BodyOfVisit::open(const ops::Call& loop) const {
  class Running final : public ops::RunningBody {
   public:
    Running(const LoopBody& body, const Launch& launch, const std::string& loop)
        : body_(body),
          launch_(launch),
          options_{.stop = launch.stop,
                   .times = launch.bodies ? &round_ : nullptr,
                   .held = launch.held,
                   .around = launch.around} {
      if (launch.bodies) launch.bodies->push_back({.loop = loop});
    }
    std::vector<Tensor> run(std::span<const ops::View> inputs) override {
      if (!launch_.bodies) return body_.run(inputs, options_);
      const Clock::time_point begin = Clock::now();
      std::vector<Tensor> out = body_.run(inputs, options_);
      // A visit runs one loop after another, so that the last is this one.
      launch_.bodies->back().add(round_, us(begin - launch_.begin), us(Clock::now() - begin));
      return out;
    }

   private:
    using Clock = std::chrono::steady_clock;
    static double us(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

    const LoopBody& body_;
    const Launch& launch_;
    RunTimes round_;
    const RunOptions options_;
  };
  return std::make_unique<Running>(body_, launch_, loop.name);
}

}  // namespace hetnn::runtime
