// SPDX-License-Identifier: Apache-2.0
#include "engine/session/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace heddle::engine {
namespace {

struct Field {
  const char* name;
  int64_t SessionStatistics::* value;
};
constexpr Field kFields[] = {
    {"seed", &SessionStatistics::seed},
    {"elapsed_ns", &SessionStatistics::elapsed_ns},
    {"plans_ahead", &SessionStatistics::plans_ahead},
    {"plans_compiled", &SessionStatistics::plans_compiled},
    {"planning_ns", &SessionStatistics::planning_ns},
    {"fusion_ns", &SessionStatistics::fusion_ns},
    {"fusion_costed", &SessionStatistics::fusion_costed},
    {"plans_reused", &SessionStatistics::plans_reused},
    {"scalar_blocks", &SessionStatistics::scalar_blocks},
    {"direct_parts", &SessionStatistics::direct_parts},
    {"direct_compiled", &SessionStatistics::direct_compiled},
    {"rows_held", &SessionStatistics::rows_held},
    {"bytes_moved", &SessionStatistics::bytes_moved},
    {"matrix_operators", &SessionStatistics::matrix_operators},
    {"bytes_sent", &SessionStatistics::bytes_sent},
    {"bytes_received", &SessionStatistics::bytes_received},
    {"messages_sent", &SessionStatistics::messages_sent},
    {"code_compiled", &SessionStatistics::code_compiled},
    {"code_from_disk", &SessionStatistics::code_from_disk},
    {"code_ns", &SessionStatistics::code_ns},
    {"fusion_fallbacks", &SessionStatistics::fusion_fallbacks},
    {"peak_bytes", &SessionStatistics::peak_bytes},
};

struct Rate {
  const char* name;
  double ops::MachineConstants::* value;
};
constexpr Rate kRates[] = {
    {"read_bytes_per_ns", &ops::MachineConstants::read_bytes_per_ns},
    {"write_bytes_per_ns", &ops::MachineConstants::write_bytes_per_ns},
    {"work_per_ns", &ops::MachineConstants::work_per_ns},
    {"send_bytes_per_ns", &ops::MachineConstants::send_bytes_per_ns},
    {"operator_ns", &ops::MachineConstants::operator_ns},
};

double Megabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

// One line a fused operator, over all workers: achieved bandwidth is bytes of inputs and results by time.
std::string FusedTable(const std::vector<SessionStatistics>& ranks) {
  std::map<std::string, FusedOperatorStatistics> total;
  int64_t compiled = 0, from_disk = 0, code_ns = 0, fallbacks = 0;
  for (const SessionStatistics& rank : ranks) {
    compiled += rank.code_compiled;
    from_disk += rank.code_from_disk;
    code_ns = std::max(code_ns, rank.code_ns);
    fallbacks += rank.fusion_fallbacks;
    std::map<std::string, int64_t> own_ns;  // Those of one label run one after the other.
    for (const FusedOperatorStatistics& own : rank.fused) {
      FusedOperatorStatistics& entry = total[own.label];
      entry.calls += own.calls;
      entry.kernel_ns = std::max(entry.kernel_ns, own_ns[own.label] += own.kernel_ns);
      entry.bytes += own.bytes;
      entry.interpreted |= own.interpreted;
    }
  }
  if (total.empty()) return "";
  std::vector<std::pair<std::string, FusedOperatorStatistics>> sorted(total.begin(), total.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.kernel_ns > b.second.kernel_ns; });
  std::string out = fmt::format(
      "Fused operators: {} regions compiled, {} from disk, {:.1f} ms, {} interpreted for want of code\n",
      compiled, from_disk, static_cast<double>(code_ns) / 1e6, fallbacks);
  if (ranks.size() > 1)
    out += fmt::format("Of {} workers: calls and MB of all, time of the one that took the longest\n",
                       ranks.size());
  out += fmt::format("{:<48}{:>8}{:>14}{:>14}{:>14}\n", "Fused operator", "calls", "time ms", "MB", "GB/s");
  for (const auto& [label, entry] : sorted)
    out += fmt::format(
        "{:<48}{:>8}{:>14.3f}{:>14.3f}{:>14.2f}{}\n", label, entry.calls,
        static_cast<double>(entry.kernel_ns) / 1e6, Megabytes(entry.bytes),
        entry.kernel_ns == 0 ? 0.0 : static_cast<double>(entry.bytes) / static_cast<double>(entry.kernel_ns),
        entry.interpreted ? "  interpreted" : "");
  return out;
}

