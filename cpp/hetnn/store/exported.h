/* What libhetnn_store gives C: where the executable of a network lies. hetnn/store.hpp is over it, and over the
 * runtime. */
#ifndef HETNN_STORE_H
#define HETNN_STORE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HETNN_STORE_EXTERN __attribute__((visibility("default")))
#else
#define HETNN_STORE_EXTERN
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hetnn_store hetnn_store;

/* Both return what hetnn_status stands for, 0 for done; the text of an error is in `said`, cut to its size. */
HETNN_STORE_EXTERN int hetnn_store_open(const char* folder, hetnn_store** store, char* said, size_t said_bytes);
/* The path of the version's file; version 0 is the one that runs: the newest that is
 * deployed, else the newest. */
HETNN_STORE_EXTERN int hetnn_store_find(hetnn_store* store, const char* id, int64_t version, char* path,
                                        size_t path_bytes, char* said, size_t said_bytes);
HETNN_STORE_EXTERN void hetnn_store_close(hetnn_store* store);

#ifdef __cplusplus
}
#endif

#endif
