// Checks of what a loaded program says, for the container and for the devices that read their own code.
#pragma once

#include <set>
#include <string>

#include "hetnn/program/program.h"

namespace hetnn::program {

/// Throws InvalidModel naming the first thing in a program that makes no sense: an id, an offset, a size, a name. The
/// subprograms' code is left to their devices.
void validate(const Program& program, const std::string& called);

/// The symbols that no subprogram defines: the inputs' shapes give them values.
std::set<std::string> free_symbols(const Program& program);
/// The symbols that have values when the subprogram, one of the program's, begins.
std::set<std::string> symbols_before(const Program& program, const Subprogram& subprogram);
/// The symbols that the size of a buffer depends on.
std::set<std::string> symbols_of(const Buffer& buffer);

/// What a part of a program may refer to: every function throws InvalidModel naming `called`, the field, and what was
/// found there.
class References {
 public:
  /// The program outlives it.
  References(const Program& program, std::string called);

  void check(bool holds, const std::string& field, const std::string& found) const;
  /// Every symbol of the size is declared.
  void known(const Dim& dim, const std::string& field) const;
  /// An aligned range of the weights.
  void in_weights(int64_t offset_bytes, int64_t bytes, const std::string& field) const;
  /// A buffer that exists, and one that may be written.
  void read(int32_t buffer, const std::string& field) const;
  void written(int32_t buffer, const std::string& field) const;

 private:
  const Program& program_;
  std::string called_;
  std::set<std::string> symbols_;
};

}  // namespace hetnn::program
