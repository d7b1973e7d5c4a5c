// Renumbers buffers and moves weights: code of an NPU names both, and that of any other device is bytes of its own.
#include "hetnn/runtime/slice.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "hetnn/base/affine_dim.h"
#include "hetnn/base/error.h"
#include "hetnn/npu/code.h"

namespace hetnn::runtime {
namespace {

class Slice {
 public:
  Slice(const program::Program& whole, const program::Subprogram& from) : whole_(whole), from_(from) {
    for (const int32_t id : from.inputs)
      out_.inputs.push_back({buffer_of(id).name, add_buffer(id, program::Place::input)});
    for (const int32_t id : from.outputs)
      out_.outputs.push_back({buffer_of(id).name, add_buffer(id, program::Place::output)});
    add_symbols();
    out_.target_json = whole.target_json;
    out_.hetnn_version = whole.hetnn_version;
    program::Subprogram made;
    made.name = from.name;
    made.device = from.device;
    made.code = code();
    for (const int32_t id : from.inputs) made.inputs.push_back(numbers_.at(id));
    for (const int32_t id : from.outputs) made.outputs.push_back(numbers_.at(id));
    out_.subprograms.push_back(std::move(made));
  }
  program::Program take() { return std::move(out_); }

 private:
  const program::Buffer& buffer_of(int32_t id) const { return whole_.buffers[static_cast<size_t>(id)]; }

  int32_t add_buffer(int32_t id, program::Place place) {
    program::Buffer buffer = buffer_of(id);
    buffer.layout = Layout::plain;
    buffer.pitch = 0;
    buffer.strides.clear();
    buffer.place = place;
    out_.buffers.push_back(std::move(buffer));
    return numbers_[id] = static_cast<int32_t>(out_.buffers.size() - 1);
  }

  void add_symbols() {
    std::set<std::string> told, used;
    for (const int32_t id : from_.inputs) {
      for (const Dim& dim : buffer_of(id).shape) {
        dim.collect_symbols(used);
        // Of a half of a size, rounded, nobody knows the size again.
        if (const auto found = solved(dim, dim.evaluate(hints()))) told.insert(found->first);
      }
    }
    for (const int32_t id : from_.outputs) {
      for (const Dim& dim : buffer_of(id).shape) dim.collect_symbols(used);
    }
    for (const std::string& symbol : used) {
      if (!told.contains(symbol)) {
        throw Unsupported(text("subprogram '", from_.name, "': it depends on the size '", symbol,
                               "', which no input of it tells. Run it where the model runs, or compile the model for "
                               "one size."));
      }
    }
    for (const Symbol& symbol : whole_.symbols) {
      if (told.contains(symbol.name)) out_.symbols.push_back(symbol);
    }
  }

  Bindings hints() const {
    Bindings out;
    for (const Symbol& symbol : whole_.symbols) out[symbol.name] = symbol.hint;
    return out;
  }

  int64_t move_weights(int64_t offset_bytes, int64_t bytes) {
    const std::pair range(offset_bytes, bytes);
    if (const auto at = moved_.find(range); at != moved_.end()) return at->second;
    const auto held = whole_.weights.at(offset_bytes, bytes);
    return moved_[range] = out_.weights.append(program::Blob(std::vector<std::byte>(held.begin(), held.end())));
  }

  program::Code code() {
    if (from_.code.kind == "cpu") {
      throw Unsupported(text("subprogram '", from_.name, "' on '", from_.device,
                             "' is code of the general processor, which runs where the model does. Name an accelerator "
                             "as the device that stands elsewhere."));
    }
    if (from_.code.kind != "npu") return from_.code;
    const std::string called = text("subprogram '", from_.name, "'");
    npu::Code code = npu::read_code(from_.code.as_text(npu::kCodeVersion, called), called);
    for (npu::Constant& constant : code.constants)
      constant.offset_bytes = move_weights(constant.offset_bytes, constant.size_bytes);
    for (npu::Variant& variant : code.variants) {
      constexpr int64_t kWord_bytes = 8;
      variant.words_offset_bytes = move_weights(variant.words_offset_bytes, variant.word_count * kWord_bytes);
      for (auto* ports : {&variant.inputs, &variant.outputs}) {
        for (npu::Port& port : *ports) port.buffer = numbers_.at(port.buffer);
      }
    }
    return program::Code::of_text(from_.code.kind, from_.code.version, npu::write_code(code));
  }

  const program::Program& whole_;
  const program::Subprogram& from_;
  program::Program out_;
  std::map<int32_t, int32_t> numbers_;                    // of buffers
  std::map<std::pair<int64_t, int64_t>, int64_t> moved_;  // ranges of the weights: where they begin here
};

}  // namespace

program::Program slice(const program::Program& whole, size_t subprogram) {
  return Slice(whole, whole.subprograms.at(subprogram)).take();
}

}  // namespace hetnn::runtime
