/* Steps of a network on an Ethos-U: command stream, weights, and where inputs and outputs lie. */
#ifndef HETNN_ETHOS_H
#define HETNN_ETHOS_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ethosu_driver; /* of Arm's ethos-u-core-driver */

typedef struct hetnn_ethos_tensor {
  const char* name;
  int region;
  uint32_t offset_bytes;
  uint32_t bytes;
} hetnn_ethos_tensor;

typedef struct hetnn_ethos_step {
  const char* name;
  const uint8_t* commands;
  size_t command_bytes;
  const uint8_t* weights;
  size_t weight_bytes;
  size_t scratch_bytes;
  size_t fast_bytes;
  int regions[3]; /* of weights, scratch and fast memory */
  const hetnn_ethos_tensor* inputs;
  int input_count;
  const hetnn_ethos_tensor* outputs;
  int output_count;
} hetnn_ethos_step;

/* Copies an input to where the step reads it, and an output from where the step wrote it. */
void hetnn_ethos_write(const hetnn_ethos_step* step, uint8_t* scratch, uint8_t* fast, int input, const void* from);
void hetnn_ethos_read(const hetnn_ethos_step* step, uint8_t* scratch, uint8_t* fast, int output, void* to);

/* Runs a step and returns when it is done: 0, or the driver's error. */
int hetnn_ethos_invoke(struct ethosu_driver* driver, const hetnn_ethos_step* step, uint8_t* scratch, uint8_t* fast);

/* Makes the steps of network.h a device of hetnn's runtime library (hetnn_ethos_device.c): 0, or its status. */
int hetnn_ethos_register(struct ethosu_driver* driver, uint8_t* scratch, uint8_t* fast);

#ifdef __cplusplus
}
#endif
#endif
