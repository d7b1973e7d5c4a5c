/* run_device FILE.hetnn: a device of a kind of its own, "doubler", as its vendor writes it. It doubles f32 values; its
 * code is empty. Runs the file on 0, 1, 2, … and prints the output. */
#include <hetnn/hetnn.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct visit {
  size_t count;
  float* held;
} visit;

static hetnn_status load(void* user, const hetnn_code* code, void** loaded) {
  (void)user;
  if (code->version != 1) return hetnn_fail(HETNN_INVALID_MODEL, "doubler: this is code of another version");
  if (code->inputs[0].dtype != HETNN_F32) return hetnn_fail(HETNN_UNSUPPORTED, "doubler: only f32 is doubled");
  *loaded = NULL;
  return HETNN_OK;
}
static void unload(void* loaded) { (void)loaded; }

static hetnn_status open_visit(void* loaded, const hetnn_port* inputs, const hetnn_port* outputs, void** out) {
  visit* v = malloc(sizeof *v);
  int32_t k;
  (void)loaded;
  (void)outputs;
  if (!v) return hetnn_fail(HETNN_DOES_NOT_FIT, "doubler: there is no memory");
  v->count = 1;
  for (k = 0; k < inputs[0].rank; ++k) v->count *= (size_t)inputs[0].dims[k];
  v->held = malloc(v->count * sizeof(float) + 1);
  *out = v;
  return HETNN_OK;
}
static void close_visit(void* opened) {
  free(((visit*)opened)->held);
  free(opened);
}

static hetnn_status upload(void* opened, const hetnn_tensor* inputs) {
  visit* v = opened;
  size_t k;
  for (k = 0; k < v->count; ++k) v->held[k] = ((const float*)inputs[0].data)[k];
  return HETNN_OK;
}
static hetnn_status start(void* opened, hetnn_event* done) {
  visit* v = opened;
  size_t k;
  for (k = 0; k < v->count; ++k) v->held[k] *= 2;
  hetnn_event_set(done, HETNN_OK, NULL);
  return HETNN_OK;
}
static hetnn_status download(void* opened, const hetnn_tensor* outputs) {
  visit* v = opened;
  size_t k;
  for (k = 0; k < v->count; ++k) ((float*)outputs[0].data)[k] = v->held[k];
  return HETNN_OK;
}

int main(int argc, char** argv) {
  const hetnn_device device = {sizeof device, "doubler", NULL,  load,     unload, open_visit,
                               close_visit,   upload,    start, download, NULL, 0};
  hetnn_executable* executable = NULL;
  hetnn_port port = {sizeof port, NULL, HETNN_F32, 0, NULL};
  hetnn_tensor in = {sizeof in, NULL, HETNN_F32, 0, NULL}, out = {sizeof out, NULL, HETNN_F32, 0, NULL};
  float x[64], y[64];
  size_t k, count = 1;
  if (argc != 2 || hetnn_register_device(&device) != HETNN_OK) return 2;
  if (hetnn_load(argv[1], NULL, &executable) != HETNN_OK || hetnn_input(executable, 0, &port) != HETNN_OK) goto failed;
  for (k = 0; k < (size_t)port.rank; ++k) count *= (size_t)port.dims[k];
  if (count > 64) return 2;
  for (k = 0; k < count; ++k) x[k] = (float)k;
  in.data = x, in.rank = port.rank, in.dims = port.dims;
  out.data = y, out.rank = port.rank, out.dims = port.dims;
  if (hetnn_run(executable, NULL, &in, 1, &out, 1) != HETNN_OK) goto failed;
  for (k = 0; k < count; ++k) printf("%g\n", y[k]);
  hetnn_free(executable);
  return 0;
failed:
  fprintf(stderr, "%s\n", hetnn_error_message());
  return 1;
}
