// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/file_options.h"

#include "core/memory/memory_budget.h"
#include "ops/io/formats/options.h"

namespace heddle::cluster::cli {

Result<ops::FileFormat> ReadFormat(std::string_view option, const std::string& name) {
  Result<ops::FileFormat> format = ops::ParseFileFormat(name);
  if (format.ok()) return format;
  return Usage("--{}: {}", option, format.status().message());
}

Result<std::optional<bool>> ReadHeader(const Arguments& arguments, std::string_view option) {
  const std::optional<std::string> text = arguments.Value(option);
  if (!text) return std::optional<bool>();
  const std::string word = ops::Lower(*text);
  if (word != "true" && word != "false") return Usage("--{} takes TRUE or FALSE, not '{}'", option, *text);
  return std::optional(word == "true");
}

Status LimitMemoryOfFiles(const Arguments& arguments) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t bytes, arguments.Bytes("memory", 0));
  if (bytes > 0) MemoryBudget::Process().SetLimit(bytes);
  return OkStatus();
}

}  // namespace heddle::cluster::cli
