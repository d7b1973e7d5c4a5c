/* train_c STEP.hetnn STATE STEPS RATE OUT.hetnn: trains with a saved step of two f32 inputs, an example a row, and
 * prints each step's loss, then what the state holds. Of the k-th element of a batch, x is (7 k mod 23) / 23 - 1/2, and
 * a row's targets are the mean of its x. The learning rate is set first; OUT.hetnn holds what was learnt. */
#include <hetnn/hetnn.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, hetnn_error_message());
  return 1;
}

static size_t elements(const int64_t* dims, int32_t rank) {
  size_t count = 1;
  int32_t k;
  for (k = 0; k < rank; ++k) count *= (size_t)dims[k];
  return count;
}

int main(int argc, char** argv) {
  hetnn_executable* executable = NULL;
  hetnn_options options = {sizeof options, 1, 0, 0};
  hetnn_tensor in[2], loss = {sizeof loss, NULL, HETNN_F32, 0, NULL}, held = {sizeof held, NULL, HETNN_F32, 0, NULL};
  hetnn_tensor rate = {sizeof rate, NULL, HETNN_F32, 0, NULL};
  size_t count[2], rows, row, k;
  float* values[2];
  float to;
  int step, steps;

  if (argc != 6) return 2;
  steps = atoi(argv[3]);
  to = (float)atof(argv[4]);
  if (hetnn_load(argv[1], &options, &executable) != HETNN_OK) return failed("load");
  for (k = 0; k < 2; ++k) {
    hetnn_port port = {sizeof port, NULL, HETNN_F32, 0, NULL};
    if (hetnn_input(executable, k, &port) != HETNN_OK) return failed("input");
    count[k] = elements(port.dims, port.rank);
    values[k] = malloc(count[k] * sizeof *values[k]);
    in[k].size = sizeof in[k];
    in[k].data = values[k];
    in[k].dtype = HETNN_F32;
    in[k].rank = port.rank;
    in[k].dims = port.dims;
  }
  rows = (size_t)in[0].dims[0];
  for (k = 0; k < count[0]; ++k) values[0][k] = (float)(7 * k % 23) / 23 - 0.5F;
  for (row = 0; row < rows; ++row) {
    const size_t width = count[0] / rows, targets = count[1] / rows;
    float sum = 0;
    for (k = 0; k < width; ++k) sum += values[0][row * width + k];
    for (k = 0; k < targets; ++k) values[1][row * targets + k] = sum / (float)width;
  }

  rate.data = &to;
  if (hetnn_state_write(executable, NULL, "learning_rate", &rate) != HETNN_OK) return failed("learning rate");
  for (step = 0; step < steps; ++step) {
    if (hetnn_run(executable, NULL, in, 2, &loss, 1) != HETNN_OK) return failed("step");
    printf("%.9g\n", *(const float*)loss.data);
    hetnn_tensor_free(&loss);
  }
  if (hetnn_state_read(executable, NULL, argv[2], &held) != HETNN_OK) return failed("state");
  for (k = 0; k < elements(held.dims, held.rank); ++k) printf("%.9g\n", ((const float*)held.data)[k]);
  hetnn_tensor_free(&held);
  if (hetnn_save(executable, argv[5]) != HETNN_OK) return failed("save");
  free(values[0]);
  free(values[1]);
  hetnn_free(executable);
  return 0;
}
