// The NPU's instructions: structs, 64-bit words, text. All of it comes from isa_table.inc.
//
// A stream is a sequence of instructions. Each takes a fixed number of 64-bit words: the opcode in the low 8 bits of
// the first, then the fields in the table's order from low to high bits; a field that would cross into the next word
// begins there, and bits left over are 0. A stream is issued in order; each engine (dma, mac, vector) works through its
// own queue in order, and engines wait for one another only by tokens (signal, wait).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace hetnn::npu {

enum class Engine : uint8_t { dma, mac, vector, none };
inline constexpr int kEngines = 3;
std::string_view engine_name(Engine engine);

enum class Act : uint8_t { none, relu, clamp, table };
enum class ElementwiseOp : uint8_t { add, sub, mul, max, min };
enum class PoolOp : uint8_t { max, mean };
enum class Region : uint8_t { weights, arena };

#define HETNN_BEGIN(mnemonic, Type, engine, meaning, cycles) mnemonic,
#define HETNN_FIELD(name, bits, sign, meaning)
#define HETNN_END()
enum class Opcode : uint8_t {
#include "hetnn/npu/isa_table.inc"
};

#define HETNN_BEGIN(mnemonic, Type, engine_, meaning, cycles) \
  struct Type {                                               \
    static constexpr Opcode kOpcode = Opcode::mnemonic;       \
    static constexpr Engine kEngine = Engine::engine_;        \
    friend bool operator==(const Type&, const Type&) = default;
#define HETNN_FIELD(name, bits, sign, meaning) int64_t name = 0;
#define HETNN_END() \
  }                 \
  ;
#include "hetnn/npu/isa_table.inc"

/// One field of the table.
struct FieldDef {
  std::string_view name;
  int bits = 0;
  bool is_signed = false;
  std::string_view meaning;
};

/// One row of the table.
struct InstructionDef {
  std::string_view mnemonic;
  Engine engine = Engine::none;
  std::string_view meaning;
  std::string_view cycles;
  std::vector<FieldDef> fields;
  int words = 1;  // 64-bit words it takes
};

/// The rows of the table, indexed by opcode.
const std::vector<InstructionDef>& instruction_table();

// visit_fields(instruction, f) calls f(value) for each field in order, with a reference to the value.
#define HETNN_BEGIN(mnemonic, Type, engine, meaning, cycles) \
  template <typename I, typename F>                          \
  requires std::is_same_v<std::remove_const_t<I>, Type>      \
  void visit_fields([[maybe_unused]] I& i, [[maybe_unused]] F&& f) {
#define HETNN_FIELD(name, bits, sign, meaning) f(i.name);
#define HETNN_END() }
#include "hetnn/npu/isa_table.inc"

using Instruction = std::variant<End, Signal, Wait, DmaLoad, DmaStore, Conv2d, Matmul, Elementwise, Pool, Activation,
                                 Move, Reduce, Softmax, Normalize>;

Opcode opcode_of(const Instruction& instruction);
Engine engine_of(const Instruction& instruction);

/// Appends the words of `instruction`. Throws DoesNotFit naming the field when a value exceeds its width.
void encode(const Instruction& instruction, std::vector<uint64_t>& words);
std::vector<uint64_t> encode(std::span<const Instruction> instructions);

/// Reads the instruction at words[at] and moves `at` behind it. Throws InvalidModel naming the word when the opcode is
/// unknown, words are missing, or unused bits are set.
Instruction decode(std::span<const uint64_t> words, size_t& at);
std::vector<Instruction> decode(std::span<const uint64_t> words);

/// One line an instruction: mnemonic, then `name=value` for the fields that are not 0.
std::string to_text(const Instruction& instruction);
/// The text of a stream; a comment after `;` gives the index of each instruction's first word.
std::string disassemble(std::span<const uint64_t> words);
/// The words of a text as disassemble writes it. Throws InvalidModel naming the line.
std::vector<uint64_t> assemble(std::string_view source);

/// The instruction set as a Markdown page.
std::string isa_manual();

/// Bits of an f32, as the fields that hold one store it.
int64_t float_bits(float value);
float float_of_bits(int64_t bits);

}  // namespace hetnn::npu
