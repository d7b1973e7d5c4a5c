// Marks what the Python module of the runtime uses of the shared library; all else is hidden. No other program can rely
// on it: those have capi/hetnn.h.
#pragma once

#if defined(__GNUC__)
#define HETNN_EXPORT __attribute__((visibility("default")))
#else
#define HETNN_EXPORT
#endif
