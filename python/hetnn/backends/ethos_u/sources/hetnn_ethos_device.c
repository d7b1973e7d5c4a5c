/* The Ethos-U as a device of hetnn's runtime library, which runs the other parts of the network itself. */
#include <hetnn/hetnn.h>
#include <string.h>

#include "network.h"

static struct ethosu_driver* driver_;
static uint8_t *scratch_, *fast_;

static hetnn_status load(void* user, const hetnn_code* code, void** loaded) {
  int k;
  (void)user;
  for (k = 0; k < NETWORK_STEPS; ++k) {
    if (strcmp(network_steps[k].name, code->subgraph) == 0) {
      *loaded = (void*)&network_steps[k];
      return HETNN_OK;
    }
  }
  return hetnn_fail(HETNN_INVALID_MODEL, "this subgraph is not among the steps of network.h; export the file again");
}
static void unload(void* loaded) { (void)loaded; }

static hetnn_status open_visit(void* loaded, const hetnn_port* inputs, const hetnn_port* outputs, void** visit) {
  (void)inputs;
  (void)outputs;
  *visit = loaded; /* visits to one device follow one another, so that all share the memory */
  return HETNN_OK;
}
static void close_visit(void* visit) { (void)visit; }

static hetnn_status upload(void* visit, const hetnn_tensor* inputs) {
  const hetnn_ethos_step* step = visit;
  int k;
  for (k = 0; k < step->input_count; ++k) hetnn_ethos_write(step, scratch_, fast_, k, inputs[k].data);
  return HETNN_OK;
}

static hetnn_status start(void* visit, hetnn_event* done) {
  const int error = hetnn_ethos_invoke(driver_, visit, scratch_, fast_);
  hetnn_event_set(done, error ? HETNN_UNAVAILABLE : HETNN_OK, error ? "the Ethos-U's driver reports an error" : NULL);
  return HETNN_OK;
}

static hetnn_status download(void* visit, const hetnn_tensor* outputs) {
  const hetnn_ethos_step* step = visit;
  int k;
  for (k = 0; k < step->output_count; ++k) hetnn_ethos_read(step, scratch_, fast_, k, outputs[k].data);
  return HETNN_OK;
}

int hetnn_ethos_register(struct ethosu_driver* driver, uint8_t* scratch, uint8_t* fast) {
  const hetnn_device device = {sizeof device, "ethos", NULL,  load,     unload, open_visit,
                               close_visit,   upload,  start, download, NULL, NETWORK_IMAGES_LAST};
  driver_ = driver, scratch_ = scratch, fast_ = fast;
  return hetnn_register_device(&device);
}
