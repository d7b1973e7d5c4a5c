// What is known of every byte of a memory, kept for runs of bytes of which the same is known.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

namespace hetnn::npu {

template <typename T>
class Intervals {
 public:
  Intervals() = default;
  Intervals(const Intervals&) = delete;  // `near_` is of its own pieces
  Intervals& operator=(const Intervals&) = delete;

  using Iterator = typename std::map<int64_t, T>::iterator;
  /// The pieces of [begin, end), which begin and end there: from `first` to before `last`.
  struct Pieces {
    Iterator first, last;
  };
  Pieces cut(int64_t begin, int64_t end) {
    const Iterator first = split(begin, near_);
    near_ = first;
    return {first, split(end, first)};
  }
  /// Of all these bytes the same is known from now on.
  void join(const Pieces& pieces, T value) {
    pieces.first->second = std::move(value);
    pieces_.erase(std::next(pieces.first), pieces.last);
  }

 private:
  // Runs of one access follow one another: the piece sought is mostly a few behind the last.
  Iterator split(int64_t at, Iterator from) {
    constexpr int kSteps = 8;
    if (from->first > at) from = pieces_.begin();
    for (int step = 0; step < kSteps && from != pieces_.end() && from->first < at; ++step) ++from;
    if (from != pieces_.end() && from->first < at) from = pieces_.lower_bound(at);
    if (from != pieces_.end() && from->first == at) return from;
    return pieces_.emplace_hint(from, at, std::prev(from)->second);
  }

  std::map<int64_t, T> pieces_ = {{0, {}}};  // from their first byte to the next
  Iterator near_ = pieces_.begin();
};

}  // namespace hetnn::npu
