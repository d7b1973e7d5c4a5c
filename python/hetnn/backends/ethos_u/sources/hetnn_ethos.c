/* Runs steps of a network by Arm's driver. */
#include "hetnn_ethos.h"

#include <string.h>

#include "ethosu_driver.h"

enum { kWeights, kScratch, kFast, kRegions };

static uint8_t* place_of(const hetnn_ethos_step* step, uint8_t* scratch, uint8_t* fast,
                         const hetnn_ethos_tensor* tensor) {
  uint8_t* base = tensor->region == step->regions[kScratch] ? scratch : fast;
  return base + tensor->offset_bytes;
}

void hetnn_ethos_write(const hetnn_ethos_step* step, uint8_t* scratch, uint8_t* fast, int input, const void* from) {
  const hetnn_ethos_tensor* tensor = &step->inputs[input];
  memcpy(place_of(step, scratch, fast, tensor), from, tensor->bytes);
}

void hetnn_ethos_read(const hetnn_ethos_step* step, uint8_t* scratch, uint8_t* fast, int output, void* to) {
  const hetnn_ethos_tensor* tensor = &step->outputs[output];
  memcpy(to, place_of(step, scratch, fast, tensor), tensor->bytes);
}

int hetnn_ethos_invoke(struct ethosu_driver* driver, const hetnn_ethos_step* step, uint8_t* scratch, uint8_t* fast) {
  uint64_t bases[kRegions] = {0, 0, 0};
  size_t sizes[kRegions] = {0, 0, 0};
  bases[step->regions[kFast]] = (uint64_t)(uintptr_t)fast;
  sizes[step->regions[kFast]] = step->fast_bytes;
  bases[step->regions[kScratch]] = (uint64_t)(uintptr_t)scratch;
  sizes[step->regions[kScratch]] = step->scratch_bytes;
  bases[step->regions[kWeights]] = (uint64_t)(uintptr_t)step->weights;
  sizes[step->regions[kWeights]] = step->weight_bytes;
  return ethosu_invoke_v3(driver, step->commands, (int)step->command_bytes, bases, sizes, kRegions, NULL);
}
