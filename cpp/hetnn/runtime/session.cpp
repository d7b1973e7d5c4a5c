// Initial values of states.
#include "hetnn/runtime/session.h"

#include <cstring>

namespace hetnn::runtime {

Session::Session(std::shared_ptr<const program::Program> program)
    : program_(std::move(program)), states_(program_->states.size()) {
  for (size_t k = 0; k < states_.size(); ++k) {
    const auto size = static_cast<size_t>(program_->states[k].size_bytes);
    states_[k] = {AlignedBuffer(size), AlignedBuffer(size)};
  }
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

}  // namespace hetnn::runtime
