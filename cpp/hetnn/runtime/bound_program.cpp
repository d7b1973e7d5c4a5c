// Binding: evaluates shapes, binds code, gives arena buffers that never live together, whatever
// runs at once, the same bytes.
#include "hetnn/runtime/bound_program.h"

#include <algorithm>
#include <map>

#include "hetnn/base/error.h"
#include "hetnn/memory/fit.h"
#include "hetnn/memory/liveness.h"

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

// The steps of each device in their order, and what each step waits for: those it depends on, and the one that its
// device runs before.
struct Order {
  std::vector<std::vector<int>> lanes, waits_for;
};

Order order_of(const program::Program& program) {
  Order out;
  std::map<std::string, size_t, std::less<>> lane_of;
  for (size_t k = 0; k < program.subprograms.size(); ++k) {
    const program::Subprogram& subprogram = program.subprograms[k];
    std::vector<int>& waits = out.waits_for.emplace_back(subprogram.depends_on.begin(), subprogram.depends_on.end());
    auto [at, fresh] = lane_of.emplace(subprogram.device, out.lanes.size());
    if (fresh) out.lanes.emplace_back();
    std::vector<int>& lane = out.lanes[at->second];
    if (!lane.empty()) waits.push_back(lane.back());
    lane.push_back(static_cast<int>(k));
  }
  return out;
}

}  // namespace

std::shared_ptr<const LoadedProgram> load(program::Program program, const std::string& called,
                                          const LoadedProgram* before) {
  auto out = std::make_shared<LoadedProgram>();
  if (before) out->queues = before->queues;
  out->program = std::move(program);
  for (size_t k = 0; k < out->program.subprograms.size(); ++k) {
    const program::Subprogram& subprogram = out->program.subprograms[k];
    out->executors.push_back(load_executor({out->program, subprogram, text(called, ": subprograms[", k, "]")}));
    auto& queue = out->queues[subprogram.device];
    if (!queue && out->executors.back()->one_at_a_time()) queue = std::make_shared<Turns>(1);
  }
  return out;
}

std::shared_ptr<const BoundProgram> bind(std::shared_ptr<const LoadedProgram> loaded, const Bindings& bindings,
                                         int threads) {
  const program::Program& program = loaded->program;
  auto out = std::make_shared<BoundProgram>();
  out->bindings = bindings;
  out->threads = threads;
  for (const program::Buffer& buffer : program.buffers) out->buffers.push_back(bind_buffer(buffer, bindings));
  Order order = order_of(program);
  memory::Liveness liveness(order.waits_for);
  int64_t moments = 0;
  for (size_t k = 0; k < loaded->executors.size(); ++k) {
    const auto& code = out->codes.emplace_back(loaded->executors[k]->bind({out->bindings, out->buffers, threads}));
    if (!code) continue;
    for (const Moment& moment : code->moments()) {
      for (const auto ids : {moment.inputs, moment.outputs}) {
        for (const int32_t id : ids) {
          if (id >= 0) liveness.use(id, static_cast<int>(k), moments);
        }
      }
      ++moments;
    }
  }
  for (const program::Subprogram& subprogram : program.subprograms)
    out->queues.push_back(loaded->queues.at(subprogram.device).get());
  for (const std::vector<int>& steps : order.lanes) {
    int64_t scratch_bytes = 0;
    for (const int k : steps) {
      if (const auto& code = out->codes[static_cast<size_t>(k)])
        scratch_bytes = std::max(scratch_bytes, code->scratch_bytes());
    }
    out->lanes.push_back({steps, scratch_bytes});
  }
  out->overlaps = !liveness.total();
  std::vector<memory::Buffer> arena;
  std::vector<int> ids;
  for (size_t k = 0; k < out->buffers.size(); ++k) {
    if (program.buffers[k].place != Place::arena) continue;
    ids.push_back(static_cast<int>(k));
    arena.push_back(liveness.lifetime(ids.back(), out->buffers[k].size_bytes));
  }
  const memory::Fit fit = memory::fit_greedy(arena, program::kAlignment, liveness.meetings(ids));
  for (size_t k = 0; k < ids.size(); ++k) out->buffers[static_cast<size_t>(ids[k])].arena_offset_bytes = fit.offsets[k];
  out->arena_bytes = fit.peak_bytes;
  out->loaded = std::move(loaded);
  return out;
}

}  // namespace hetnn::runtime
