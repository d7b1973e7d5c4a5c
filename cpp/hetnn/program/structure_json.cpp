// The program's structure as JSON text and back: the tables of its fields.
#include "hetnn/base/json_fields.h"
#include "hetnn/program/pack.h"

namespace hetnn::program {
namespace {

using json::Convert;
using json::Fields;
using json::object;
using json::Presence;

constexpr int64_t kMostBytes = int64_t{1} << 48;  // beyond any memory, so that sums of a few stay in 64 bits

Convert<int64_t> bytes() { return json::integer(0, kMostBytes); }
Convert<int64_t> version() { return json::integer(0, INT32_MAX); }

// A subprogram as it stands in the structure; its code stands elsewhere.
struct StoredCode {
  std::string kind;
  int64_t version = 0;
  int64_t code_bytes = 0;

  StoredCode() = default;
  explicit StoredCode(const Code& code)
      : kind(code.kind), version(code.version), code_bytes(static_cast<int64_t>(code.bytes.size())) {}
};
struct Stored : Subprogram, StoredCode {
  std::optional<StoredCode> stored_fallback;
};
struct StoredProgram : Program {
  std::vector<Stored> stored;
};
struct Structure : StoredProgram {
  std::vector<StoredProgram> stored_bodies;
  std::vector<BlobRow> blobs;
};

const Fields<Symbol>& symbol_fields() {
  static const Fields<Symbol> fields = {{"name", &Symbol::name, json::word(), "the name"},
                                        {"min", &Symbol::min, json::integer(), "the least value"},
                                        {"max", &Symbol::max, json::integer(), "the largest value"},
                                        {"hint", &Symbol::hint, json::integer(), "a usual value"}};
  return fields;
}

const Fields<ops::Quant>& quant_fields() {
  static const Fields<ops::Quant> fields = {
      {"scales", &ops::Quant::scales, json::list_of(json::number({.least = 0, .above = true}), 1, "scales"),
       "one scale, or one for each channel"},
      {"zero_point", &ops::Quant::zero_points, json::one_or_more(json::integer<int32_t>()),
       "the integer that stands for 0; a list where each scale has its own"},
      {"axis", &ops::Quant::axis, json::integer<int>(0, 15), "that of several scales", Presence::optional}};
  return fields;
}

const Fields<Buffer>& buffer_fields() {
  static const Fields<Buffer> fields = {
      {"name", &Buffer::name, json::any_text(), "the value's name"},
      {"dtype", &Buffer::dtype, json::dtype(), "the element type"},
      {"shape", &Buffer::shape, json::shape(), "sizes, channels first; of a packed constant the plain weight's"},
      {"quant", &Buffer::quant, json::maybe(object(quant_fields)), "what integers stand for", Presence::nullable},
      {"layout", &Buffer::layout, json::one_of<Layout>({std::begin(kLayouts), std::end(kLayouts)}),
       "plain, nhwc with a pitch, or strided"},
      {"strides", &Buffer::strides, json::shape(), "strided: elements from one to the next along each axis",
       Presence::optional},
      {"pitch", &Buffer::pitch, json::dim(), "nhwc: elements from pixel to pixel"},
      {"place", &Buffer::place,
       json::one_of<Place>({{"input", Place::input},
                            {"output", Place::output},
                            {"arena", Place::arena},
                            {"constant", Place::constant}}),
       "where it lies"},
      {"offset_bytes", &Buffer::offset_bytes, bytes(), "constants: the place in the weights"},
      {"size_bytes", &Buffer::size_bytes, bytes(), "constants: their bytes in the weights"},
      {"packed", &Buffer::packed, json::truth(), "constants: whether a kernel made the bytes"}};
  return fields;
}

const Fields<Port>& port_fields() {
  static const Fields<Port> fields = {{"name", &Port::name, json::any_text(), "the model's name of it"},
                                      {"buffer", &Port::buffer, json::index(), "its buffer"}};
  return fields;
}

const Fields<State>& state_fields() {
  static const Fields<State> fields = {
      {"name", &State::name, json::any_text(), "the model's name of it"},
      {"input", &State::input, json::index(), "the buffer that a run reads"},
      {"output", &State::output, json::index(), "the buffer that a run writes"},
      {"offset_bytes", &State::offset_bytes, bytes(), "the initial value's place in the weights"},
      {"size_bytes", &State::size_bytes, bytes(), "the initial value's bytes"}};
  return fields;
}

const Fields<StoredCode>& stored_code_fields() {
  static const Fields<StoredCode> fields = {{"kind", &StoredCode::kind, json::word(), "the kind of device it is for"},
                                            {"version", &StoredCode::version, version(), "its version"},
                                            {"code_bytes", &StoredCode::code_bytes, bytes(), "its bytes"}};
  return fields;
}

const Fields<Stored>& subprogram_fields() {
  static const Convert<std::string> word = json::word();
  static const Fields<Stored> fields = {
      {"name", &Subprogram::name, json::any_text(), "the name"},
      {"device", &Subprogram::device, json::any_text(), "the device that it visits"},
      {"inputs", &Subprogram::inputs, json::indices(), "buffers that it reads"},
      {"outputs", &Subprogram::outputs, json::indices(), "buffers that it writes"},
      {"depends_on", &Subprogram::depends_on, json::indices(), "earlier subprograms that it waits for"},
      {"defines", &Subprogram::defines, json::list_of(word), "symbols whose values come out of it"},
      {"fallback", &Stored::stored_fallback, json::maybe(object(stored_code_fields)),
       "code for sizes that its own does not serve, which stands behind that", Presence::nullable},
      {"kind", &StoredCode::kind, word, "the device's kind"},
      {"version", &StoredCode::version, version(), "the version of its code"},
      {"code_bytes", &StoredCode::code_bytes, bytes(), "bytes of its code, which stands behind that of those before"}};
  return fields;
}

const Fields<StoredProgram>& program_fields() {
  static const Fields<StoredProgram> fields = {
      {"symbols", &Program::symbols, json::list_of(object(symbol_fields)), "sizes that are open until a run"},
      {"buffers", &Program::buffers, json::list_of(object(buffer_fields)), "memory of one value each"},
      {"inputs", &Program::inputs, json::list_of(object(port_fields)), "the inputs"},
      {"outputs", &Program::outputs, json::list_of(object(port_fields)), "the outputs"},
      {"subprograms", &StoredProgram::stored, json::list_of(object(subprogram_fields)),
       "visits to devices, in run order"}};
  return fields;
}

// As hash.h writes digests.
Convert<std::string> digest(size_t digits) {
  return {[=](const json::At& at, std::string& into) {
            into = json::read_text(at, 0);
            if (into.size() != digits || into.find_first_not_of("0123456789abcdef") != into.npos)
              at.wrong(text(digits, " hexadecimal digits"));
          },
          [](const std::string& from) { return json::Json(from); },
          {{"type", "string"}, {"pattern", text("^[0-9a-f]{", digits, "}$")}}};
}

Convert<int64_t> blob_bytes() { return json::integer(1, kMostBytes); }

const Fields<BlobRow>& part_fields() {
  static const Fields<BlobRow> fields = {
      {"bytes", &BlobRow::bytes, blob_bytes(), "its bytes"},
      {"hash", &BlobRow::hash, digest(64), "SHA-256 of its bytes, which names the file"},
      {"sum", &BlobRow::sum, digest(16), "a fast sum of its bytes, which loading checks"}};
  return fields;
}

Convert<BlobRow> blob_row() {
  const Convert<int64_t> here = blob_bytes();
  const Convert<BlobRow> apart = object(part_fields);
  return {[=](const json::At& at, BlobRow& into) {
            at.json.is_object() ? apart.read(at, into) : here.read(at, into.bytes);
          },
          [=](const BlobRow& from) { return from.hash.empty() ? here.write(from.bytes) : apart.write(from); },
          {{"anyOf", {here.schema, apart.schema}}}};
}

const Fields<Structure>& structure_fields() {
  const std::vector<json::Row>& common = program_fields().rows();
  static const Fields<Structure> fields = {
      common[0],
      common[1],
      common[2],
      common[3],
      common[4],
      {"signature", &Program::signature_json, json::any_value(),
       "how the model's own caller passes inputs and gets outputs", Presence::nullable},
      {"states", &Program::states, json::list_of(object(state_fields)), "what the model keeps from run to run"},
      {"bodies", &Structure::stored_bodies, json::unless_empty(json::list_of(object(program_fields))),
       "programs of what calls repeat, each behind those that it runs", Presence::optional},
      {"blobs", &Structure::blobs, json::unless_empty(json::list_of(blob_row())),
       "where the weights are several blobs: the bytes of each, or a file of its own beside the executable's",
       Presence::optional}};
  return fields;
}

void store(const Program& program, StoredProgram& out) {
  out.symbols = program.symbols;
  out.buffers = program.buffers;
  out.inputs = program.inputs;
  out.outputs = program.outputs;
  for (const Subprogram& s : program.subprograms) {
    out.stored.push_back({s, StoredCode(s.code), {}});
    if (s.fallback) out.stored.back().stored_fallback.emplace(*s.fallback);
  }
}

// Takes the code of every subprogram off the front of what is left.
void take_code(StoredProgram& program, std::span<const std::byte>& left, const std::string& called) {
  for (Stored& stored : program.stored) {
    const auto take = [&](const StoredCode& from, std::string_view field) {
      const auto bytes = static_cast<size_t>(from.code_bytes);
      if (bytes > left.size()) {
        throw InvalidModel(text(called, ": subprograms[", program.subprograms.size(), "]", field, ".code_bytes is ",
                                bytes, "; ", left.size(), " bytes of code are left."));
      }
      Code out{from.kind, from.version, {left.begin(), left.begin() + from.code_bytes}};
      left = left.subspan(bytes);
      return out;
    };
    stored.code = take(stored, "");
    if (stored.stored_fallback) stored.fallback = take(*stored.stored_fallback, ".fallback");
    program.subprograms.push_back(std::move(stored));
  }
}

}  // namespace

std::string structure_json(const Program& program, const std::vector<BlobRow>& blobs) {
  Structure structure;
  structure.blobs = blobs;
  store(program, structure);
  structure.signature_json = program.signature_json;
  structure.states = program.states;
  for (const Program& body : program.bodies) store(body, structure.stored_bodies.emplace_back());
  return json::to_text(structure_fields().write(structure));
}

std::string structure_schema() {
  return json::schema_text("The program of an executable", structure_fields().schema());
}

Program parse_structure(std::string_view json, std::span<const std::byte> code, const std::string& called,
                        std::vector<BlobRow>* blobs) {
  const json::Json document = json::parse(json, kProgramJson, called);
  Structure structure = structure_fields().value({document, kProgramJson, called});
  auto left = code;
  take_code(structure, left, text(called, ": the program"));
  for (StoredProgram& body : structure.stored_bodies) {
    take_code(body, left, text(called, ": bodies[", structure.bodies.size(), "]"));
    structure.bodies.push_back(std::move(body));
  }
  if (!left.empty()) {
    throw InvalidModel(text(called, ": its subprograms take ", code.size() - left.size(), " bytes of code; there are ",
                            code.size(), ". The file is damaged."));
  }
  if (blobs != nullptr) *blobs = std::move(structure.blobs);
  return structure;
}

}  // namespace hetnn::program
