// Puts a program together: buffers for values, constants in the weights.
#include "hetnn/backends/assembler.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "hetnn/base/error.h"
#include "hetnn/program/hash.h"

namespace hetnn::backends {

void Assembler::swap_weights(Assembler& other) {
  std::swap(program_.weights, other.program_.weights);
  std::swap(program_.bodies, other.program_.bodies);
  known_.swap(other.known_);
}

int32_t Assembler::add_body(Assembler& body, const std::function<void()>& work) {
  swap_weights(body);
  work();
  swap_weights(body);
  program_.bodies.push_back(std::exchange(body.program_, {}));
  return static_cast<int32_t>(program_.bodies.size()) - 1;
}

void Assembler::add_to_body(int32_t number, Assembler& body, const std::function<void()>& work) {
  program::Program& made = program_.bodies[static_cast<size_t>(number)];
  std::swap(made, body.program_);
  std::swap(program_.weights, body.program_.weights);
  known_.swap(body.known_);
  work();
  std::swap(program_.weights, body.program_.weights);
  known_.swap(body.known_);
  std::swap(made, body.program_);
}

int32_t Assembler::add(program::Buffer buffer) {
  program_.buffers.push_back(std::move(buffer));
  return static_cast<int32_t>(program_.buffers.size()) - 1;
}

int32_t Assembler::arena_buffer(const std::string& name, const ops::Type& type, Layout layout, const Dim& pitch,
                                const Shape& strides) {
  return add({.name = name,
              .dtype = type.dtype,
              .shape = type.shape,
              .quant = type.quant,
              .layout = layout,
              .pitch = pitch,
              .strides = strides});
}

int32_t Assembler::port_buffer(const std::string& name, const ops::Type& type, program::Place place) {
  return add({.name = name, .dtype = type.dtype, .shape = type.shape, .quant = type.quant, .place = place});
}

int32_t Assembler::constant_buffer(const std::string& name, const ops::Type& type, program::Blob bytes, bool packed) {
  const auto size_bytes = static_cast<int64_t>(bytes.bytes.size());
  const int64_t offset = blob(std::move(bytes));
  return add({.name = name,
              .dtype = type.dtype,
              .shape = type.shape,
              .quant = type.quant,
              .place = program::Place::constant,
              .offset_bytes = offset,
              .size_bytes = size_bytes,
              .packed = packed});
}

int32_t Assembler::turned_constant(const std::string& name, const ops::Type& type, program::Blob bytes) {
  const int32_t id = constant_buffer(name, type, std::move(bytes));
  program::Buffer& buffer = program_.buffers[static_cast<size_t>(id)];
  buffer.layout = Layout::nhwc;
  buffer.pitch = type.shape[1];
  return id;
}

int64_t Assembler::blob(program::Blob blob) {
  const std::span<const std::byte> bytes = blob.bytes;
  const size_t hash = std::hash<std::string>{}(program::quick_sum(bytes));
  auto [first, last] = known_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    const auto [offset, size] = at->second;
    if (std::ranges::equal(bytes, program_.weights.at(offset, size))) return offset;
  }
  const int64_t offset = program_.weights.append(std::move(blob));
  known_.emplace(hash, std::pair{offset, static_cast<int64_t>(bytes.size())});
  return offset;
}

int32_t Assembler::boundary(const std::string& value) const {
  auto at = boundary_.find(value);
  HETNN_ASSERT(at != boundary_.end(), "'", value, "' has no boundary buffer");
  return at->second;
}

}  // namespace hetnn::backends
