/* Runs hetnn executables from C: loads .hetnn files, runs them on arrays, and takes devices of further kinds.
 *
 * Every function may be called from any thread, and an executable serves many runs at once. A call that fails returns a
 * status other than HETNN_OK and leaves a text for hetnn_error_message(); what it would have written through pointers
 * is as it was. Structs begin with their size, sizeof(struct) of the caller's header, so that programs run on later
 * versions of the library: members that a program did not know count as zero, and zero is every option's default.
 */
#ifndef HETNN_HETNN_H
#define HETNN_HETNN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HETNN_EXTERN __attribute__((visibility("default")))
#else
#define HETNN_EXTERN
#endif

/* Any number may come from C, so C++ must not take an enumeration for less than an int. */
#ifdef __cplusplus
extern "C" {
#define HETNN_NOEXCEPT noexcept
#define HETNN_INT_ENUM : int
#else
#define HETNN_NOEXCEPT
#define HETNN_INT_ENUM
#endif

typedef struct hetnn_executable hetnn_executable;
typedef struct hetnn_session hetnn_session;
typedef struct hetnn_run_handle hetnn_run_handle;

typedef enum hetnn_status HETNN_INT_ENUM {
  HETNN_OK = 0,
  HETNN_INVALID_MODEL = 1, /* the file or an argument is wrong */
  HETNN_UNSUPPORTED = 2,   /* valid, but not something that can be done here */
  HETNN_DOES_NOT_FIT = 3,  /* exceeds a memory */
  HETNN_INTERNAL = 4,      /* a bug in hetnn or in a device */
  HETNN_UNAVAILABLE = 5,   /* not now: too many runs, a deadline that passed, a device that is gone */
  HETNN_CANCELLED = 6      /* hetnn_cancel was called */
} hetnn_status;

/* Element types, numbered from 0 in the order of their table: HETNN_F32, HETNN_F64, HETNN_F16, HETNN_BF16, HETNN_I8 and
   so on. Nothing is computed in those of the second kind, HETNN_F8E4M3FN and so on: a byte for each element. */
typedef enum hetnn_dtype HETNN_INT_ENUM {
#define HETNN_COMPUTED(dtype, name, type, kind, numpy, kserve, c, torch, onnx, tflite) c,
#define HETNN_STORED(dtype, name, numpy, c, torch, onnx, tflite, encoding) c,
#include "hetnn/base/dtypes.inc"
#undef HETNN_COMPUTED
#undef HETNN_STORED
} hetnn_dtype;

/* The library's version, as "0.1.0". */
HETNN_EXTERN const char* hetnn_version(void) HETNN_NOEXCEPT;
/* What went wrong in the last call of this thread that failed; it stays until the next one fails. */
HETNN_EXTERN const char* hetnn_error_message(void) HETNN_NOEXCEPT;

/* Executables. */

typedef struct hetnn_options {
  size_t size;
  int32_t threads;             /* of one run; 0: as many as there are CPUs */
  int32_t max_concurrent_runs; /* 0: no bound */
  int32_t refuse_when_full;    /* runs beyond the bound fail with HETNN_UNAVAILABLE; 0: they wait for their turn */
} hetnn_options;

/* Maps the file at `path`. `options` may be null. */
HETNN_EXTERN hetnn_status hetnn_load(const char* path, const hetnn_options* options,
                                     hetnn_executable** executable) HETNN_NOEXCEPT;
/* The same from a file's bytes, which are copied. */
HETNN_EXTERN hetnn_status hetnn_load_memory(const void* data, size_t bytes, const hetnn_options* options,
                                            hetnn_executable** executable) HETNN_NOEXCEPT;
/* No run of it may be under way. Null is let pass. */
HETNN_EXTERN void hetnn_free(hetnn_executable* executable) HETNN_NOEXCEPT;

/* An input or output. Name and dims stay as long as the executable; a dimension of -1 varies from run to run. */
typedef struct hetnn_port {
  size_t size;
  const char* name;
  hetnn_dtype dtype;
  int32_t rank;
  const int64_t* dims;
} hetnn_port;

/* 0 for null. */
HETNN_EXTERN size_t hetnn_input_count(const hetnn_executable* executable) HETNN_NOEXCEPT;
HETNN_EXTERN size_t hetnn_output_count(const hetnn_executable* executable) HETNN_NOEXCEPT;
/* Fills `port`, whose size the caller has set. */
HETNN_EXTERN hetnn_status hetnn_input(const hetnn_executable* executable, size_t index,
                                      hetnn_port* port) HETNN_NOEXCEPT;
HETNN_EXTERN hetnn_status hetnn_output(const hetnn_executable* executable, size_t index,
                                       hetnn_port* port) HETNN_NOEXCEPT;

/* Runs. */

/* Dense row-major values. */
typedef struct hetnn_tensor {
  size_t size;
  void* data;
  hetnn_dtype dtype;
  int32_t rank;
  const int64_t* dims;
} hetnn_tensor;

/* Runs on `inputs` in the executable's order and returns when the outputs are there.
 *
 * An output with data is written where it lies; its type and dims must be those that the inputs' give. One whose data
 * is null is made by the run, which fills in data, dtype, rank and dims: this is how outputs are asked for whose sizes
 * depend on values. Give those back to hetnn_tensor_free. `session` may be null. */
HETNN_EXTERN hetnn_status hetnn_run(hetnn_executable* executable, hetnn_session* session, const hetnn_tensor* inputs,
                                    size_t input_count, hetnn_tensor* outputs, size_t output_count) HETNN_NOEXCEPT;
/* Gives back what a run has made, and sets data and dims to null. A tensor whose data is null is let pass. */
HETNN_EXTERN void hetnn_tensor_free(hetnn_tensor* tensor) HETNN_NOEXCEPT;

typedef struct hetnn_run_options {
  size_t size;
  int64_t timeout_us; /* from the call on, waiting included; the run then ends with HETNN_UNAVAILABLE. 0: none */
  /* Called once on a thread of the library when the run has ended, before hetnn_wait returns; `message` is that of the
   * failure, or "". It may start runs, but not wait for one. */
  void (*callback)(void* user, hetnn_status status, const char* message);
  void* user;
} hetnn_run_options;

/* Begins a run and returns; `options` may be null. The inputs' and outputs' data is the run's until it ends, and so is
 * `outputs` itself where some output is made by the run; all else may be given up at once. Each handle is to be given
 * to hetnn_wait once. A null `handle` lets the run go on its own, to end with its callback. */
HETNN_EXTERN hetnn_status hetnn_run_async(hetnn_executable* executable, hetnn_session* session,
                                          const hetnn_tensor* inputs, size_t input_count, hetnn_tensor* outputs,
                                          size_t output_count, const hetnn_run_options* options,
                                          hetnn_run_handle** handle) HETNN_NOEXCEPT;
/* Waits for the run's end, returns its status, and frees the handle. */
HETNN_EXTERN hetnn_status hetnn_wait(hetnn_run_handle* handle) HETNN_NOEXCEPT;
/* Asks the run to stop, between commands or inside the simulator; hetnn_wait says whether it did. */
HETNN_EXTERN hetnn_status hetnn_cancel(hetnn_run_handle* handle) HETNN_NOEXCEPT;

/* States of a model that keeps any, for one user; its runs happen one after another. */
HETNN_EXTERN hetnn_status hetnn_session_new(const hetnn_executable* executable, hetnn_session** session) HETNN_NOEXCEPT;
HETNN_EXTERN hetnn_status hetnn_session_reset(hetnn_session* session) HETNN_NOEXCEPT;
HETNN_EXTERN void hetnn_session_free(hetnn_session* session) HETNN_NOEXCEPT;
/* What a state holds, by its name: a copy, which goes back to hetnn_tensor_free, and a value for the next run, of the
 * state's own type and dims. Both wait for a run that is under way. With a null `session`, of the runs without one. */
HETNN_EXTERN hetnn_status hetnn_state_read(hetnn_executable* executable, hetnn_session* session, const char* name,
                                           hetnn_tensor* value) HETNN_NOEXCEPT;
HETNN_EXTERN hetnn_status hetnn_state_write(hetnn_executable* executable, hetnn_session* session, const char* name,
                                            const hetnn_tensor* value) HETNN_NOEXCEPT;
/* Writes one .hetnn file, whole or not at all, with what the states of runs without a session hold. */
HETNN_EXTERN hetnn_status hetnn_save(hetnn_executable* executable, const char* path) HETNN_NOEXCEPT;

/* Devices of further kinds. */

/* Leaves `message` for hetnn_error_message() of this thread and returns `status`: how a device's functions fail. */
HETNN_EXTERN hetnn_status hetnn_fail(hetnn_status status, const char* message) HETNN_NOEXCEPT;

/* One subgraph's code, as the device's compiler wrote it. Ports' dims of -1 are known when a visit is opened. */
typedef struct hetnn_code {
  size_t size;
  const char* subgraph; /* its name, for messages */
  const char* device;   /* the instance's name in the target */
  int64_t version;
  const void* bytes;
  size_t byte_count;
  const hetnn_port* inputs;
  size_t input_count;
  const hetnn_port* outputs;
  size_t output_count;
} hetnn_code;

/* Set once when a visit's outputs may be downloaded. */
typedef struct hetnn_event hetnn_event;

/* A kind of device. Functions may be called from any thread; those of one visit are called one after another: upload,
 * start, download once the event is set. Visits to one device instance of an executable follow one another. */
typedef struct hetnn_device {
  size_t size;
  const char* kind; /* as the code of its subgraphs says */
  void* user;       /* passed to load */
  /* Reads and checks the code, which stays as long as what it makes. */
  hetnn_status (*load)(void* user, const hetnn_code* code, void** loaded);
  void (*unload)(void* loaded);
  /* Makes ready for visits of these sizes. */
  hetnn_status (*open)(void* loaded, const hetnn_port* inputs, const hetnn_port* outputs, void** visit);
  void (*close)(void* visit);
  /* Takes over the inputs: copies them, or reads them where they lie until the event is set. */
  hetnn_status (*upload)(void* visit, const hetnn_tensor* inputs);
  /* Begins to compute; hetnn_event_set is called with `done` before it returns, or later from any thread. When it fails
   * it does not set the event. */
  hetnn_status (*start)(void* visit, hetnn_event* done);
  hetnn_status (*download)(void* visit, const hetnn_tensor* outputs);
  /* May be null. What the last visit took by the device's own count. */
  void (*times)(void* visit, int64_t* cycles, double* microseconds);
  /* 1: images that pass between subgraphs, values of four axes, are given as they lie in memory, channels last, and
   * their ports say so: [N,H,W,C]. 0: as the model has them. */
  int32_t images_last;
} hetnn_device;

/* Adds a kind of device, for executables loaded from now on, or replaces it. The struct and its text are copied. */
HETNN_EXTERN hetnn_status hetnn_register_device(const hetnn_device* device) HETNN_NOEXCEPT;
/* Ends a visit: HETNN_OK, or a failure and its text, which the run ends with. */
HETNN_EXTERN void hetnn_event_set(hetnn_event* done, hetnn_status status, const char* message) HETNN_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
