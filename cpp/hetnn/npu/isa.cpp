// Encoding, decoding and text of instructions, driven by the table.
#include "hetnn/npu/isa.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>

#include "hetnn/base/error.h"

namespace hetnn::npu {
namespace {

constexpr int kOpcode_bits = 8;
constexpr int kWord_bits = 64;

// Calls place(field index, word, shift) for each field and returns the number of words: the one place of the packing.
template <typename Place>
int lay_out(const std::vector<FieldDef>& fields, Place&& place) {
  int word = 0, bit = kOpcode_bits;
  for (size_t k = 0; k < fields.size(); ++k) {
    if (bit + fields[k].bits > kWord_bits) {
      ++word;
      bit = 0;
    }
    place(k, word, bit);
    bit += fields[k].bits;
  }
  return word + 1;
}

constexpr uint64_t mask(int bits) { return (uint64_t{1} << bits) - 1; }

std::vector<InstructionDef> make_table() {
  std::vector<InstructionDef> table;
  constexpr bool unsigned_field = false, signed_field = true;
#define HETNN_BEGIN(mnemonic, Type, engine, meaning, cycles) \
  table.push_back({#mnemonic, Engine::engine, meaning, cycles, {}, 1});
#define HETNN_FIELD(name, bits, sign, meaning) table.back().fields.push_back({#name, bits, sign##_field, meaning});
#define HETNN_END()
#include "hetnn/npu/isa_table.inc"
  for (InstructionDef& def : table) def.words = lay_out(def.fields, [](size_t, int, int) {});
  return table;
}

const InstructionDef& def_of(Opcode opcode) { return instruction_table()[static_cast<size_t>(opcode)]; }

// A default instruction of the opcode.
Instruction make(Opcode opcode) {
  switch (opcode) {
#define HETNN_BEGIN(mnemonic, Type, engine, meaning, cycles) \
  case Opcode::mnemonic:                                     \
    return Instruction(std::in_place_type<Type>);
#define HETNN_FIELD(name, bits, sign, meaning)
#define HETNN_END()
#include "hetnn/npu/isa_table.inc"
  }
  HETNN_ASSERT(false, "opcode ", static_cast<int>(opcode));
  return End{};
}

std::vector<int64_t> values_of(const Instruction& instruction) {
  std::vector<int64_t> values;
  std::visit([&](const auto& i) { visit_fields(i, [&](int64_t value) { values.push_back(value); }); }, instruction);
  return values;
}

void set_values(Instruction& instruction, const std::vector<int64_t>& values) {
  size_t k = 0;
  std::visit([&](auto& i) { visit_fields(i, [&](int64_t& value) { value = values[k++]; }); }, instruction);
}

// The range of a field, both ends included.
std::pair<int64_t, int64_t> range_of(const FieldDef& field) {
  if (field.is_signed) return {-(int64_t{1} << (field.bits - 1)), (int64_t{1} << (field.bits - 1)) - 1};
  return {0, static_cast<int64_t>(mask(field.bits))};
}

std::string_view trim(std::string_view s) {
  const auto from = s.find_first_not_of(" \t\r");
  return from == std::string_view::npos ? std::string_view{} : s.substr(from, s.find_last_not_of(" \t\r") - from + 1);
}

}  // namespace

std::string_view engine_name(Engine engine) {
  constexpr std::string_view kNames[] = {"dma", "mac", "vector", "none"};
  return kNames[static_cast<size_t>(engine)];
}

const std::vector<InstructionDef>& instruction_table() {
  static const std::vector<InstructionDef> table = make_table();
  return table;
}

Opcode opcode_of(const Instruction& instruction) {
  return std::visit([](const auto& i) { return i.kOpcode; }, instruction);
}
Engine engine_of(const Instruction& instruction) {
  return std::visit([](const auto& i) { return i.kEngine; }, instruction);
}

void encode(const Instruction& instruction, std::vector<uint64_t>& words) {
  const Opcode opcode = opcode_of(instruction);
  const InstructionDef& def = def_of(opcode);
  const std::vector<int64_t> values = values_of(instruction);
  const size_t first = words.size();
  words.resize(first + static_cast<size_t>(def.words));
  words[first] = static_cast<uint64_t>(opcode);
  lay_out(def.fields, [&](size_t k, int word, int bit) {
    const auto [least, most] = range_of(def.fields[k]);
    if (values[k] < least || values[k] > most) {
      words.resize(first);
      throw DoesNotFit(text("instruction ", def.mnemonic, ": field ", def.fields[k].name, " holds [", least, ", ", most,
                            "]; ", values[k], " is outside. Make the layer's tiles smaller."));
    }
    words[first + static_cast<size_t>(word)] |= (static_cast<uint64_t>(values[k]) & mask(def.fields[k].bits)) << bit;
  });
}

std::vector<uint64_t> encode(std::span<const Instruction> instructions) {
  std::vector<uint64_t> words;
  for (const Instruction& instruction : instructions) encode(instruction, words);
  return words;
}

Instruction decode(std::span<const uint64_t> words, size_t& at) {
  if (at >= words.size()) throw InvalidModel(text("instruction stream: no word ", at, "; it has ", words.size()));
  const uint64_t code = words[at] & mask(kOpcode_bits);
  if (code >= instruction_table().size()) {
    throw InvalidModel(text("instruction stream: word ", at, " has the unknown opcode ", code, "; the highest is ",
                            instruction_table().size() - 1));
  }
  const InstructionDef& def = instruction_table()[code];
  if (words.size() - at < static_cast<size_t>(def.words)) {
    throw InvalidModel(text("instruction stream: ", def.mnemonic, " at word ", at, " takes ", def.words,
                            " words; the stream ends after ", words.size() - at));
  }
  std::vector<int64_t> values(def.fields.size());
  std::vector<uint64_t> left(words.begin() + static_cast<std::ptrdiff_t>(at),
                             words.begin() + static_cast<std::ptrdiff_t>(at) + def.words);
  left[0] &= ~mask(kOpcode_bits);
  lay_out(def.fields, [&](size_t k, int word, int bit) {
    const int bits = def.fields[k].bits;
    uint64_t& from = left[static_cast<size_t>(word)];
    const uint64_t raw = from >> bit & mask(bits);
    from &= ~(mask(bits) << bit);
    values[k] = static_cast<int64_t>(raw);
    if (def.fields[k].is_signed && (raw >> (bits - 1)) != 0) values[k] -= int64_t{1} << bits;
  });
  for (size_t k = 0; k < left.size(); ++k) {
    if (left[k] != 0) {
      throw InvalidModel(text("instruction stream: unused bits of ", def.mnemonic, " are set in word ", at + k));
    }
  }
  Instruction instruction = make(static_cast<Opcode>(code));
  set_values(instruction, values);
  at += static_cast<size_t>(def.words);
  return instruction;
}

std::vector<Instruction> decode(std::span<const uint64_t> words) {
  std::vector<Instruction> instructions;
  for (size_t at = 0; at < words.size();) instructions.push_back(decode(words, at));
  return instructions;
}

std::string to_text(const Instruction& instruction) {
  const InstructionDef& def = def_of(opcode_of(instruction));
  const std::vector<int64_t> values = values_of(instruction);
  std::string line(def.mnemonic);
  for (size_t k = 0; k < values.size(); ++k) {
    if (values[k] != 0) line += text(" ", def.fields[k].name, "=", values[k]);
  }
  return line;
}

std::string disassemble(std::span<const uint64_t> words) {
  std::string out;
  for (size_t at = 0; at < words.size();) {
    const size_t first = at;
    out += text(to_text(decode(words, at)), "  ; ", first, "\n");
  }
  return out;
}

std::vector<uint64_t> assemble(std::string_view source) {
  std::vector<uint64_t> words;
  int number = 0;
  for (size_t from = 0; from < source.size();) {
    const size_t to = std::min(source.find('\n', from), source.size());
    std::string_view line = source.substr(from, to - from);
    from = to + 1;
    ++number;
    line = trim(line.substr(0, line.find(';')));
    if (line.empty()) continue;
    size_t end = line.find(' ');
    const std::string_view mnemonic = line.substr(0, end);
    const auto& table = instruction_table();
    const auto def =
        std::find_if(table.begin(), table.end(), [&](const InstructionDef& d) { return d.mnemonic == mnemonic; });
    if (def == table.end()) throw InvalidModel(text("line ", number, ": unknown instruction '", mnemonic, "'"));
    std::vector<int64_t> values(def->fields.size());
    while (end != std::string_view::npos) {
      line = trim(line.substr(end));
      end = line.find(' ');
      const std::string_view item = line.substr(0, end);
      const size_t equals = item.find('=');
      const std::string_view name = item.substr(0, equals);
      const auto field =
          std::find_if(def->fields.begin(), def->fields.end(), [&](const FieldDef& f) { return f.name == name; });
      if (equals == std::string_view::npos || field == def->fields.end()) {
        throw InvalidModel(text("line ", number, ": ", mnemonic, " has no field in '", item, "'; expected name=value"));
      }
      const std::string_view digits = item.substr(equals + 1);
      int64_t value = 0;
      const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (error != std::errc() || stop != digits.data() + digits.size()) {
        throw InvalidModel(text("line ", number, ": field ", name, " must be an integer; got '", digits, "'"));
      }
      values[static_cast<size_t>(field - def->fields.begin())] = value;
    }
    Instruction instruction = make(static_cast<Opcode>(def - table.begin()));
    set_values(instruction, values);
    encode(instruction, words);
  }
  return words;
}

std::string isa_manual() {
  std::string out = "# The NPU's instruction set\n";
  for (size_t opcode = 0; opcode < instruction_table().size(); ++opcode) {
    const InstructionDef& def = instruction_table()[opcode];
    out += text("\n## ", def.mnemonic, "\nOpcode ", opcode, ", ", def.words, def.words == 1 ? " word" : " words",
                ", engine ", engine_name(def.engine), ". Does: ", def.meaning, ".\nCycles: ", def.cycles, ".\n");
    if (def.fields.empty()) continue;
    out += "\n| field | word | bits | meaning |\n|---|---|---|---|\n";
    lay_out(def.fields, [&](size_t k, int word, int bit) {
      const FieldDef& field = def.fields[k];
      out += text("| ", field.name, " | ", word, " | ", bit, "..", bit + field.bits - 1,
                  field.is_signed ? " signed" : "", " | ", field.meaning, " |\n");
    });
  }
  return out;
}

int64_t float_bits(float value) { return std::bit_cast<uint32_t>(value); }
float float_of_bits(int64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }

}  // namespace hetnn::npu
