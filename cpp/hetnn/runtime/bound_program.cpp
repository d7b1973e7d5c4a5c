// Binding: evaluates shapes, binds code, gives arena buffers that never live together the same bytes.
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

// The moments at which a buffer is in use.
class Lifetimes {
 public:
  explicit Lifetimes(size_t buffers) : spans_(buffers) {}

  void visit(const Moment& moment) {
    for (int32_t id : moment.inputs) touch(id);
    for (int32_t id : moment.outputs) touch(id);
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

std::shared_ptr<const LoadedProgram> load(program::Program program, const std::string& called) {
  auto out = std::make_shared<LoadedProgram>();
  out->program = std::move(program);
  for (size_t k = 0; k < out->program.subprograms.size(); ++k)
    out->executors.push_back(
        load_executor({out->program, out->program.subprograms[k], text(called, ": subprograms[", k, "]")}));
  return out;
}

std::shared_ptr<const BoundProgram> bind(std::shared_ptr<const LoadedProgram> loaded, const Bindings& bindings,
                                         int threads) {
  const program::Program& program = loaded->program;
  auto out = std::make_shared<BoundProgram>();
  out->bindings = bindings;
  out->threads = threads;
  for (const program::Buffer& buffer : program.buffers) out->buffers.push_back(bind_buffer(buffer, bindings));
  Lifetimes lifetimes(program.buffers.size());
  for (const auto& executor : loaded->executors) {
    const auto& code = out->codes.emplace_back(executor->bind({out->bindings, out->buffers, threads}));
    if (!code) continue;
    for (const Moment& moment : code->moments()) lifetimes.visit(moment);
    out->scratch_bytes = std::max(out->scratch_bytes, code->scratch_bytes());
  }
  std::vector<memory::Buffer> arena;
  std::vector<size_t> ids;
  for (size_t k = 0; k < out->buffers.size(); ++k) {
    if (program.buffers[k].place != Place::arena) continue;
    arena.push_back(lifetimes.buffer(k, out->buffers[k].size_bytes));
    ids.push_back(k);
  }
  const memory::Fit fit = memory::fit_greedy(arena, program::kAlignment);
  for (size_t k = 0; k < ids.size(); ++k) out->buffers[ids[k]].arena_offset_bytes = fit.offsets[k];
  out->arena_bytes = fit.peak_bytes;
  out->loaded = std::move(loaded);
  return out;
}

}  // namespace hetnn::runtime
