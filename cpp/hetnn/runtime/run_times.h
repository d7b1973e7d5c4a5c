// When the parts of one run ran.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hetnn::runtime {

struct CommandTime {
  /// Another kernel of the operator: the time that its work is predicted to take, or why it does not serve.
  struct Rival {
    std::string kernel;
    double predicted_us;
    std::string refusal;
  };
  std::string node = {};
  std::string kernel = {};
  double start_us = 0;  // after the visit's start
  double wall_us = 0;
  std::vector<double> thread_us = {};      // that each thread computed; the rest of wall_us it waited for others
  double macs = 0, flops = 0, bytes = 0;   // what the operator does, and its operands and results hold
  std::vector<std::string> refusals = {};  // of what runs by its meaning: why no kernel serves it
  double predicted_us = 0;                 // of the kernel's work, by the machine that files are made for
  std::vector<Rival> rivals = {};          // the best first
  size_t subprogram = 0;                   // of the program, that it is part of
};

/// When a subprogram ran, in us after the run's start. Of one that loops repeat: the first start, the last finish, and
/// the sums of the other figures over all rounds.
struct SubprogramTime {
  std::string name;
  std::string device;
  double start_us = 0, finish_us = 0;
  double queue_us = 0;      // before the start, while its inputs were there and its device was not free
  int64_t cycles = 0;       // of an accelerator
  double simulated_us = 0;  // of an accelerator
  bool fallback = false;    // the device had no code for the sizes, and another ran what it has for this case
  double busy_us = 0;       // that the device worked on it; not while it waited for a body that it repeats
};

/// Times of one run; commands only when asked for.
struct RunTimes {
  std::vector<SubprogramTime> subprograms;  // a row each, in the program's order
  std::vector<SubprogramTime> bodies;       // of programs that loops repeated, as "LOOP/body NAME"
  std::vector<CommandTime> commands;
};

/// All rounds of one loop.
struct BodyTimes {
  std::string loop;
  double took_us = 0;
  std::vector<SubprogramTime> rows = {};  // a row each, however many rounds there were

  /// A round that began at `start_us`.
  void add(const RunTimes& round, double start_us, double round_us);
};

}  // namespace hetnn::runtime
