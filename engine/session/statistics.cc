// SPDX-License-Identifier: Apache-2.0
#include "engine/session/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "engine/machine/machine_constants.h"

namespace heddle::engine {
namespace {

struct Field {
  const char* name;
  int64_t SessionStatistics::*value;
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
    {"bytes_shared", &SessionStatistics::bytes_shared},
    {"messages_sent", &SessionStatistics::messages_sent},
    {"code_compiled", &SessionStatistics::code_compiled},
    {"code_from_disk", &SessionStatistics::code_from_disk},
    {"code_ns", &SessionStatistics::code_ns},
    {"fusion_fallbacks", &SessionStatistics::fusion_fallbacks},
    {"peak_bytes", &SessionStatistics::peak_bytes},
    {"planned_bytes", &SessionStatistics::planned_bytes},
    {"spilled_bytes", &SessionStatistics::spilled_bytes},
    {"unspilled_bytes", &SessionStatistics::unspilled_bytes},
    {"operators_ns", &SessionStatistics::operators_ns},
};

struct Rate {
  const char* name;
  double ops::MachineConstants::*value;
};
constexpr Rate kRates[] = {
    {"read_bytes_per_ns", &ops::MachineConstants::read_bytes_per_ns},
    {"write_bytes_per_ns", &ops::MachineConstants::write_bytes_per_ns},
    {"work_per_ns", &ops::MachineConstants::work_per_ns},
    {"operator_ns", &ops::MachineConstants::operator_ns},
};

std::string KeyOf(const PlaceStatistics& place) {
  std::string key = fmt::format("{}\n{}:{}:{}", place.name, place.file, place.line, place.column);
  for (const PlaceStatistics::Call& call : place.calls)
    key += fmt::format("\n{} {}:{}", call.function, call.file, call.line);
  return key;
}

nlohmann::ordered_json ToJson(const PlaceStatistics& place) {
  nlohmann::ordered_json json = {{"name", place.name},     {"file", place.file},  {"line", place.line},
                                 {"column", place.column}, {"acts", place.acts},  {"ns", place.ns},
                                 {"rows", place.rows},     {"bytes", place.bytes}};
  for (const PlaceStatistics::Call& call : place.calls)
    json["calls"].push_back({{"function", call.function}, {"file", call.file}, {"line", call.line}});
  return json;
}

double Megabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

// One line a fused operator, over all workers: achieved bandwidth is bytes of inputs and results by time.
std::string FusedTable(const std::vector<SessionStatistics>& ranks) {
  int64_t compiled = 0, from_disk = 0, code_ns = 0, fallbacks = 0;
  for (const SessionStatistics& rank : ranks) {
    compiled += rank.code_compiled;
    from_disk += rank.code_from_disk;
    code_ns = std::max(code_ns, rank.code_ns);
    fallbacks += rank.fusion_fallbacks;
  }
  const std::vector<FusedOperatorStatistics> total = TotalFused(ranks);
  if (total.empty()) return "";
  std::string out = fmt::format(
      "Fused operators: {} regions compiled, {} from disk, {:.1f} ms, {} interpreted for want of code\n",
      compiled, from_disk, static_cast<double>(code_ns) / 1e6, fallbacks);
  if (ranks.size() > 1)
    out += fmt::format("Of {} workers: calls and MB of all, time of the one that took the longest\n",
                       ranks.size());
  out += fmt::format("{:<48}{:>8}{:>14}{:>14}{:>14}\n", "Fused operator", "calls", "time ms", "MB", "GB/s");
  for (const FusedOperatorStatistics& entry : total)
    out += fmt::format(
        "{:<48}{:>8}{:>14.3f}{:>14.3f}{:>14.2f}{}\n", entry.label, entry.calls,
        static_cast<double>(entry.kernel_ns) / 1e6, Megabytes(entry.bytes),
        entry.kernel_ns == 0 ? 0.0 : static_cast<double>(entry.bytes) / static_cast<double>(entry.kernel_ns),
        entry.interpreted ? "  interpreted" : "");
  return out;
}

// Operators that ran on one worker although an operand was on all.
std::string WholeLines(const std::vector<SessionStatistics>& ranks) {
  std::string out;
  for (const SessionStatistics& rank : ranks)
    for (const auto& [place, times] : rank.ran_whole)
      out +=
          fmt::format("Whole on worker {}: {}, {} time{}\n", rank.rank, place, times, times == 1 ? "" : "s");
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

PlaceStatistics& SessionStatistics::PlaceOf(const std::string& name, const SourcePosition& position,
                                            const std::vector<CallSite>& calls) {
  PlaceStatistics place{
      .name = name, .file = position.file, .line = position.line, .column = position.column};
  for (const std::vector<CallSite>& on_the_way : {CallsAround(position), calls})
    for (const CallSite& call : on_the_way)
      place.calls.push_back({call.function, call.position.file, call.position.line});
  return places.try_emplace(KeyOf(place), std::move(place)).first->second;
}

void SessionStatistics::Add(const SessionStatistics& other) {
  scalar_blocks += other.scalar_blocks;
  direct_parts += other.direct_parts;
  direct_compiled += other.direct_compiled;
  bytes_moved += other.bytes_moved;
  matrix_operators += other.matrix_operators;
  operators_ns += other.operators_ns;
  for (const auto& [key, theirs] : other.places) {
    const auto [own, is_new] = places.try_emplace(key, theirs);
    if (is_new) continue;
    own->second.acts += theirs.acts;
    own->second.ns += theirs.ns;
    own->second.rows += theirs.rows;
    own->second.bytes += theirs.bytes;
  }
  rows_held = std::max(rows_held, other.rows_held);
  planned_bytes = std::max(planned_bytes, other.planned_bytes);
  compressions.insert(compressions.end(), other.compressions.begin(), other.compressions.end());
  recursions.insert(recursions.end(), other.recursions.begin(), other.recursions.end());
  for (const auto& [form, times] : other.recursion_forms) recursion_forms[form] += times;
  for (const auto& [place, times] : other.ran_whole) ran_whole[place] += times;
  for (const auto& [name, theirs] : other.operators) {
    OperatorStatistics& own = operators[name];
    own.acts += theirs.acts;
    own.kernel_ns += theirs.kernel_ns;
    own.rows += theirs.rows;
    own.bytes_in += theirs.bytes_in;
  }
}

std::vector<std::pair<std::string, OperatorStatistics>> TotalOperators(
    const std::vector<SessionStatistics>& ranks) {
  std::map<std::string, OperatorStatistics> total;
  for (const SessionStatistics& rank : ranks) {
    for (const auto& [name, own] : rank.operators) {
      OperatorStatistics& entry = total[name];
      entry.acts += own.acts;
      entry.kernel_ns += own.kernel_ns;
      entry.rows += own.rows;
      entry.bytes_in += own.bytes_in;
    }
  }
  std::vector<std::pair<std::string, OperatorStatistics>> sorted(total.begin(), total.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.kernel_ns > b.second.kernel_ns; });
  return sorted;
}

std::vector<FusedOperatorStatistics> TotalFused(const std::vector<SessionStatistics>& ranks) {
  std::map<std::string, FusedOperatorStatistics> total;
  for (const SessionStatistics& rank : ranks) {
    std::map<std::string, int64_t> own_ns;  // Those of one label run one after the other.
    for (const FusedOperatorStatistics& own : rank.fused) {
      FusedOperatorStatistics& entry = total[own.label];
      entry.label = own.label;
      entry.calls += own.calls;
      entry.kernel_ns = std::max(entry.kernel_ns, own_ns[own.label] += own.kernel_ns);
      entry.bytes += own.bytes;
      entry.interpreted |= own.interpreted;
    }
  }
  std::vector<FusedOperatorStatistics> sorted;
  for (auto& [label, entry] : total) sorted.push_back(std::move(entry));
  std::ranges::stable_sort(sorted, std::greater<>(), &FusedOperatorStatistics::kernel_ns);
  return sorted;
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
        "Worker {}: rows held {}, sent {:.3f} MB, received {:.3f} MB ({:.3f} through shared memory), {} messages, peak memory {:.1f} MB (plans said {:.1f} MB)\n",
        rank.rank, rank.rows_held, Megabytes(rank.bytes_sent), Megabytes(rank.bytes_received),
        Megabytes(rank.bytes_shared), rank.messages_sent, Megabytes(rank.peak_bytes),
        Megabytes(rank.planned_bytes));
  for (const SessionStatistics& rank : ranks)
    if (rank.spilled_bytes > 0 || rank.unspilled_bytes > 0)
      out += fmt::format("Worker {}: {:.1f} MB of panels written to spill files, {:.1f} MB read from them\n",
                         rank.rank, Megabytes(rank.spilled_bytes), Megabytes(rank.unspilled_bytes));

