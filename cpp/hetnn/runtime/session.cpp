// States' values: those they begin with, and those they hold.
#include "hetnn/runtime/session.h"

#include <algorithm>
#include <cstring>

namespace hetnn::runtime {

Session::Session(std::shared_ptr<const program::Program> program)
    : program_(std::move(program)), states_(program_->states.size()) {
  for (size_t k = 0; k < states_.size(); ++k)
    states_[k].now = AlignedBuffer(static_cast<size_t>(program_->states[k].size_bytes));
  reset();
}

void Session::reset() {
  admissions_.enter(nullptr);
  const Admission one_run(&admissions_);
  for (size_t k = 0; k < states_.size(); ++k) {
    const auto initial = program_->weights.at(program_->states[k].offset_bytes, program_->states[k].size_bytes);
    if (!initial.empty()) std::memcpy(states_[k].now.data(), initial.data(), initial.size());
  }
}

size_t Session::place_of(std::string_view name) const {
  std::string names;
  for (size_t k = 0; k < program_->states.size(); ++k) {
    if (program_->states[k].name == name) return k;
    names += text(names.empty() ? "" : ", ", program_->states[k].name);
  }
  throw InvalidModel(text("there is no state '", name, "'; the model keeps ", names.empty() ? "none" : names, "."));
}

Tensor Session::copy_of(size_t state) const {
  const program::Buffer& buffer = program_->buffers[static_cast<size_t>(program_->states[state].input)];
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(buffer.dtype, evaluate(buffer.shape, {}), &data);
  const auto size = static_cast<size_t>(program_->states[state].size_bytes);
  if (size > 0) std::memcpy(data, states_[state].now.data(), size);
  return out;
}

int64_t Session::bytes() {
  admissions_.enter(nullptr);
  const Admission one_run(&admissions_);
  size_t out = 0;
  for (const StateMemory& state : states_) out += state.now.size_bytes() + state.next.size_bytes();
  return static_cast<int64_t>(out);
}

Tensor Session::read(std::string_view name) {
  const size_t state = place_of(name);
  admissions_.enter(nullptr);
  const Admission one_run(&admissions_);
  return copy_of(state);
}

void Session::write(std::string_view name, const ops::View& value) {
  const size_t state = place_of(name);
  const program::Buffer& buffer = program_->buffers[static_cast<size_t>(program_->states[state].input)];
  const Shape found(value.shape.begin(), value.shape.end());
  if (value.dtype != buffer.dtype || found != buffer.shape) {
    throw InvalidModel(text("the state '", name, "' is ", dtype_name(buffer.dtype), to_string(buffer.shape), "; got ",
                            dtype_name(value.dtype), to_string(found), "."));
  }
  admissions_.enter(nullptr);
  const Admission one_run(&admissions_);
  const auto size = static_cast<size_t>(program_->states[state].size_bytes);
  if (size > 0) std::memcpy(states_[state].now.data(), value.data, size);
}

namespace {

// Whether neither another state nor a constant lies in a state's bytes: in files of compilers that let them share.
bool is_alone(const program::Program& program, const program::State& state) {
  const auto meets = [&](int64_t offset, int64_t bytes) {
    return offset < state.offset_bytes + state.size_bytes && state.offset_bytes < offset + bytes;
  };
  const auto holds = [&](const program::Program& of) {
    return std::ranges::any_of(of.buffers, [&](const program::Buffer& buffer) {
      return buffer.place == program::Place::constant && meets(buffer.offset_bytes, buffer.size_bytes);
    });
  };
  return !holds(program) && std::ranges::none_of(program.bodies, holds) &&
         std::ranges::none_of(program.states, [&](const program::State& other) {
           return &other != &state && meets(other.offset_bytes, other.size_bytes);
         });
}

}  // namespace

program::Program Session::put_into(program::Program out) {
  if (states_.empty()) return out;
  admissions_.enter(nullptr);
  const Admission one_run(&admissions_);
  for (size_t k = 0; k < states_.size(); ++k) {
    program::State& state = out.states[k];
    const auto initial = out.weights.at(state.offset_bytes, state.size_bytes);
    if (initial.empty() || std::memcmp(initial.data(), states_[k].now.data(), initial.size()) == 0) continue;
    if (is_alone(out, state)) {
      out.weights.replace(state.offset_bytes, program::Blob(copy_of(k)));
    } else {
      state.offset_bytes = out.weights.append(program::Blob(copy_of(k)));
    }
  }
  return out;
}

}  // namespace hetnn::runtime
