// How far long work is: whoever begins it says who is told, and the work announces its steps.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

namespace hetnn {

/// While it lives, `tell` is given the steps that this thread's work announces, and the share of the whole, from 0 to
/// 1, that is done when a step begins and, at most every 100 ms, while it lasts. What it throws ends the work.
class ProgressScope {
 public:
  using Tell = std::function<void(std::string_view step, double done)>;
  explicit ProgressScope(Tell tell);
  ~ProgressScope();
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;

 private:
  struct Outer;
  std::unique_ptr<Outer> outer_;
};

/// A step of the work at hand: what is announced while it lives counts between these shares of the step around it.
class ProgressStep {
 public:
  ProgressStep(std::string_view step, double from, double to);
  ~ProgressStep();
  ProgressStep(const ProgressStep&) = delete;
  ProgressStep& operator=(const ProgressStep&) = delete;

 private:
  std::string_view step_;
  double from_, to_;  // of the step around it
};

/// That of `of` parts of the step at hand so many are done. Parts that are counted anew count where they pass those
/// before.
void announce_parts(size_t done, size_t of);

}  // namespace hetnn
