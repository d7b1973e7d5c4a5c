// What operators on texts have in common.
#include "hetnn/ops/text/text.h"

#include <algorithm>
#include <iterator>

#include "hetnn/ops/sizes.h"

namespace hetnn::ops {
namespace {

constexpr int kLengthBits = 32;

struct Row {
  char32_t first, last;
  int step, added;
};
#include "hetnn/ops/text/cases.inc"

template <size_t N>
char32_t mapped(const Row (&rows)[N], char32_t character) {
  const Row* row = std::upper_bound(std::begin(rows), std::end(rows), character,
                                    [](char32_t c, const Row& each) { return c < each.first; });
  if (row == std::begin(rows)) return character;
  --row;
  const bool found = character <= row->last && static_cast<int>(character - row->first) % row->step == 0;
  return found ? static_cast<char32_t>(static_cast<int>(character) + row->added) : character;
}

}  // namespace

std::vector<InputDef> text_inputs(std::string_view bytes, std::string_view spans) {
  return {{bytes, "u8[n]: the texts' UTF-8"},
          {spans, "i64, any shape: of each text where it begins, times 2^32, plus its length"}};
}

std::vector<InputDef> two_texts() {
  std::vector<InputDef> out = text_inputs("a_bytes", "a_spans"), b = text_inputs("b_bytes", "b_spans");
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

AttrDef text_total() { return found_size("total", "how many bytes the texts have"); }

void check_text(const Call& call, size_t at) {
  const Type &bytes = call.input(at), &spans = call.input(at + 1);
  if (bytes.dtype != DType::u8 || bytes.rank() != 1 || bytes.quant || spans.dtype != DType::i64) {
    fail(call, text(call.op->name, "_c1"),
         text("texts must be bytes u8[n] and spans of i64; got ", to_string(bytes), " and ", to_string(spans), "."));
  }
}

Shape shape_of_two_texts(const Call& call) {
  check_text(call, 0);
  check_text(call, 2);
  const auto shape = broadcast(call.input(1).shape, call.input(3).shape);
  if (!shape) {
    fail(call, text(call.op->name, "_c4"),
         text("the spans must broadcast; got ", to_string(call.input(1)), " and ", to_string(call.input(3)), "."));
  }
  return *shape;
}

std::vector<Type> text_types(const Call& call, Shape shape) {
  return {{DType::u8, {call.integer("total")}}, {DType::i64, std::move(shape)}};
}

bool is_wide_number(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i64 || dtype == DType::u64;
}

std::vector<std::string_view> texts_of(const Evaluation& e, size_t at) {
  const View &bytes = e.input(at), &spans = e.input(at + 1);
  const std::string_view all(reinterpret_cast<const char*>(bytes.data), static_cast<size_t>(bytes.elems()));
  std::vector<std::string_view> out;
  out.reserve(static_cast<size_t>(spans.elems()));
  for (const int64_t span : spans.values<int64_t>()) {
    const auto begin = static_cast<size_t>(span >> kLengthBits), length = static_cast<size_t>(span & UINT32_MAX);
    if (span < 0 || begin > all.size() || length > all.size() - begin) {
      fail(e.call, text(e.call.op->name, "_c2"),
           text("a span must lie within the ", all.size(), " bytes; got ", span, ", which begins at ",
                span >> kLengthBits, " and is ", length, " long."));
    }
    out.push_back(all.substr(begin, length));
  }
  return out;
}

void write_texts(const Evaluation& e, const std::vector<std::string>& texts, std::vector<int64_t> shape) {
  int64_t total = 0;
  for (const std::string& each : texts) {
    total += static_cast<int64_t>(each.size());
    if (total > INT32_MAX) fail(e.call, text(e.call.op->name, "_c3"), "the resulting texts have 2^31 bytes or more.");
  }
  define(e, "total", total);
  std::byte* to = e.output(0, {total}).data;
  int64_t* span = e.output(1, std::move(shape)).values<int64_t>();
  int64_t begin = 0;
  for (const std::string& each : texts) {
    const auto length = static_cast<int64_t>(each.size());
    to = std::ranges::copy(std::as_bytes(std::span(each)), to).out;
    *span++ = length == 0 ? 0 : begin << kLengthBits | length;
    begin += length;
  }
}

void write_parts(const Evaluation& e, const std::vector<std::vector<std::string_view>>& rows, size_t most) {
  std::vector<int64_t> shape(e.input(1).shape.begin(), e.input(1).shape.end());
  int64_t* counts = e.output(1, shape).values<int64_t>();
  shape.push_back(static_cast<int64_t>(most));
  define(e, "parts", shape.back());
  int64_t* to = e.output(0, shape).values<int64_t>();
  const auto* bytes = reinterpret_cast<const char*>(e.input(0).data);
  for (const std::vector<std::string_view>& row : rows) {
    for (const std::string_view part : row) {
      *to++ = part.empty() ? 0 : (part.data() - bytes) << kLengthBits | static_cast<int64_t>(part.size());
    }
    to = std::fill_n(to, most - row.size(), 0);
    *counts++ = static_cast<int64_t>(row.size());
  }
}

char32_t next_character(std::string_view& text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 1;
  char32_t out = length == 1 ? lead : lead & (0xffU >> (length + 1));
  size_t k = 1;
  while (k < length && k < text.size() && (byte(k) & 0xc0U) == 0x80U) out = out << 6U | (byte(k++) & 0x3fU);
  const bool whole = k == length;
  text.remove_prefix(whole ? length : 1);
  return whole ? out : lead;
}

void append_character(std::string& to, char32_t character) {
  const auto add = [&](char32_t byte) { to.push_back(static_cast<char>(byte)); };
  if (character < 0x80) {
    add(character);
  } else if (character < 0x800) {
    add(0xc0 | character >> 6U);
    add(0x80 | (character & 0x3fU));
  } else {
    if (character < 0x10000) {
      add(0xe0 | character >> 12U);
    } else {
      add(0xf0 | character >> 18U);
      add(0x80 | (character >> 12U & 0x3fU));
    }
    add(0x80 | (character >> 6U & 0x3fU));
    add(0x80 | (character & 0x3fU));
  }
}

bool is_space(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

char32_t upper_case(char32_t c) { return c < 0x80 ? (c >= 'a' && c <= 'z' ? c - 32 : c) : mapped(kUpper, c); }
char32_t lower_case(char32_t c) { return c < 0x80 ? (c >= 'A' && c <= 'Z' ? c + 32 : c) : mapped(kLower, c); }

}  // namespace hetnn::ops
