// When the parts of one run ran.
#include "hetnn/runtime/run_times.h"

#include <algorithm>

namespace hetnn::runtime {

void BodyTimes::add(const RunTimes& round, double start_us, double round_us) {
  took_us += round_us;
  for (const auto* more : {&round.subprograms, &round.bodies}) {
    for (const SubprogramTime& row : *more) {
      const auto at = std::ranges::find(rows, row.name, &SubprogramTime::name);
      if (at == rows.end()) {
        rows.push_back(row);
        rows.back().start_us += start_us;
        rows.back().finish_us += start_us;
        continue;
      }
      at->finish_us = start_us + row.finish_us;
      at->queue_us += row.queue_us;
      at->cycles += row.cycles;
      at->simulated_us += row.simulated_us;
      at->fallback |= row.fallback;
      at->busy_us += row.busy_us;
    }
  }
}

}  // namespace hetnn::runtime
