// Texts: two values. `bytes` holds UTF-8, and `spans` an i64 for each text: where it begins times 2^32, plus its
// length. So spans are moved, picked and repeated like any numbers, and 0 is the empty text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/meaning.h"

namespace hetnn::ops {

/// The inputs that hold texts, called so.
std::vector<InputDef> text_inputs(std::string_view bytes = "bytes", std::string_view spans = "spans");
/// Those of two, a and b.
std::vector<InputDef> two_texts();
/// The attribute that says how many bytes the resulting texts have.
AttrDef text_total();

/// Fails with `<op>_c1` unless inputs `at` and `at + 1` can hold texts.
void check_text(const Call& call, size_t at = 0);
/// The shape of two texts together. Fails unless both can hold texts, and with `<op>_c4` unless their shapes broadcast.
Shape shape_of_two_texts(const Call& call);
/// The types of texts of this shape, as many bytes long as `total` says.
std::vector<Type> text_types(const Call& call, Shape shape);

/// Whether texts are made of numbers of that type, and read as such.
bool is_wide_number(DType dtype);
/// Calls f(T{}) with its C++ type.
template <typename F>
decltype(auto) visit_wide_number(DType dtype, F&& f) {
  return is_float(dtype) ? visit_wide_reals(dtype, f) : dtype == DType::u64 ? f(uint64_t{}) : f(int64_t{});
}

/// The texts that inputs `at` and `at + 1` hold. Fails unless each lies within the bytes.
std::vector<std::string_view> texts_of(const Evaluation& e, size_t at = 0);
/// Writes texts to outputs 0 and 1. Fails where they have 2^31 bytes or more.
void write_texts(const Evaluation& e, const std::vector<std::string>& texts, std::vector<int64_t> shape);

/// Writes the parts of each text, the most of one, to output 0 as spans of input 0, their numbers to output 1; `parts`
/// is the most.
void write_parts(const Evaluation& e, const std::vector<std::vector<std::string_view>>& rows, size_t most);

/// The first character, which is taken from the text; a byte that begins none stands for itself. 0 where it is empty.
char32_t next_character(std::string_view& text);
void append_character(std::string& to, char32_t character);
bool is_space(char32_t character);
/// The one character that is its upper or lower case, else itself.
char32_t upper_case(char32_t character);
char32_t lower_case(char32_t character);

}  // namespace hetnn::ops
