// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace heddle::engine {

/// A file of what every page has.
struct PagePart {
  std::string_view path;
  std::string_view text;
};
/// Those of engine/report/page and of third_party/uplot (tables made by the build, cmake/embed_files.cmake).
std::span<const PagePart> PageParts();
std::span<const PagePart> ChartParts();

}  // namespace heddle::engine
