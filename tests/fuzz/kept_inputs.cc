// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/kept_inputs.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "tests/support/process.h"

namespace heddle::fuzz {
namespace {

using testing_support::ReadText;

std::string FromBase64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) break;  // '=' at the end
    bits = (bits << 6 | static_cast<uint32_t>(digit)) & 0xffff;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count));
  }
  return bytes;
}

}  // namespace

std::vector<std::string> HarmfulInputs(const std::string& inlet) {
  std::vector<std::filesystem::path> files;
  std::error_code none;
  for (const auto& file :
       std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR "/tests/fuzz/inputs/" + inlet, none))
    files.push_back(file.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> inputs;
  for (const std::filesystem::path& file : files) inputs.push_back(ReadText(file));
  return inputs;
}

std::vector<std::string> CorpusOf(const std::string& inlet) {
  std::vector<std::string> inputs;
  std::istringstream lines(ReadText(HEDDLE_SOURCE_DIR "/tests/fuzz/corpus/" + inlet));
  for (std::string line; std::getline(lines, line);) inputs.push_back(FromBase64(line));
  return inputs;
}

}  // namespace heddle::fuzz
