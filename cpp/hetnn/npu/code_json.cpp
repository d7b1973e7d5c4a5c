// The NPU's code as JSON text and back: the tables of its fields.
#include "hetnn/base/json_fields.h"
#include "hetnn/npu/code.h"

namespace hetnn::npu {
namespace {

using json::Convert;
using json::Fields;
using json::object;

// Beyond any device's memory and any count, so that sums and small products of figures stay in 64 bits.
constexpr int64_t kMost = int64_t{1} << 48;

Convert<int64_t> count() { return json::integer(0, kMost); }

// Two numbers.
template <typename T>
Convert<T> pair(int64_t T::*first, int64_t T::*second, const std::string& wanted) {
  const Convert<std::vector<int64_t>> numbers = json::list_of(count());
  return {[=](const json::At& at, T& into) {
            const std::vector<int64_t> both = numbers.value(at);
            if (both.size() != 2) at.wrong(wanted);
            into.*first = both[0];
            into.*second = both[1];
          },
          [=](const T& from) {
            return json::Json{from.*first, from.*second};
          },
          numbers.schema};
}

const Fields<Port>& port_fields() {
  static const Fields<Port> fields = {
      {"buffer", &Port::buffer, json::index(), "the program's buffer"},
      {"offset_bytes", &Port::offset_bytes, count(), "where it stands in the accelerator's memory"},
      {"dtype", &Port::dtype, json::dtype(), "the element type"},
      {"layout", &Port::layout, json::layout(), "how it lies in the accelerator's memory"}};
  return fields;
}

const Fields<Layer>& layer_fields() {
  static const Fields<Layer> fields = {{"node", &Layer::node, json::any_text(), "the source node"},
                                       {"op", &Layer::op, json::any_text(), "its operator"},
                                       {"cycles", &Layer::cycles, json::integer(0), "by which it puts off the end"},
                                       {"dma_bytes", &Layer::dma_bytes, json::integer(0), "bytes moved"},
                                       {"macs", &Layer::macs, json::integer(0), "multiply-accumulates"},
                                       {"weight_bytes", &Layer::weight_bytes, json::integer(0), "of constants, loaded"},
                                       {"tile", &Layer::tile, json::any_text(), "how it is cut"},
                                       {"cascade", &Layer::cascade, json::integer(-1), "its cascade, or -1"}};
  return fields;
}

const Fields<Variant>& variant_fields() {
  static const Fields<Variant> fields = {
      {"bindings", &Variant::bindings, json::map_of<Bindings>(json::integer()), "the value of every symbol"},
      {"words_offset_bytes", &Variant::words_offset_bytes, count(), "the stream's place in the weights"},
      {"word_count", &Variant::word_count, count(), "words of the stream"},
      {"dram_bytes", &Variant::dram_bytes, count(), "bytes of the accelerator's arena"},
      {"sram_peak_bytes", &Variant::sram_peak_bytes, count(), "bytes of the scratchpad in use at most"},
      {"cycles", &Variant::cycles, json::integer(0), "cycles of the stream"},
      {"lower_bound_cycles", &Variant::lower_bound_cycles, json::integer(0), "that no schedule is below"},
      {"schedule", &Variant::schedule, json::any_text(), "the schedule, as text"},
      {"inputs", &Variant::inputs, json::list_of(object(port_fields)), "the subprogram's inputs, in order"},
      {"outputs", &Variant::outputs, json::list_of(object(port_fields)), "the subprogram's outputs, in order"},
      {"layers", &Variant::layers, json::list_of(object(layer_fields)), "for reports"},
      {"runs", &Variant::runs, json::list_of(pair(&Run::layer, &Run::words, "[layer, words]")),
       "whose the stream's words are"}};
  return fields;
}

const Fields<Code>& code_fields() {
  static const Fields<Code> fields = {
      {"spec", &Code::spec_json, json::any_text(), "the data sheet, as text"},
      {"constants", &Code::constants,
       json::list_of(pair(&Constant::offset_bytes, &Constant::size_bytes, "[offset, bytes]")),
       "places in the weights, [offset, bytes] each"},
      {"variants", &Code::variants, json::list_of(object(variant_fields)),
       "streams, one for each value of the symbols"}};
  return fields;
}

}  // namespace

std::string write_code(const Code& code) { return json::to_text(code_fields().write(code)); }

std::string code_schema() { return json::schema_text("The code of an NPU", code_fields().schema()); }

Code read_code(std::string_view json, const std::string& called) {
  const json::Json document = json::parse(json, kNpuCodeJson, called);
  return code_fields().value({document, kNpuCodeJson, called});
}

}  // namespace hetnn::npu
