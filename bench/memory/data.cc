// SPDX-License-Identifier: Apache-2.0
#include "bench/memory/data.h"

#include <fmt/format.h>

#include <filesystem>

#include "bench/memory/limited_run.h"

namespace heddle::bench {
namespace {

constexpr int64_t kColumns = 100;
constexpr double kBytesOfDecimal = 9.39;  // With its separator and, of every other number, its sign.

// Labels depend on some of the columns and are wrong now and then.
constexpr const char* kScript = R"(
X = rand(rows=$rows, cols=$cols, min=-1, max=1, seed=7)
if ($decimals) {
  X = round(X * 1000000) / 1000000
}
w = rand(rows=$cols, cols=1, min=-1, max=1, seed=8)
noise = rand(rows=$rows, cols=1, min=-1, max=1, seed=9)
y = 2 * (X %*% w + noise > 0) - 1
write(y, $y, format="binary")
write(X, $x, format=$format)
)";

}  // namespace

Result<LargeFile> MakeLargeFile(const std::string& heddle, const std::string& folder, bool is_csv,
                                double gigabytes) {
  LargeFile file;
  file.rows = static_cast<int64_t>(gigabytes * 1e9 / (kColumns * (is_csv ? kBytesOfDecimal : 8.0)));
  file.cell_bytes = file.rows * kColumns * 8;
  const std::string format = is_csv ? "csv" : "binary";
  const std::string stem = fmt::format("{}/{}-{}", folder, format, file.rows);
  file.x = stem + (is_csv ? ".csv" : ".bin");
  file.y = stem + ".labels";
  // The matrix is written last, and appears when it is whole.
  if (std::filesystem::exists(file.x)) return file;
  const auto no_limit = ControlGroup::Make(int64_t{8} << 30);
  HEDDLE_ASSIGN_OR_RETURN(const LimitedRun run,
                          RunLimited({heddle, "run", "--memory", "1g", "-e", kScript, "-nvargs",
                                      fmt::format("rows={}", file.rows), fmt::format("cols={}", kColumns),
                                      fmt::format("decimals={}", is_csv ? "TRUE" : "FALSE"), "x=" + file.x,
                                      "y=" + file.y, "format=" + format},
                                     *no_limit));
  if (run.exit_code != 0) return Internal("{} cannot be made:\n{}", file.x, run.output);
  return file;
}

}  // namespace heddle::bench
