// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/hostile.h"

#include <fmt/format.h>

namespace heddle::fuzz {

std::string HostileNumber(Chooser& choose) {
  return choose.Pick({"0",
                      "-0.0",
                      "1",
                      "-1",
                      "2",
                      "0.5",
                      "-0.5",
                      "1.5",
                      "0.9999999999999999",
                      "1e-300",
                      "4.9e-324",
                      "2.2250738585072014e-308",
                      "1e308",
                      "-1e308",
                      "1.7976931348623157e308",
                      "1e309",
                      "NaN",
                      "Inf",
                      "-Inf",
                      "(0/0)",
                      "(1/0)",
                      "127",
                      "128",
                      "255",
                      "256",
                      "1000",
                      "1001",
                      "65536",
                      "2147483647",
                      "2147483648",
                      "-2147483648",
                      "4294967296",
                      "9007199254740991",
                      "9007199254740992",
                      "9007199254740993",
                      "9223372036854775807",
                      "-9223372036854775807",
                      "9223372036854775808.0",
                      "-9223372036854775808.0",
                      "9.223372036854775e18",
                      "18446744073709551616.0",
                      "1e18",
                      "2e18",
                      "1e9",
                      "1e10",
                      "3037000500",
                      "TRUE",
                      "FALSE"});
}

std::string HostileText(Chooser& choose) {
  switch (choose.Below(12)) {
    case 0: return "\"\"";
    case 1:
      return "\"" + std::string(static_cast<size_t>(choose.PickNumber({100, 5000, 100000})), 'x') + "\"";
    case 2: return "\"%d %s %f %99999999d\"";
    case 3: return "\"%n%s%s%s%s%.400f\"";
    case 4: return "\"\\n\\t\\\"\\\\\"";
    case 5: return "\"1e309\"";
    case 6: return "\"not/there\"";
    case 7: return "\"csv\"";
    case 8: return "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"";
    case 9: return "\"" + HostileNumber(choose) + "\"";
    case 10: return "'single \"inside\"'";
    default:
      return choose.Pick({"\"rows\"", "\"cols\"", "\"uniform\"", "\"poisson\"", "\"normal\"", "\"+\"",
                          "\"<\"", "\"mm\"", "\"text\"", "\"libsvm\"", "\".\"", "\"/\"", "\"out.csv\""});
  }
}

std::string HostileExpression(Chooser& choose) {
  const std::string number = HostileNumber(choose);
  switch (choose.Below(16)) {
    case 0:
    case 1:
    case 2: return number;
    case 3: return HostileText(choose);
    case 4: return choose.Pick({"TRUE", "FALSE", "X", "v", "s", "i", "nobody", "f", "pi", "$p"});
    case 5: return fmt::format("matrix({}, rows=2, cols=3)", number);
    case 6: return fmt::format("matrix(1, rows={}, cols=1)", number);
    case 7: return fmt::format("matrix({}, {}, {})", HostileText(choose), number, HostileNumber(choose));
    case 8: return fmt::format("seq({}, {}, {})", number, HostileNumber(choose), HostileNumber(choose));
    case 9:
      return fmt::format("rand(rows={}, cols={}, sparsity={}, seed=1)", number, HostileNumber(choose),
                         HostileNumber(choose));
    case 10: return fmt::format("({}:{})", number, HostileNumber(choose));
    case 11: return fmt::format("X[{}, {}]", number, HostileNumber(choose));
    case 12: return fmt::format("X[{}:{}, ]", number, HostileNumber(choose));
    case 13: return fmt::format("as.integer({})", number);
    case 14: return fmt::format("list({}, {})", number, HostileText(choose));
    default:
      return fmt::format("(-{} {} {})", number, choose.Pick({"+", "*", "^", "%%", "%/%", "/"}),
                         HostileNumber(choose));
  }
}

std::string HostileField(Chooser& choose) {
  return choose.Pick({"",
                      " ",
                      "NaN",
                      "nan",
                      "NA",
                      "Inf",
                      "-Infinity",
                      "inf",
                      "\"1.5\"",
                      "'2'",
                      "1e308",
                      "-1e400",
                      "1e-400",
                      "1d5",
                      "1.5D-3",
                      "0x1p3",
                      "1,5",
                      "1_000",
                      "+5",
                      "--5",
                      "5-",
                      ".",
                      "1.",
                      ".5",
                      "1e",
                      "e5",
                      "TRUE",
                      "null",
                      "9223372036854775807",
                      "9223372036854775808",
                      "-9223372036854775809",
                      "99999999999999999999999999",
                      "2147483648",
                      "0",
                      "-1",
                      "0:1",
                      "1:",
                      ":1",
                      "1:2:3",
                      "qid:1",
                      "#",
                      "%",
                      "\"",
                      "\"unclosed",
                      "\xEF\xBB\xBF",
                      "\xFF",
                      "\xC3\x28",
                      "\t",
                      "1 2",
                      ";",
                      "%%MatrixMarket"});
}

}  // namespace heddle::fuzz
