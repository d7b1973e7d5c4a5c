// Puts a program together: buffers for values, constants in the weights.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "hetnn/base/layout.h"
#include "hetnn/ir/graph.h"
#include "hetnn/program/program.h"

namespace hetnn::backends {

/// Collects what all subprograms of a program share. Values are known by name, so that a subgraph taken out of the
/// model speaks of the same buffers as the model.
class Assembler {
 public:
  Assembler() = default;

  /// `work` on the assembler of a body's program, which goes on with the weights and the bodies of this one. What it
  /// makes is added to the bodies; returns its number.
  int32_t add_body(Assembler& body, const std::function<void()>& work);
  /// `work` on the assembler that a body was made with, so that more is added to it.
  void add_to_body(int32_t number, Assembler& body, const std::function<void()>& work);

  /// A new buffer of the arena for a value (or for a value's copy in another layout, under another name).
  int32_t arena_buffer(const std::string& name, const ops::Type& type, Layout layout, const Dim& pitch,
                       const Shape& strides = {});
  /// A buffer for an input or output of the model: plain.
  int32_t port_buffer(const std::string& name, const ops::Type& type, program::Place place);
  /// Bytes in the weights, 64-byte aligned; equal bytes are kept once. `type` is the constant's, unpacked.
  int32_t constant_buffer(const std::string& name, const ops::Type& type, program::Blob bytes, bool packed = false);
  /// As constant_buffer, of bytes that lie nhwc without gaps.
  int32_t turned_constant(const std::string& name, const ops::Type& type, program::Blob bytes);
  /// Offset of bytes that belong to no buffer (an accelerator's words), 64-byte aligned; equal bytes are kept once.
  int64_t blob(program::Blob blob);
  /// The same of bytes that nothing else shares, which may be replaced later: a state's.
  int64_t own_blob(program::Blob blob) { return program_.weights.append(std::move(blob)); }

  /// The buffer through which a value passes between subprograms, or in and out of the model.
  void set_boundary(const std::string& value, int32_t buffer) { boundary_[value] = buffer; }
  int32_t boundary(const std::string& value) const;

  program::Program& program() { return program_; }
  const program::Program& program() const { return program_; }
  const program::Buffer& buffer(int32_t id) const { return program_.buffers[static_cast<size_t>(id)]; }

 private:
  int32_t add(program::Buffer buffer);
  void swap_weights(Assembler& other);

  program::Program program_;
  std::map<std::string, int32_t> boundary_;
  std::multimap<size_t, std::pair<int64_t, int64_t>> known_;  // hash -> (offset, bytes) in the weights
};

}  // namespace hetnn::backends
