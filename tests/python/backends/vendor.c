/* A vendor's library: a device that takes relu of f32. Of its spec "break" says where it breaks. */
#include <hetnn/backend.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

typedef struct device {
  char breaks[32];
} device;

typedef struct opened {
  device* on;
  float* held;
  int64_t dims[8];
} opened;

static hetnn_status make(const char* name, const char* spec, const hetnn_host* host, void** out) {
  device* made = calloc(1, sizeof *made);
  const char* at = strstr(spec, "\"break\": \"");
  (void)name;
  if (at) {
    at += strlen("\"break\": \"");
    strncpy(made->breaks, at, strcspn(at, "\"") < 31 ? strcspn(at, "\"") : 31);
  }
  if (!strcmp(made->breaks, "make")) {
    free(made);
    host->fail(host->context, "the board is not plugged in", NULL);
    return HETNN_UNAVAILABLE;
  }
  *out = made;
  return HETNN_OK;
}

static hetnn_status supports(void* on, const hetnn_subgraph* node, const hetnn_host* host) {
  (void)on;
  if (strcmp(node->op, "relu")) host->reason(host->context, "vendor_lacks", node->op, "relu", "it has relu alone");
  if (node->inputs[0].dtype != HETNN_F32) host->reason(host->context, "vendor_type", "another", "f32", "it has f32 alone");
  return HETNN_OK;
}

static double time_us(void* on, const hetnn_subgraph* node, double macs, double flops, double bytes) {
  (void)on, (void)node, (void)macs, (void)flops;
  return bytes * 1e-9;
}

static hetnn_status compile(void* on, const hetnn_subgraph* graph, const hetnn_host* host) {
  if (graph->input_count != 1 || graph->output_count != 1 || !strcmp(((device*)on)->breaks, "compile")) {
    host->fail(host->context, "one in, one out", NULL);
    return HETNN_DOES_NOT_FIT;
  }
  if (graph->text_bytes != strlen(graph->text) || !strstr(graph->text, "relu")) return HETNN_INTERNAL;
  host->code(host->context, "re\0lu", 5);
  return HETNN_OK;
}

static hetnn_status open_code(void* on, const void* code, size_t bytes, const hetnn_port* in, size_t in_count,
                              const hetnn_port* out, size_t out_count, const hetnn_host* host, void** made) {
  opened* one;
  if (bytes != 5 || memcmp(code, "re\0lu", 5) || in_count != 1 || out_count != 1 || in[0].rank != out[0].rank) {
    host->fail(host->context, "this is no code of mine", NULL);
    return HETNN_INVALID_MODEL;
  }
  one = calloc(1, sizeof *one);
  one->on = on;
  *made = one;
  return HETNN_OK;
}

static void close_code(void* one) {
  free(((opened*)one)->held);
  free(one);
}

static hetnn_status run(void* pointer, const hetnn_tensor* in, size_t in_count, hetnn_tensor* out, size_t out_count,
                        const hetnn_host* host) {
  opened* one = pointer;
  size_t count = 1, k;
  (void)in_count, (void)out_count;
  if (!strcmp(one->on->breaks, "run")) {
    host->fail(host->context, "the cable is out", NULL);
    return HETNN_UNAVAILABLE;
  }
  if (!strcmp(one->on->breaks, "crash")) raise(SIGSEGV);
  for (k = 0; k < (size_t)in[0].rank; ++k) count *= (size_t)(one->dims[k] = in[0].dims[k]);
  one->held = realloc(one->held, count * sizeof(float) + 1);
  for (k = 0; k < count; ++k) {
    const float x = ((const float*)in[0].data)[k];
    one->held[k] = x > 0 ? x : 0;
  }
  out[0].data = one->held, out[0].dtype = HETNN_F32, out[0].rank = in[0].rank, out[0].dims = one->dims;
  if (!strcmp(one->on->breaks, "shape")) out[0].rank -= 1;
  return HETNN_OK;
}

const hetnn_backend* hetnn_backend_entry(void) {
  static const hetnn_backend functions = {sizeof functions, "2.1",   0,         make,       free, supports,
                                          time_us,          compile, open_code, close_code, run};
  return &functions;
}
