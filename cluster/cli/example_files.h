// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace heddle::cluster::cli {

/// A file of examples/, which is part of the binary.
struct ExampleFile {
  std::string_view path;  ///< Below examples/: "kmeans.dml", "data/breast_cancer.csv", "README.md".
  std::string_view text;
};

/// All of them, by path (examples_table.cc, made by the build).
std::span<const ExampleFile> ExampleFiles();

}  // namespace heddle::cluster::cli
