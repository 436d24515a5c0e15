// SPDX-License-Identifier: Apache-2.0
#include "cluster/store/list_texts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace heddle::cluster {

std::string ToText(const std::vector<std::string>& list) {
  return nlohmann::json(list).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
std::vector<std::string> ToList(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> list;
  if (json.is_array())
    for (const auto& entry : json)
      if (entry.is_string()) list.push_back(entry.get<std::string>());
  return list;
}

std::string ToText(const std::vector<Share>& shares) {
  std::string text;
  for (const Share& share : shares) text += fmt::format("{} {} ", share.threads, share.memory_bytes);
  return text;
}
std::vector<Share> ToShares(const std::string& text) {
  std::vector<Share> shares;
  std::istringstream stream(text);
  for (Share share; stream >> share.threads >> share.memory_bytes;) shares.push_back(share);
  return shares;
}

}  // namespace heddle::cluster
