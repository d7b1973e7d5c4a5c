// Checks the signature of an executable: how the model's own caller passes inputs and gets outputs.
#include <algorithm>
#include <set>

#include "hetnn/base/counted.h"
#include "hetnn/base/json_fields.h"
#include "hetnn/program/describe.h"

namespace hetnn::program {
namespace {

using json::At;
using json::Json;

// What a tree is, in the order of `kinds`.
enum Kind : uint8_t {
  kValue,
  kSize,
  kComplex,
  kSequence,
  kShaped,
  kText,
  kOptional,
  kRows,
  kFixed,
  kTuple,
  kList,
  kDict,
  kRecord,
  kFields,
  kKinds
};

class Checker {
 public:
  explicit Checker(const Program& program) : program_(program) {}

  void check(const At& at) {
    static constexpr std::string_view names[] = {"args", "names", "kwargs", "outputs", "written"};
    std::array<const Json*, std::size(names)> found{};
    at.find(names, found);
    for (size_t k = 0; k + 1 < found.size(); ++k) {
      if (!found[k]) at.fail(text("lacks '", names[k], "'"));
    }
    const At args = at.child(names[0], *found[0]);
    args.each_item([&](const At& item) { tree(item, true); });
    std::set<std::string> called;
    const At positional = at.child(names[1], *found[1]);
    positional.each_item([&](const At& item) { distinct(item, json::read_text(item, 1), called); });
    if (found[1]->size() > found[0]->size()) positional.fail("has more names than there are arguments");
    pairs(at.child(names[2], *found[2]), true, called, true);
    tree(at.child(names[3], *found[3]), false);
    if (found[4]) written(at.child(names[4], *found[4]));
    if (inputs_.size() != program_.inputs.size())
      at.fail(text("takes ", counted(inputs_.size(), "input"), "; the program has ", program_.inputs.size()));
  }

 private:
  void tree(const At& at, bool input) {
    static constexpr std::string_view kinds[kKinds] = {"value", "size",     "complex", "sequence", "shaped",
                                                       "text",  "optional", "rows",    "fixed",    "tuple",
                                                       "list",  "dict",     "record",  "fields"};
    std::array<const Json*, kKinds> found{};
    at.find(kinds, found);
    const size_t kind =
        static_cast<size_t>(std::ranges::find_if(found, [](auto* each) { return each; }) - found.begin());
    if (at.json.size() != (kind == kRecord ? 2 : 1) || kind == kFields || (kind == kRecord && !found[kFields]))
      at.wrong(
          "one of value, size, complex, sequence, shaped, text, optional, rows, fixed, tuple, list and dict, or record "
          "with fields");
    const At inner = at.child(kinds[kind], *found[kind]);
    std::set<std::string> keys;
    switch (kind) {
      case kValue:
      case kSize:
        port(inner, input, kind == kSize);
        break;
      case kComplex:
        if (!inner.json.is_array() || inner.json.size() != 2) inner.wrong("the ports of two parts");
        inner.each_item([&](const At& item) { port(item, input, false); });
        break;
      case kShaped:
        if (input) inner.fail("stands among the inputs; only outputs are shaped");
        [[fallthrough]];
      case kSequence:
        if (!inner.json.is_array() || inner.json.size() != 2)
          inner.wrong("a tree of the elements, and a port of shapes");
        elements(inner.item(0), input);
        typed_port(inner.item(1), input, DType::i64, 2);
        break;
      case kText:
        if (!inner.json.is_array() || inner.json.size() != 2) inner.wrong("the ports of the bytes and of the spans");
        text_of(inner, input);
        break;
      case kOptional:
        if (!inner.json.is_array() || inner.json.size() != 2) inner.wrong("a port of a truth, and a tree");
        typed_port(inner.item(0), input, DType::boolean, 0);
        tree(inner.item(1), input);
        break;
      case kRows:
        rows(inner, input);
        break;
      case kFixed:
        if (inner.json.is_structured()) inner.wrong("a number, a text, a truth or null");
        break;
      case kTuple:
      case kList:
        inner.each_item([&](const At& item) { tree(item, input); });
        break;
      case kDict:
        pairs(inner, input, keys, false);
        break;
      default:
        json::read_text(inner, 1);
        pairs(at.child(kinds[kFields], *found[kFields]), input, keys, true);
    }
  }

