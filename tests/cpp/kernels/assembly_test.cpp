// Reads this program's own machine code: what the compiler made of the hot loops is part of their contract.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

// Only optimized code for x86 without sanitizers has the shape that is asserted here.
#if defined(__x86_64__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__clang__)

namespace hetnn::kernels::testing {
namespace {

/// Disassembly of this program: demangled function name -> instructions.
const std::map<std::string, std::vector<std::string>>& functions() {
  static const auto all = [] {
    std::map<std::string, std::vector<std::string>> result;
    std::array<char, 4096> path{};
    EXPECT_GT(readlink("/proc/self/exe", path.data(), path.size() - 1), 0);
    const std::string command = "objdump -d -C --no-show-raw-insn '" + std::string(path.data()) + "' 2>/dev/null";
    FILE* pipe = popen(command.c_str(), "r");
    EXPECT_NE(pipe, nullptr);
    std::array<char, 4096> line{};
    std::vector<std::string>* body = nullptr;
    while (pipe != nullptr && std::fgets(line.data(), line.size(), pipe) != nullptr) {
      const std::string text = line.data();
      const size_t open = text.find(" <");
      if (open != std::string::npos && text.find(">:") != std::string::npos && text[0] != ' ') {
        const std::string name = text.substr(open + 2, text.rfind(">:") - open - 2);
        body = name.find("hetnn::kernels::N_") == std::string::npos ? nullptr : &result[name];
      } else if (body != nullptr) {
        body->push_back(text);
      }
    }
    if (pipe != nullptr) pclose(pipe);
    return result;
  }();
  return all;
}

/// Calls f(name, instructions) for every function whose name contains all parts; returns how many there were.
template <typename F>
int for_functions(const std::vector<std::string>& parts, F f) {
  int found = 0;
  for (const auto& [name, body] : functions()) {
    bool fits = true;
    for (const std::string& part : parts) fits = fits && name.find(part) != std::string::npos;
    if (!fits) continue;
    ++found;
    f(name, body);
  }
  return found;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Assembly, AccumulatorsOfTheMicrokernelStayInRegisters) {
  for (const std::string isa : {"N_AVX3", "N_AVX2"}) {
    const std::string vector = isa == "N_AVX3" ? "%zmm" : "%ymm";
    const int found =
        for_functions({isa + "::", "Micro<"}, [&](const std::string& name, const std::vector<std::string>& body) {
          int spills = 0, multiply_adds = 0;
          for (const std::string& line : body) {
            multiply_adds += contains(line, "vfmadd");
            // A vector register written to or read from the stack.
            spills += contains(line, "vmov") && contains(line, vector) && contains(line, "(%rsp)");
          }
          EXPECT_EQ(spills, 0) << name;
          EXPECT_GT(multiply_adds, 0) << name;
        });
    EXPECT_GE(found, isa == "N_AVX3" ? 34 : 6) << isa;
  }
}

// Four products in one instruction, by AVX-512's encoding and by AVX2's.
TEST(Assembly, SumsOfIntegersMultiplyBytes) {
  for (const std::string isa : {"N_AVX3", "N_AVX2"}) {
    const int found = for_functions(
        {isa + "::", "SumTile<", "Quads"}, [&](const std::string& name, const std::vector<std::string>& body) {
          int products = 0;
          for (const std::string& line : body)
            products += contains(line, isa == "N_AVX3" ? "vpdpbusd %zmm" : "{vex} vpdpbusd %ymm");
          EXPECT_GT(products, 0) << name;
        });
    EXPECT_EQ(found, isa == "N_AVX3" ? 28 : 6) << isa;
  }
}

TEST(Assembly, UnitCoefficientsAreAddedAndSubtractedWithoutAMultiply) {
  for (const std::string isa : {"N_AVX3", "N_AVX2"})
    for (const std::string op : {"Add", "Subtract"}) {
      const int found = for_functions(
          {isa + "::", "Pass<", "::" + op + ","}, [&](const std::string& name, const std::vector<std::string>& body) {
            for (const std::string& line : body)
              EXPECT_FALSE(contains(line, "vmulps") || contains(line, "vfm") || contains(line, "vfnm"))
                  << name << ": " << line;
          });
      EXPECT_EQ(found, op == "Add" ? 16 : 4) << isa << " " << op;
    }
}

TEST(Assembly, WeightedSumsUseOneFusedMultiplyAddPerInput) {
  const int found = for_functions({"N_AVX3::", "Pass<", "::Weigh, 8>"},
                                  [](const std::string& name, const std::vector<std::string>& body) {
                                    int fused = 0;
                                    for (const std::string& line : body)
                                      fused += contains(line, "vfmadd") && contains(line, "%zmm");
                                    // Seven in the loop, and the rest of the row.
                                    EXPECT_GE(fused, 7) << name;
                                  });
  EXPECT_EQ(found, 1);
}

}  // namespace
}  // namespace hetnn::kernels::testing

#endif