// Each body once, in the order in which they were made.
std::string RecursionLines(const std::vector<SessionStatistics>& ranks) {
  std::vector<std::string> lines;
  for (const SessionStatistics& rank : ranks)
    for (const std::string& line : rank.recursions)
      if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  std::string out;
  for (const std::string& line : lines) out += fmt::format("Recursion {}\n", line);
  std::map<std::string, int64_t> forms;
  for (const SessionStatistics& rank : ranks)
    for (const auto& [form, times] : rank.recursion_forms) forms[form] += times;
  for (const auto& [form, times] : forms)
    out += fmt::format("Recursion {}: {} time{}\n", form, times, times == 1 ? "" : "s");
  return out;
}

}  // namespace

void SessionStatistics::Add(const SessionStatistics& other) {
  scalar_blocks += other.scalar_blocks;
  direct_parts += other.direct_parts;
  direct_compiled += other.direct_compiled;
  bytes_moved += other.bytes_moved;
  matrix_operators += other.matrix_operators;
  rows_held = std::max(rows_held, other.rows_held);
  recursions.insert(recursions.end(), other.recursions.begin(), other.recursions.end());
  for (const auto& [form, times] : other.recursion_forms) recursion_forms[form] += times;
  for (const auto& [name, theirs] : other.operators) {
    OperatorStatistics& own = operators[name];
    own.acts += theirs.acts;
    own.kernel_ns += theirs.kernel_ns;
    own.rows += theirs.rows;
    own.bytes_in += theirs.bytes_in;
  }
}

std::string ToText(const std::vector<SessionStatistics>& ranks, int most_operators) {
  if (ranks.empty()) return "";
  const SessionStatistics& first = ranks.front();
  std::string out = fmt::format(
      "Elapsed {:.3f} s, {} scalar blocks, {} small ones run directly ({} compiled), seed {}\n"
      "Plans: {} made in {:.1f} ms ({:.1f} ms chose fused operators, {} choices costed), {} made ahead, {} reused\n",
      static_cast<double>(first.elapsed_ns) / 1e9, first.scalar_blocks, first.direct_parts,
      first.direct_compiled, first.seed, first.plans_compiled, static_cast<double>(first.planning_ns) / 1e6,
      static_cast<double>(first.fusion_ns) / 1e6, first.fusion_costed, first.plans_ahead, first.plans_reused);
  for (const SessionStatistics& rank : ranks)
    out += fmt::format(
        "Worker {}: rows held {}, sent {:.3f} MB, received {:.3f} MB, {} messages, peak memory {:.1f} MB\n",
        rank.rank, rank.rows_held, Megabytes(rank.bytes_sent), Megabytes(rank.bytes_received),
        rank.messages_sent, Megabytes(rank.peak_bytes));

  out += fmt::format("Plans chosen by {}\n", ops::ToText(first.constants));

  std::map<std::string, OperatorStatistics> total;
  for (const SessionStatistics& rank : ranks) {
    for (const auto& [name, operator_statistics] : rank.operators) {
      OperatorStatistics& entry = total[name];
      entry.acts += operator_statistics.acts;
      entry.kernel_ns += operator_statistics.kernel_ns;
      entry.rows += operator_statistics.rows;
      entry.bytes_in += operator_statistics.bytes_in;
    }
  }
  std::vector<std::pair<std::string, OperatorStatistics>> sorted(total.begin(), total.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.kernel_ns > b.second.kernel_ns; });
  if (sorted.size() > static_cast<size_t>(most_operators)) sorted.resize(static_cast<size_t>(most_operators));
  out += fmt::format("{:<24}{:>10}{:>14}{:>14}{:>14}\n", "Operator", "count", "time ms", "rows", "MB pulled");
  for (const auto& [name, entry] : sorted)
    out += fmt::format("{:<24}{:>10}{:>14.3f}{:>14}{:>14.3f}\n", name, entry.acts,
                       static_cast<double>(entry.kernel_ns) / 1e6, entry.rows, Megabytes(entry.bytes_in));
  return out + FusedTable(ranks) + RecursionLines(ranks);
}

