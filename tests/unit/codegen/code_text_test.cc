// SPDX-License-Identifier: Apache-2.0
// What can be seen in the text of generated code, also of code that this machine cannot run.
#include <gtest/gtest.h>

#include <regex>

#include "compiler/codegen/codegen.h"

namespace heddle::codegen {
namespace {

using ops::Cpu;
using ops::Region;

std::string TextOf(const std::string& region, CodeText kind, Cpu cpu) {
  const Result<Region> parsed = Region::Parse(region);
  EXPECT_TRUE(parsed.ok()) << region;
  const Result<std::string> text = ExplainRegion(*parsed, kind, cpu);
  EXPECT_TRUE(text.ok()) << text.status().ToString();
  return text.ok() ? *text : std::string();
}

// Every operator: the code of AVX-512 is 512 bits wide, that of AVX2 is not, and neither calls anything but
// the three kernels.
TEST(CodeTextTest, CodeIsAsWideAsItsLevelAndCallsNothing) {
  const std::regex calls("\\n\\s+(call|jmp)q?\\s+[*a-z]");
  std::vector<std::string> operators;
#define HEDDLE_TEXT(Name) operators.push_back("%2 = " #Name " %0 %1\n");
  HEDDLE_BINARY_KERNELS(HEDDLE_TEXT)
#undef HEDDLE_TEXT
#define HEDDLE_TEXT(Name) operators.push_back("%2 = " #Name " %0\n");
  HEDDLE_UNARY_KERNELS(HEDDLE_TEXT)
#undef HEDDLE_TEXT
  for (const std::string& line : operators) {
    const std::string body = "%0 = cells 0\n%1 = cells 1\n" + line + "fold-flat add %2\n",
                      region = "region 2\n" + body;
    const std::string narrow = TextOf(region, CodeText::kAssembly, Cpu::kAvx2);
    const std::string wide = TextOf(region, CodeText::kAssembly, Cpu::kAvx512);
    const bool calls_kernel =
        line.find("Sine %") == 5 || line.find("Cosine %") == 5 || line.find("Tangent %") == 5;
    EXPECT_NE(narrow.find("ymm"), std::string::npos) << line;
    EXPECT_EQ(narrow.find("zmm"), std::string::npos) << line;
    EXPECT_NE(wide.find("zmm"), std::string::npos) << line;
    EXPECT_EQ(TextOf("region 2 half-registers\n" + body, CodeText::kAssembly, Cpu::kAvx512).find("zmm"),
              std::string::npos)
        << line;
    EXPECT_EQ(std::regex_search(narrow, calls), calls_kernel) << line << narrow;
    EXPECT_EQ(std::regex_search(wide, calls), calls_kernel) << line << wide;
  }
}

// Two operators never share a rounding, and LLVM is not told that it may change one.
TEST(CodeTextTest, NothingIsContracted) {
  const std::string region =
      "region 3\n%0 = cells 0\n%1 = cells 1\n%2 = cells 2\n%3 = Multiply %0 %1\n%4 = Add %3 %2\nstore %4\nfold-rows add %3\n";
  for (const Cpu cpu : {Cpu::kAvx2, Cpu::kAvx512}) {
    EXPECT_EQ(TextOf(region, CodeText::kAssembly, cpu).find("vfm"), std::string::npos);
    const std::string ir = TextOf(region, CodeText::kIr, cpu);
    EXPECT_NE(ir.find("define void @heddle_region("), std::string::npos);
    for (const char* const flag :
         {" fast ", "contract", "reassoc", "nnan", "nsz", "arcp", "afn", "@llvm.exp", "@llvm.pow"})
      EXPECT_EQ(ir.find(flag), std::string::npos) << flag;
  }
}

// Inputs that are read ahead are fetched by every kind of loop, others by none: a line of each for every
// eight cells.
TEST(CodeTextTest, LoopsFetchWhatIsAhead) {
  const auto fetches = [](const std::string& region, Cpu cpu) {
    const std::string text = TextOf(region, CodeText::kAssembly, cpu);
    int count = 0;
    for (size_t at = text.find("prefetcht1"); at != std::string::npos; at = text.find("prefetcht1", at + 1))
      ++count;
    return count;
  };
  const std::string head = "%0 = cells 0 prefetch\n%1 = cells 1\n%2 = Multiply %0 %1\n";
  for (const Cpu cpu : {Cpu::kAvx2, Cpu::kAvx512}) {
    EXPECT_EQ(fetches("region 2\n%0 = cells 0\n%1 = cells 1\n%2 = Multiply %0 %1\nstore %2\n", cpu), 0);
    EXPECT_EQ(fetches("region 2\n" + head + "fold-flat add %2\n", cpu),
              2 + 1 + 1);  // Two eights, one, less than one.
    EXPECT_EQ(fetches("region 2 columns 10\n" + head + "fold-rows add %2\n", cpu), 5);
    EXPECT_EQ(fetches("region 2 columns 10\n" + head + "store %2\n", cpu), 5);
    EXPECT_EQ(fetches("region 2\n" + head + "%3 = Exponential %2\nfold-flat add %3\n", cpu),
              (cpu == Cpu::kAvx512 ? 4 : 2) + 1);
  }
  EXPECT_EQ(
      fetches(
          "region 2\n%0 = cells 0 prefetch\n%1 = cells 1 prefetch\n%2 = Multiply %0 %1\nfold-flat add %2\n",
          Cpu::kAvx2),
      8);
  // Two eights of floats are one line.
  EXPECT_EQ(fetches("region 1\n%0 = cells 0 single prefetch\nfold-flat add %0\n", Cpu::kAvx2), 1 + 1 + 1);
}

// A square costs a multiplication, as in hand-written kernels.
TEST(CodeTextTest, ASquareIsAMultiplication) {
  const std::string region = "region 1\n%0 = cells 0\n%1 = literal 0x1p+1\n%2 = Power %0 %1\nstore %2\n";
  const std::string text = TextOf(region, CodeText::kAssembly, Cpu::kAvx2);
  EXPECT_NE(text.find("vmulpd"), std::string::npos);
  EXPECT_EQ(text.find("vfm"), std::string::npos);
  EXPECT_EQ(text.find("vdivpd"), std::string::npos);
}

TEST(CodeTextTest, StreamedStoresArePartOfTheCode) {
  const std::string region = "region 1\n%0 = cells 0\nstore %0\n";
  for (const Cpu cpu : {Cpu::kAvx2, Cpu::kAvx512}) {
    const std::string text = TextOf(region, CodeText::kAssembly, cpu);
    EXPECT_NE(text.find("vmovnt"), std::string::npos);
    EXPECT_NE(text.find("sfence"), std::string::npos);
  }
}

}  // namespace
}  // namespace heddle::codegen
