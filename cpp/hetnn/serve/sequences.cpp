// A table of sequences with a bound, and an end for those that are left.
#include "hetnn/serve/sequences.h"

#include <algorithm>

#include "hetnn/base/error.h"

namespace hetnn::serve {

Sequences::Key Sequences::key_of(const Inference& request) {
  return {request.model, request.sequence, request.sequence_is_number};
}

std::shared_ptr<Sequence> Sequences::begin(const Inference& request, std::shared_ptr<const void> runner,
                                           std::string version, const runtime::Executable& executable, int64_t now_ns) {
  Key key = key_of(request);
  if (open_.size() >= kMost && !open_.contains(key))
    throw Unavailable(text(kMost, " sequences are open already, as many as may. Try again later."));
  auto made = std::make_shared<Sequence>(Sequence{std::move(version), std::move(runner), nullptr, now_ns});
  if (!executable.program()->states.empty()) made->session = executable.session();
  open_.insert_or_assign(std::move(key), made);
  return made;
}

std::shared_ptr<Sequence> Sequences::find(const Inference& request, int64_t now_ns) {
  const auto at = open_.find(key_of(request));
  if (at == open_.end()) {
    throw InvalidModel(text("the sequence ", request.sequence_called(), " of '", short_name(request.model),
                            "' has not begun here. Its first request must have sequence_start."));
  }
  const std::shared_ptr<Sequence>& found = at->second;
  if (!request.version.empty() && request.version != found->version)
    throw InvalidModel(text("the sequence ", request.sequence_called(), " runs on version ", found->version, "."));
  found->used_ns = now_ns;
  return found;
}

void Sequences::end(const Inference& request) { open_.erase(key_of(request)); }

void Sequences::forget(const std::string& network) {
  std::erase_if(open_, [&](const auto& row) { return std::get<0>(row.first) == network; });
}

void Sequences::forget_idle(int64_t now_ns) {
  if (now_ns - all_used_ns_ <= kIdle_ns) return;  // asked often, and none can be so old
  all_used_ns_ = now_ns;
  std::erase_if(open_, [&](const auto& row) {
    const int64_t used_ns = row.second->used_ns;
    if (now_ns - used_ns > kIdle_ns) return true;
    all_used_ns_ = std::min(all_used_ns_, used_ns);
    return false;
  });
}

}  // namespace hetnn::serve
