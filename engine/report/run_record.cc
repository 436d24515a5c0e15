// SPDX-License-Identifier: Apache-2.0
#include "engine/report/run_record.h"

#include <set>
#include <utility>

#include "compiler/library/library_files.h"
#include "core/call_site.h"

namespace heddle::engine {

RunRecord MakeRunRecord(const std::string& script, const std::string& text, const SessionOptions& options,
                        const Status& status, std::vector<SessionStatistics> statistics,
                        std::vector<RankRecord> records,
                        const std::function<std::optional<std::string>(const std::string& file)>& load) {
  RunRecord record;
  record.script = script;
  record.sources[script] = text;
  if (!status.ok()) record.error = status.ToString();
  record.ranks = options.ranks;
  record.threads = options.threads;
  record.fusion = options.fusion;
  record.statistics = std::move(statistics);
  record.records = std::move(records);
  std::set<std::string> files;
  for (const SessionStatistics& rank : record.statistics)
    for (const auto& [key, place] : rank.places) {
      files.insert(place.file);
      for (const PlaceStatistics::Call& call : place.calls) files.insert(call.file);
    }
  for (const std::string& file : files) {
    if (file.empty() || record.sources.contains(file)) continue;
    if (const compiler::LibraryFile* own = compiler::FindLibraryPath(file)) {
      record.sources[file] = std::string(own->text);
    } else if (load) {
      if (std::optional<std::string> found = load(file)) record.sources[file] = *std::move(found);
    }
  }
  return record;
}

}  // namespace heddle::engine
