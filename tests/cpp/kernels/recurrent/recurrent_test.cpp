// Recurrent layers against their meanings: sequences that share what is read of the weights, and steps behind.
#include <algorithm>

#include "../kernel_runner.h"

namespace hetnn::kernels::testing {
namespace {

TEST(Recurrent, SequencesOfAnyNumberMatchTheirMeaning) {
  for (const bool lstm : {true, false})
    for (const int64_t batch : {1, 2, 3, 5, 9})
      for (const int64_t units : {7, 20}) {
        const std::string kernel = lstm ? "lstm" : "gru";
        const int64_t steps = 4, gates = lstm ? 4 : 3;
        const Tensor x = random_plain({steps, batch, gates * units}, 1), w = random_plain({gates * units, units}, 2),
                     h = random_plain({batch, units}, 3),
                     last = lstm ? random_plain({batch, units}, 4) : random_plain({units}, 4),
                     full = random_plain({steps, batch, units}, 5);
        const std::vector<Tensor> inputs = {x, w, h, last};
        const std::vector<TensorView> outputs(lstm ? 3 : 2, h.view);
        const auto states = meaning(kernel, inputs);
        for (const bool with_sum : {false, true}) {
          std::vector<Tensor> read = inputs;
          std::vector<Step> behind;
          std::vector<double> expected = states;
          if (with_sum) {
            read.push_back(full);
            behind.push_back({"sum", 4, {-1, 2}});
            for (size_t i = 0; i < expected.size(); ++i) expected[i] = 2 * full.values[i] - expected[i];
          }
          std::vector<TensorView> views = outputs;
          views[0] = full.view;
          const Params params = {{"bias", int64_t{1}}};
          for (const std::string& isa : available_isas()) {
            restrict_isa(isa);
            const std::string what = kernel + " of " + std::to_string(batch) + " on " + isa;
            const auto one = run_kernel(kernel, read, views, params, {.steps = behind});
            expect_close(one[0], expected, 2e-6, what);
            // The last state is that before the steps.
            expect_close(one[1], {states.end() - batch * units, states.end()}, 2e-6, what + ", the last state");
            const auto three = run_kernel(kernel, read, views, params, {.threads = 3, .steps = behind});
            for (size_t k = 0; k < one.size(); ++k) expect_same(three[k], one[k], what + " with 3 threads");
          }
          restrict_isa("");
          if (HasFatalFailure()) return;
        }
      }
}

}  // namespace
}  // namespace hetnn::kernels::testing
