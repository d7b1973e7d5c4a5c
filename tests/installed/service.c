/* service_c FILE.hetnn STEPS OUTPUT INPUT…: runs a network STEPS times in one session, each INPUT being DIMS:PATH, as
 * 1,3,12,12:x.raw, with the values of all steps one after another; writes those of all outputs to OUTPUT. */
#include <hetnn/hetnn.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_PORTS = 8, MOST_RANK = 8 };

static size_t size_of(hetnn_dtype dtype) {
  switch (dtype) {
    case HETNN_F32:
      return 4;
    case HETNN_I64:
      return 8;
    default:
      exit(3);
  }
}

static size_t bytes_of(const hetnn_tensor* tensor) {
  size_t bytes = size_of(tensor->dtype);
  int32_t k;
  for (k = 0; k < tensor->rank; ++k) bytes *= (size_t)tensor->dims[k];
  return bytes;
}

static void check(hetnn_status status) {
  if (status == HETNN_OK) return;
  fprintf(stderr, "%s\n", hetnn_error_message());
  exit(1);
}

int main(int argc, char** argv) {
  hetnn_executable* executable = NULL;
  hetnn_session* session = NULL;
  hetnn_tensor in[MOST_PORTS], out[MOST_PORTS];
  int64_t dims[MOST_PORTS][MOST_RANK];
  FILE* files[MOST_PORTS];
  FILE* to;
  size_t inputs, outputs, k;
  int step;

  if (argc < 5) return 2;
  check(hetnn_load(argv[1], NULL, &executable));
  check(hetnn_session_new(executable, &session));
  inputs = hetnn_input_count(executable);
  outputs = hetnn_output_count(executable);
  if (inputs != (size_t)argc - 4 || outputs > MOST_PORTS) return 2;
  for (k = 0; k < inputs; ++k) {
    hetnn_port port = {sizeof port, NULL, HETNN_F32, 0, NULL};
    char* text = argv[4 + k];
    int32_t axis;
    check(hetnn_input(executable, k, &port));
    for (axis = 0; axis < port.rank; ++axis, ++text) dims[k][axis] = strtoll(text, &text, 10);
    in[k].size = sizeof in[k];
    in[k].dtype = port.dtype;
    in[k].rank = port.rank;
    in[k].dims = dims[k];
    in[k].data = malloc(bytes_of(&in[k]));
    files[k] = fopen(text, "rb");
    if (!files[k]) return 2;
  }
  to = fopen(argv[3], "wb");
  for (step = 0; step < atoi(argv[2]); ++step) {
    for (k = 0; k < inputs; ++k) {
      if (fread(in[k].data, 1, bytes_of(&in[k]), files[k]) != bytes_of(&in[k])) return 2;
    }
    for (k = 0; k < outputs; ++k) {
      out[k].size = sizeof out[k];
      out[k].data = NULL;
    }
    check(hetnn_run(executable, session, in, inputs, out, outputs));
    for (k = 0; k < outputs; ++k) {
      fwrite(out[k].data, 1, bytes_of(&out[k]), to);
      hetnn_tensor_free(&out[k]);
    }
  }
  for (k = 0; k < inputs; ++k) {
    fclose(files[k]);
    free(in[k].data);
  }
  fclose(to);
  hetnn_session_free(session);
  hetnn_free(executable);
  return 0;
}