std::string ToJson(const SessionStatistics& statistics) {
  nlohmann::ordered_json json;
  json["rank"] = statistics.rank;
  json["ranks"] = statistics.ranks;
  for (const Field& field : kFields) json[field.name] = statistics.*field.value;
  json["constants"] = {{"measured", statistics.constants.measured}};
  for (const Rate& rate : kRates) json["constants"][rate.name] = statistics.constants.*rate.value;
  json["operators"] = nlohmann::ordered_json::object();
  for (const auto& [name, entry] : statistics.operators)
    json["operators"][name] = {{"acts", entry.acts},
                               {"kernel_ns", entry.kernel_ns},
                               {"rows", entry.rows},
                               {"bytes_in", entry.bytes_in}};
  json["fused"] = nlohmann::ordered_json::array();
  for (const FusedOperatorStatistics& entry : statistics.fused)
    json["fused"].push_back({{"label", entry.label},
                             {"calls", entry.calls},
                             {"kernel_ns", entry.kernel_ns},
                             {"bytes", entry.bytes},
                             {"interpreted", entry.interpreted}});
  json["recursions"] = statistics.recursions;
  json["recursion_forms"] = statistics.recursion_forms;
  // Labels have names of scripts, which may be any bytes.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Result<SessionStatistics> ParseStatistics(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return DataLoss("statistics are not a JSON object");
  SessionStatistics statistics;
  auto number = [](const nlohmann::json& object, const char* name) {
    auto found = object.find(name);
    return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : int64_t{0};
  };
  statistics.rank = static_cast<int>(number(json, "rank"));
  statistics.ranks = static_cast<int>(number(json, "ranks"));
  for (const Field& field : kFields) statistics.*field.value = number(json, field.name);
  if (const auto constants = json.find("constants"); constants != json.end() && constants->is_object()) {
    const auto measured = constants->find("measured");
    statistics.constants.measured = measured != constants->end() && measured->is_boolean() && *measured;
    for (const Rate& rate : kRates)
      if (const auto found = constants->find(rate.name); found != constants->end() && found->is_number())
        statistics.constants.*rate.value = found->get<double>();
  }
  if (const auto fused = json.find("fused"); fused != json.end() && fused->is_array())
    for (const auto& entry : *fused)
      if (entry.is_object())
        statistics.fused.push_back({entry.value("label", ""), number(entry, "calls"),
                                    number(entry, "kernel_ns"), number(entry, "bytes"),
                                    entry.value("interpreted", false)});
  if (const auto recursions = json.find("recursions"); recursions != json.end() && recursions->is_array())
    for (const auto& text : *recursions)
      if (text.is_string()) statistics.recursions.push_back(text.get<std::string>());
  if (const auto forms = json.find("recursion_forms"); forms != json.end() && forms->is_object())
    for (const auto& [form, times] : forms->items())
      if (times.is_number_integer()) statistics.recursion_forms[form] = times.get<int64_t>();
  auto operators = json.find("operators");
  if (operators != json.end() && operators->is_object())
    for (const auto& [name, entry] : operators->items())
      statistics.operators[name] = {number(entry, "acts"), number(entry, "kernel_ns"), number(entry, "rows"),
                                    number(entry, "bytes_in")};
  return statistics;
}

}  // namespace heddle::engine
