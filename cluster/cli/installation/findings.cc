// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/installation/findings.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "cluster/cli/report.h"
#include "core/text/utf8.h"

namespace heddle::cluster::cli {

Finding GoodFinding(std::string about, std::string text) {
  return {Finding::Grade::kGood, std::move(about), std::move(text), ""};
}
Finding NoteFinding(std::string about, std::string text, std::string mend) {
  return {Finding::Grade::kNote, std::move(about), std::move(text), std::move(mend)};
}
Finding FaultFinding(std::string about, std::string text, std::string mend) {
  return {Finding::Grade::kFault, std::move(about), std::move(text), std::move(mend)};
}

std::string Size(int64_t bytes) { return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9); }

std::string Joined(const std::vector<std::string>& notes) {
  return fmt::format("{}", fmt::join(notes, "; "));
}

int ReportFindings(const Arguments& arguments, const std::vector<Finding>& findings) {
  constexpr const char* kMarks[] = {"ok", "--", "!!"};
  bool is_faulty = false;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    is_faulty |= finding.grade == Finding::Grade::kFault;
    if (arguments.Has("json")) {
      constexpr const char* kGrades[] = {"good", "note", "fault"};
      json.push_back({{"about", finding.about},
                      {"grade", kGrades[static_cast<size_t>(finding.grade)]},
                      {"text", finding.text},
                      {"mend", finding.mend}});
      continue;
    }
    PrintOutput(EscapeForTerminal(fmt::format("{}  {:<18} {}\n", kMarks[static_cast<size_t>(finding.grade)],
                                              finding.about, finding.text)));
    if (!finding.mend.empty())
      PrintOutput(EscapeForTerminal(fmt::format("{:23}mend: {}\n", "", finding.mend)));
  }
  if (arguments.Has("json"))
    PrintOutput(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  return is_faulty ? 1 : 0;
}

}  // namespace heddle::cluster::cli
