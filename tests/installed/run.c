/* run_c FILE.hetnn: runs a model of one f32 input on 0, 1/8, 2/8, … and prints every output's values, one a line. */
#include <hetnn/hetnn.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, hetnn_error_message());
  return 1;
}

int main(int argc, char** argv) {
  hetnn_executable* executable = NULL;
  hetnn_options options = {sizeof options, 1, 0, 0};
  hetnn_port port = {sizeof port, NULL, HETNN_F32, 0, NULL};
  hetnn_tensor in = {sizeof in, NULL, HETNN_F32, 0, NULL};
  size_t count = 1, k, outputs;
  float* x;
  hetnn_tensor* out;

  if (argc != 2) return 2;
  if (hetnn_load(argv[1], &options, &executable) != HETNN_OK) return failed("load");
  if (hetnn_input(executable, 0, &port) != HETNN_OK) return failed("input");
  for (k = 0; k < (size_t)port.rank; ++k) count *= (size_t)port.dims[k];
  x = malloc(count * sizeof *x);
  for (k = 0; k < count; ++k) x[k] = (float)k / 8;
  in.data = x;
  in.rank = port.rank;
  in.dims = port.dims;

  outputs = hetnn_output_count(executable);
  out = calloc(outputs, sizeof *out);
  for (k = 0; k < outputs; ++k) out[k].size = sizeof *out;
  if (hetnn_run(executable, NULL, &in, 1, out, outputs) != HETNN_OK) return failed("run");
  for (k = 0; k < outputs; ++k) {
    const float* y = out[k].data;
    size_t i, elems = 1;
    for (i = 0; i < (size_t)out[k].rank; ++i) elems *= (size_t)out[k].dims[i];
    for (i = 0; i < elems; ++i) printf("%.9g\n", y[i]);
    hetnn_tensor_free(&out[k]);
  }
  free(out);
  free(x);
  hetnn_free(executable);
  return 0;
}
