// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cluster/placement/resources.h"

// Lists as they are written in a column of the job store. What is malformed gives fewer entries.
namespace heddle::cluster {

/// As JSON; the entries are text that we made (names, uuids, JSON).
std::string ToText(const std::vector<std::string>& list);
std::vector<std::string> ToList(const std::string& text);

/// As numbers: threads and bytes of each rank in turn.
std::string ToText(const std::vector<Share>& shares);
std::vector<Share> ToShares(const std::string& text);

}  // namespace heddle::cluster
