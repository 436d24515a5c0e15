// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/share_report.h"

#include <cstring>
#include <utility>

#include "core/programs/text_format.h"

namespace heddle::engine {

std::string ShareReport::ToText() const {
  std::string text = fmt::format("{} iteration {}\n", has_failed ? "failed" : "done", iteration_ns);
  for (const Change& change : changes) {
    text += fmt::format("{} cells {}", change.is_touched ? "assigned" : "left", change.cells);
    AppendInfo(change.info, &text);
    text += '\n';
  }
  return text;
}

Result<ShareReport> ShareReport::Parse(std::string_view text) {
  TextReader reader(text, "report of a share");
  ShareReport report;
  report.has_failed = reader.AcceptWord("failed");
  if (!report.has_failed) reader.Expect("done");
  reader.Expect("iteration");
  report.iteration_ns = reader.Integer();
  while (reader.ok() && !reader.AtEnd()) {
    Change& change = report.changes.emplace_back();
    change.is_touched = reader.AcceptWord("assigned");
    if (!change.is_touched) reader.Expect("left");
    reader.Expect("cells");
    change.cells = reader.Integer();
    change.info = reader.Info();
  }
  if (!reader.ok()) return reader.status();
  return report;
}

std::string EncodeTexts(const std::vector<PrintedText>& texts) {
  std::string bytes;
  for (const PrintedText& printed : texts) {
    const uint64_t head[2] = {printed.iteration, printed.text.size()};
    bytes.append(reinterpret_cast<const char*>(head), sizeof head);
    bytes.append(printed.text);
  }
  return bytes;
}

Status DecodeTexts(std::string_view bytes, std::vector<PrintedText>* texts) {
  while (!bytes.empty()) {
    uint64_t head[2];
    if (bytes.size() < sizeof head) return Internal("what iterations printed arrived cut off");
    std::memcpy(head, bytes.data(), sizeof head);
    bytes.remove_prefix(sizeof head);
    if (bytes.size() < head[1]) return Internal("what iterations printed arrived cut off");
    texts->push_back({head[0], std::string(bytes.substr(0, head[1]))});
    bytes.remove_prefix(head[1]);
  }
  return OkStatus();
}

}  // namespace heddle::engine
