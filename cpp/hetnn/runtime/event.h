// What a visit to a device ends with.
#pragma once

#include <exception>

#include "hetnn/base/parallel.h"

namespace hetnn::runtime {

/// Set once by one thread, with an error or without, and waited for by any.
class Event {
 public:
  void set() { flag_.set(); }
  void fail(std::exception_ptr error) {
    error_ = std::move(error);
    flag_.set();
  }
  /// Rethrows the error.
  void wait() const {
    flag_.wait();
    if (error_) std::rethrow_exception(error_);
  }
  /// Ready to be set again; nobody may be waiting.
  void clear() {
    error_ = nullptr;
    flag_.clear();
  }

 private:
  Flag flag_;
  std::exception_ptr error_;
};

}  // namespace hetnn::runtime
