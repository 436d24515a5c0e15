// SPDX-License-Identifier: Apache-2.0
// What the module of Arrow and Parquet gives to the program. Only this folder's arrow/ knows the libraries:
// they see files through two classes, run no threads of their own, and what they throw is caught there.
#include "ops/io/formats/libraries/format_module.h"
#include "ops/io/formats/module/arrow/table.h"
#include "ops/io/formats/module/arrow/write_table.h"

namespace heddle::ops {
namespace {

constexpr ArrowModule kModule = {.open = tables::OpenTable, .write = tables::WriteTable};

}  // namespace
}  // namespace heddle::ops

extern "C" __attribute__((visibility("default"))) const void* HeddleOpenArrow(int32_t abi) {
  return abi == heddle::ops::kFormatModuleAbi ? &heddle::ops::kModule : nullptr;
}