  // Of a sequence: a value or a text, of rank 1.
  void elements(const At& at, bool input) {
    static constexpr std::string_view kinds[] = {"value", "text"};
    std::array<const Json*, std::size(kinds)> found{};
    at.find(kinds, found);
    if (at.json.size() != 1) at.wrong("a value or a text");
    if (found[0]) {
      port(at.child(kinds[0], *found[0]), input, false, 1);
    } else {
      const At inner = at.child(kinds[1], *found[1]);
      if (!inner.json.is_array() || inner.json.size() != 2) inner.wrong("the ports of the bytes and of the spans");
      text_of(inner, input, 1);
    }
  }

  // Keys, and the port of a matrix that has a column for each.
  void rows(const At& at, bool input) {
    if (input) at.fail("stands among the inputs; only outputs are rows");
    if (!at.json.is_array() || at.json.size() != 2) at.wrong("keys, and a port of a matrix");
    std::set<std::string> keys;
    at.item(0).each_item([&](const At& key) {
      if (key.json.is_structured()) key.wrong("a number, a text, a truth or null");
      distinct(key, key.json.dump(), keys);
    });
    const Buffer& buffer = port(at.item(1), input, false, 2);
    if (buffer.shape[1] != Dim(static_cast<int64_t>(keys.size())))
      at.item(1).fail(text("has the shape ", to_string(buffer.shape), ", which must have ", keys.size(), " columns"));
  }

  void text_of(const At& at, bool input, int rank = -1) {
    typed_port(at.item(0), input, DType::u8, 1);
    typed_port(at.item(1), input, DType::i64, rank);
  }

  // Lists of a key and a tree; keys are texts, those of dicts also other plain values.
  void pairs(const At& at, bool input, std::set<std::string>& keys, bool texts) {
    at.each_item([&](const At& pair) {
      if (!pair.json.is_array() || pair.json.size() != 2) pair.wrong("a key and a tree");
      const At key = pair.item(0);
      if (texts) json::read_text(key, 1);
      if (key.json.is_structured()) key.wrong("a number, a text, a truth or null");
      distinct(key, texts ? key.json.get<std::string>() : key.json.dump(), keys);
      tree(pair.item(1), input);
    });
  }

  // Pairs of an input and the output that is written into it.
  void written(const At& at) {
    at.each_item([&](const At& pair) {
      if (!pair.json.is_array() || pair.json.size() != 2) pair.wrong("an input and an output");
      json::read_integer(pair.item(0), 0, static_cast<int64_t>(program_.inputs.size()) - 1);
      port(pair.item(1), false, false);
    });
  }

  static void distinct(const At& at, const std::string& key, std::set<std::string>& keys) {
    if (!keys.insert(key).second) at.fail("stands twice");
  }

  // A port, of that rank unless it is negative.
  const Buffer& port(const At& at, bool input, bool size, int rank = -1) {
    const std::vector<Port>& ports = input ? program_.inputs : program_.outputs;
    const int64_t index = json::read_integer(at, 0, static_cast<int64_t>(ports.size()) - 1);
    const Buffer& buffer = program_.buffers[static_cast<size_t>(ports[static_cast<size_t>(index)].buffer)];
    if (size && !buffer.shape.empty()) at.fail(text("is no ", input ? "input" : "output", " of rank 0"));
    if (size && input && buffer.dtype != DType::i64)
      at.fail(text("is ", dtype_name(buffer.dtype), "; a size that is given must be i64"));
    if (rank >= 0 && buffer.shape.size() != static_cast<size_t>(rank))
      at.fail(text("has the shape ", to_string(buffer.shape), ", which must be of rank ", rank));
    if (input && !inputs_.insert(index).second) at.fail(text("takes input ", index, " a second time"));
    return buffer;
  }

  void typed_port(const At& at, bool input, DType dtype, int rank) {
    const Buffer& buffer = port(at, input, false, rank);
    if (buffer.dtype != dtype) at.fail(text("is ", dtype_name(buffer.dtype), "; it must be ", dtype_name(dtype)));
  }

  const Program& program_;
  std::set<int64_t> inputs_;
};

}  // namespace

void check_signature(const Program& program, const std::string& called) {
  if (program.signature_json.empty()) return;
  const Json document = json::parse(program.signature_json, kProgramJson, called);
  const At whole(document, kProgramJson, called);
  Checker(program).check(whole.child("signature", document));
}

}  // namespace hetnn::program
