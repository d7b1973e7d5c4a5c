// Requests that wait for an executable, and the threads that run them: by priority, several in one run where they may.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hetnn/base/tensor.h"
#include "hetnn/base/waiting_thread.h"
#include "hetnn/runtime/core_shares.h"
#include "hetnn/runtime/executable.h"

namespace hetnn::runtime {

/// One request. `number` is the asker's name for it.
struct Request {
  int64_t number = 0;
  int64_t priority = 0;    // less goes first; then who came first
  int64_t arrived_ns = 0;  // of the steady clock
  int64_t rows = 1;        // that it adds to a run
  Session* session = nullptr;
  std::vector<Tensor> inputs = {};
};

/// What became of a request, and its inputs, which die with it on the thread that takes it.
struct Ended {
  Request request;
  std::vector<Tensor> outputs = {};
  std::exception_ptr error = nullptr;  // null: it was run, or dropped
  bool dropped = false;
  int64_t started_ns = 0, run_ns = 0;
  int64_t run_rows = 0;                                      // of the whole run, told with one of its requests
  std::vector<std::pair<std::string, double>> busy_us = {};  // devices of that run
};

/// Where requests of any number of queues end. Where some end while none wait to be taken, eight bytes are written to
/// a descriptor, so that one thread can wait for these and other things: the one that makes this.
class Ends {
 public:
  explicit Ends(int descriptor) : descriptor_(descriptor) {}
  /// `leaves`: this thread is about to leave its core to whoever waits.
  void add(std::vector<Ended> more, bool leaves = false);
  std::vector<Ended> take();

 private:
  const int descriptor_;
  WaitingThread taker_;
  std::mutex mutex_;
  std::vector<Ended> ended_;
};

/// `executable` and `ends` outlive it.
class RunQueue {
 public:
  struct Options {
    int threads = 1;          // that run requests
    int cores = 0;            // that runs share (CoreShares); 0: each run has all that its executable has
    int64_t most_rows = 1;    // more than 1: requests alike but for their first size share a run
    int64_t delay_ns = 0;     // for how long after its arrival a request waits for others
    bool own_states = false;  // a request without a session begins with the initial states
  };
  RunQueue(Executable& executable, Ends& ends, const Options& options);
  ~RunQueue();
  RunQueue(const RunQueue&) = delete;
  RunQueue& operator=(const RunQueue&) = delete;

  /// False once it is closed, but for requests of a session.
  bool submit(Request request);
  /// The same for requests that come together: threads that sleep take them at the next `wake`.
  bool submit_asleep(Request request);
  void wake();
  /// Takes back a request that still waits.
  void drop(int64_t number);
  /// Lets what waits be run, and takes no more.
  void close();

 private:
  struct Waiting {
    int64_t priority, order;
    Request request;
  };
  static bool later(const Waiting& a, const Waiting& b);
  struct Turn {
    std::vector<Request> requests = {};
    int cores = 0;       // 0: as many as the executable has
    bool apart = false;  // on a core of its own
  };

  Request pop();
  void serve();
  Turn next();
  bool any_waits();
  std::vector<Ended> run(std::vector<Request> requests);
  std::vector<Ended> run_together(std::vector<Request>& requests);
  Ended run_alone(Request request);

  Executable& executable_;
  Ends& ends_;
  const Options options_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Waiting> waiting_;  // a heap
  int64_t orders_ = 0;
  int idle_ = 0, running_ = 0;  // threads
  CoreShares shares_;
  bool short_runs_ = false;  // the last one was
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace hetnn::runtime
