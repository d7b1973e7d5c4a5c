// Binding: evaluates shapes, makes kernels, gives arena buffers that never live together the same bytes.
#include "hetnn/runtime/bound_program.h"

#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/memory/fit.h"

namespace hetnn::runtime {
namespace {

using program::Place;

BoundBuffer bind_buffer(const program::Buffer& buffer, const Bindings& bindings) {
  BoundBuffer out;
  out.shape = evaluate(buffer.shape, bindings);
  for (int64_t dim : out.shape) {
    if (dim < 0)
      throw InvalidModel(text("'", buffer.name, "' would have the shape ",
                              to_string(Shape(out.shape.begin(), out.shape.end())), ". Give larger inputs."));
  }
  if (buffer.packed) {
    out.view = kernels::TensorView::of_weight(buffer.dtype, out.shape);
    out.size_bytes = buffer.size_bytes;
  } else {
    if (buffer.layout == Layout::nhwc) {
      const int64_t pitch_elems = buffer.pitch.evaluate(bindings);
      if (pitch_elems < out.shape[1]) {
        throw InvalidModel(text("'", buffer.name, "' has a pitch of ", pitch_elems, " for ", out.shape[1],
                                " channels. The executable is damaged; compile the model again."));
      }
      out.view = kernels::TensorView::nhwc(buffer.dtype, out.shape, pitch_elems);
    } else {
      out.view = kernels::TensorView::plain(buffer.dtype, out.shape);
    }
    out.size_bytes = out.view.span_bytes();
  }
  return out;
}

kernels::Params bind_params(const program::Params& params, const Bindings& bindings) {
  kernels::Params out;
  for (const auto& [name, value] : params) {
    if (auto* dim = std::get_if<Dim>(&value)) {
      out.set(name, dim->evaluate(bindings));
    } else if (auto* dims = std::get_if<std::vector<Dim>>(&value)) {
      out.set(name, evaluate(*dims, bindings));
    } else if (auto* real = std::get_if<double>(&value)) {
      out.set(name, *real);
    } else if (auto* reals = std::get_if<std::vector<double>>(&value)) {
      out.set(name, *reals);
    } else {
      out.set(name, std::get<std::string>(value));
    }
  }
  return out;
}

// The moments at which a buffer is in use: one moment a command, one an accelerator's visit.
class Lifetimes {
 public:
  explicit Lifetimes(size_t buffers) : spans_(buffers) {}

  void visit(const std::vector<int32_t>& inputs, const std::vector<int32_t>& outputs) {
    for (int32_t id : inputs) touch(id);
    for (int32_t id : outputs) touch(id);
    ++now_;
  }
  memory::Buffer buffer(size_t id, int64_t size_bytes) const {
    return {spans_[id].lower, spans_[id].upper, size_bytes};
  }

 private:
  struct Span {
    int64_t lower = -1;
    int64_t upper = 0;
  };
  void touch(int32_t id) {
    Span& span = spans_[static_cast<size_t>(id)];
    if (span.lower < 0) span.lower = now_;
    span.upper = now_ + 1;
  }
  std::vector<Span> spans_;
  int64_t now_ = 0;
};

}  // namespace

std::shared_ptr<const BoundProgram> bind(std::shared_ptr<const program::Program> program, const Bindings& bindings,
                                         int threads) {
  auto out = std::make_shared<BoundProgram>();
  out->bindings = bindings;
  out->threads = threads;
  for (const program::Buffer& buffer : program->buffers) out->buffers.push_back(bind_buffer(buffer, bindings));
  Lifetimes lifetimes(program->buffers.size());
  auto views = [&](const std::vector<int32_t>& ids) {
    std::vector<kernels::TensorView> list;
    list.reserve(ids.size());
    for (int32_t id : ids) list.push_back(out->buffers[static_cast<size_t>(id)].view);
    return list;
  };
  for (const program::Subprogram& subprogram : program->subprograms) {
    BoundSubprogram& bound = out->subprograms.emplace_back();
    bound.subprogram = &subprogram;
    if (auto* npu = std::get_if<program::NpuCode>(&subprogram.code)) {
      auto at = std::find_if(npu->variants.begin(), npu->variants.end(),
                             [&](const auto& variant) { return variant.bindings == bindings; });
      if (at != npu->variants.end()) bound.variant = &*at;
      lifetimes.visit(subprogram.inputs, subprogram.outputs);
    } else if (auto* cpu = std::get_if<program::CpuCode>(&subprogram.code)) {
      for (const program::Command& command : cpu->commands) {
        const kernels::KernelFamily* family = kernels::find_kernel(command.kernel);
        if (!family) {
          throw Unsupported(text("the executable uses the kernel '", command.kernel,
                                 "', which this version of hetnn does not have. Compile the model again."));
        }
        const auto inputs = views(command.inputs), outputs = views(command.outputs);
        const kernels::Params params = bind_params(command.params, bindings);
        BoundCommand& made = bound.commands.emplace_back();
        made.kernel = family->create({inputs, outputs, params});
        made.command = &command;
        made.serial = made.kernel->serial();
        out->scratch_bytes = std::max(out->scratch_bytes, made.kernel->scratch_bytes(made.serial ? 1 : threads));
        lifetimes.visit(command.inputs, command.outputs);
      }
    }
  }
  std::vector<memory::Buffer> arena;
  std::vector<size_t> ids;
  for (size_t k = 0; k < out->buffers.size(); ++k) {
    if (program->buffers[k].place != Place::arena) continue;
    arena.push_back(lifetimes.buffer(k, out->buffers[k].size_bytes));
    ids.push_back(k);
  }
  const memory::Fit fit = memory::fit_greedy(arena, program::kAlignment);
  for (size_t k = 0; k < ids.size(); ++k) out->buffers[ids[k]].arena_offset_bytes = fit.offsets[k];
  out->arena_bytes = fit.peak_bytes;
  out->program = std::move(program);
  return out;
}

}  // namespace hetnn::runtime
