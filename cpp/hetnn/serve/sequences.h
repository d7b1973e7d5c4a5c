// The sequences that clients have begun: what each runs on, and the states between its steps.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "hetnn/runtime/executable.h"
#include "hetnn/serve/inference.h"

namespace hetnn::serve {

/// It stays on the version that it began on, whatever takes over meanwhile.
struct Sequence {
  std::string version;
  std::shared_ptr<const void> runner;         // the asker's own, which has its steps run
  std::unique_ptr<runtime::Session> session;  // null: the network keeps no states
  int64_t used_ns = 0;                        // of the steady clock
};

/// By network and the client's name for it; a number and a text are two names. A step that is under way keeps its
/// sequence when the table lets go of it. For one thread.
class Sequences {
 public:
  static constexpr size_t kMost = 10'000;
  static constexpr int64_t kIdle_ns = 600'000'000'000;

  /// The request's sequence anew, in the place of one of that name. Unavailable when as many as may are open.
  std::shared_ptr<Sequence> begin(const Inference& request, std::shared_ptr<const void> runner, std::string version,
                                  const runtime::Executable& executable, int64_t now_ns);
  /// The request's sequence. InvalidModel when it has not begun here or runs on another version than is asked for.
  std::shared_ptr<Sequence> find(const Inference& request, int64_t now_ns);
  /// Forgets the request's sequence, which may be gone already.
  void end(const Inference& request);
  /// Forgets all of a network.
  void forget(const std::string& network);
  /// Forgets those that nobody has continued for so long.
  void forget_idle(int64_t now_ns);
  size_t size() const { return open_.size(); }

 private:
  using Key = std::tuple<std::string, std::string, bool>;
  static Key key_of(const Inference& request);

  std::map<Key, std::shared_ptr<Sequence>> open_;
  int64_t all_used_ns_ = 0;  // at or after this, or the table was empty then
};

}  // namespace hetnn::serve