  for (const SessionStatistics& rank : ranks)
    for (const std::string& text : rank.compressions)
      out += fmt::format("Worker {}: compressed in {}\n", rank.rank, text);
  out += fmt::format("Plans chosen by {}\n", ops::ToText(first.constants));
  if (first.ranks > 1) out += fmt::format("Links between workers, {}\n", ops::ToText(first.constants.links));

  std::vector<std::pair<std::string, OperatorStatistics>> sorted = TotalOperators(ranks);
  if (sorted.size() > static_cast<size_t>(most_operators)) sorted.resize(static_cast<size_t>(most_operators));
  out += fmt::format("{:<24}{:>10}{:>14}{:>14}{:>14}\n", "Operator", "count", "time ms", "rows", "MB pulled");
  for (const auto& [name, entry] : sorted)
    out += fmt::format("{:<24}{:>10}{:>14.3f}{:>14}{:>14.3f}\n", name, entry.acts,
                       static_cast<double>(entry.kernel_ns) / 1e6, entry.rows, Megabytes(entry.bytes_in));
  return out + WholeLines(ranks) + FusedTable(ranks) + RecursionLines(ranks);
}

namespace {

int64_t NumberIn(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : int64_t{0};
}

std::string TextIn(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

PlaceStatistics ParsePlace(const nlohmann::json& json) {
  PlaceStatistics place;
  place.name = TextIn(json, "name");
  place.file = TextIn(json, "file");
  place.line = static_cast<int32_t>(NumberIn(json, "line"));
  place.column = static_cast<int32_t>(NumberIn(json, "column"));
  place.acts = NumberIn(json, "acts");
  place.ns = NumberIn(json, "ns");
  place.rows = NumberIn(json, "rows");
  place.bytes = NumberIn(json, "bytes");
  if (const auto calls = json.find("calls"); calls != json.end() && calls->is_array())
    for (const auto& call : *calls)
      if (call.is_object())
        place.calls.push_back(
            {TextIn(call, "function"), TextIn(call, "file"), static_cast<int32_t>(NumberIn(call, "line"))});
  return place;
}

}  // namespace

std::string ToJson(const SessionStatistics& statistics) {
  nlohmann::ordered_json json;
  json["rank"] = statistics.rank;
  json["ranks"] = statistics.ranks;
  for (const Field& field : kFields) json[field.name] = statistics.*field.value;
  json["constants"] = {{"measured", statistics.constants.measured}};
  for (const Rate& rate : kRates) json["constants"][rate.name] = statistics.constants.*rate.value;
  json["constants"]["links"] = EncodeLinks(statistics.constants.links);
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
  for (const auto& [key, place] : statistics.places) json["places"].push_back(ToJson(place));
  json["ran_whole"] = statistics.ran_whole;
  json["compressions"] = statistics.compressions;
  json["recursions"] = statistics.recursions;
  json["recursion_forms"] = statistics.recursion_forms;
  // Labels have names of scripts, which may be any bytes.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Result<SessionStatistics> ParseStatistics(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return DataLoss("statistics are not a JSON object");
  SessionStatistics statistics;
  const auto number = NumberIn;
  statistics.rank = static_cast<int>(number(json, "rank"));
  statistics.ranks = static_cast<int>(number(json, "ranks"));
  for (const Field& field : kFields) statistics.*field.value = number(json, field.name);
  if (const auto constants = json.find("constants"); constants != json.end() && constants->is_object()) {
    const auto measured = constants->find("measured");
    statistics.constants.measured = measured != constants->end() && measured->is_boolean() && *measured;
    for (const Rate& rate : kRates)
      if (const auto found = constants->find(rate.name); found != constants->end() && found->is_number())
        statistics.constants.*rate.value = found->get<double>();
    statistics.constants.links = DecodeLinks(TextIn(*constants, "links")).value_or(ops::LinkRates());
  }
  if (const auto fused = json.find("fused"); fused != json.end() && fused->is_array())
    for (const auto& entry : *fused)
      if (entry.is_object())
        statistics.fused.push_back({entry.value("label", ""), number(entry, "calls"),
                                    number(entry, "kernel_ns"), number(entry, "bytes"),
                                    entry.value("interpreted", false)});
  const auto read_texts = [&json](const char* name, std::vector<std::string>* texts) {
    if (const auto found = json.find(name); found != json.end() && found->is_array())
      for (const auto& text : *found)
        if (text.is_string()) texts->push_back(text.get<std::string>());
  };
  read_texts("compressions", &statistics.compressions);
  read_texts("recursions", &statistics.recursions);
  const auto read_times = [&json](const char* name, std::map<std::string, int64_t>* times_of) {
    if (const auto found = json.find(name); found != json.end() && found->is_object())
      for (const auto& [of, times] : found->items())
        if (times.is_number_integer()) (*times_of)[of] = times.get<int64_t>();
  };
  read_times("recursion_forms", &statistics.recursion_forms);
  read_times("ran_whole", &statistics.ran_whole);
  if (const auto places = json.find("places"); places != json.end() && places->is_array())
    for (const auto& entry : *places)
      if (entry.is_object()) {
        PlaceStatistics place = ParsePlace(entry);
        statistics.places.emplace(KeyOf(place), std::move(place));
      }
  auto operators = json.find("operators");
  if (operators != json.end() && operators->is_object())
    for (const auto& [name, entry] : operators->items())
      statistics.operators[name] = {number(entry, "acts"), number(entry, "kernel_ns"), number(entry, "rows"),
                                    number(entry, "bytes_in")};
  return statistics;
}

}  // namespace heddle::engine
