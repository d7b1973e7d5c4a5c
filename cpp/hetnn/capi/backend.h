/* What a vendor's shared library offers so that hetnn plans for its device, compiles for it and runs it.
 *
 * The library exports one function, hetnn_backend_entry, and links nothing of hetnn's. A Python class names it, which
 * needs no more than two lines (docs/devices.md):
 *
 *     class Mine(hetnn.backends.Library):
 *         path = "/opt/mine/libmine.so"
 *
 * Functions may be called from any thread, those of one device or of what one has opened one after another. What they
 * are given is lent for the call, and what they give is copied before the next. A status other than HETNN_OK ends the
 * call: hetnn_host.fail says why. Structs begin with their size, as in hetnn.h.
 */
#ifndef HETNN_BACKEND_H
#define HETNN_BACKEND_H

#include "hetnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Takes what a call answers with, besides its status. */
typedef struct hetnn_host {
  size_t size;
  void* context; /* the first argument of each function */
  /* Why the call fails. `node`: the one at fault, whose name is in the text; may be null. */
  void (*fail)(void* context, const char* message, const char* node);
  /* Of `supports`: why the device does not take the node. A label to count by, what was found, what is wanted, and a
   * sentence. May be called several times. */
  void (*reason)(void* context, const char* label, const char* found, const char* wanted, const char* sentence);
  /* Of `compile`: the code. */
  void (*code)(void* context, const void* bytes, size_t byte_count);
} hetnn_host;

/* A subgraph, or a node as a graph of it alone. */
typedef struct hetnn_subgraph {
  size_t size;
  const char* op;   /* of the last node: all that there is to a graph of one node */
  const char* text; /* hetnn's own form, constants included */
  size_t text_bytes;
  const void* onnx; /* an ONNX model; null unless the backend wants it, and for a node that ONNX has no form for */
  size_t onnx_bytes;
  const hetnn_port* inputs; /* dims of -1 stay open until a run */
  size_t input_count;
  const hetnn_port* outputs;
  size_t output_count;
} hetnn_subgraph;

typedef struct hetnn_backend {
  size_t size;
  const char* version; /* of the compiler and what runs its code; kept in every file */
  int32_t wants_onnx;
  /* A device of a target; `spec_json` is what the target says of it, an object. */
  hetnn_status (*make)(const char* name, const char* spec_json, const hetnn_host* host, void** device);
  void (*free)(void* device);
  /* HETNN_OK and no reason: the device takes the node. */
  hetnn_status (*supports)(void* device, const hetnn_subgraph* node, const hetnn_host* host);
  /* Predicted microseconds of a node, without launch and transfers. May be null: by the figures of the spec. */
  double (*time_us)(void* device, const hetnn_subgraph* node, double macs, double flops, double bytes);
  hetnn_status (*compile)(void* device, const hetnn_subgraph* subgraph, const hetnn_host* host);
  /* Makes code ready to run, perhaps in another process than the one that compiled it. */
  hetnn_status (*open)(void* device, const void* code, size_t byte_count, const hetnn_port* inputs, size_t input_count,
                       const hetnn_port* outputs, size_t output_count, const hetnn_host* host, void** opened);
  void (*close)(void* opened);
  /* Fills in data, dtype, rank and dims of each output, in memory of its own that stays until the next run or close. */
  hetnn_status (*run)(void* opened, const hetnn_tensor* inputs, size_t input_count, hetnn_tensor* outputs,
                      size_t output_count, const hetnn_host* host);
} hetnn_backend;

/* What the library exports. The struct stays. */
HETNN_EXTERN const hetnn_backend* hetnn_backend_entry(void);

#ifdef __cplusplus
}
#endif

#endif
