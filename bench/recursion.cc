// SPDX-License-Identifier: Apache-2.0
#include "bench/recursion.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/base/probe.h"
#include "core/status.h"
#include "ops/recursion/structure/linearize.h"

namespace heddle::bench {
namespace {

// left, right, token, first and last child in the list, which is the column behind them, label.
using Row = std::array<double, 6>;

// Trees one behind the other: children by their rows, counted from 1.
struct Trees {
  std::vector<Row> rows;
  std::vector<int64_t> roots;

  int64_t Add(int64_t left, int64_t right, int64_t token, int64_t label = 1) {
    Row row = {static_cast<double>(left), static_cast<double>(right), static_cast<double>(token), 1, 0,
               static_cast<double>(label)};
    rows.push_back(row);
    Row& node = rows.back();
    for (const int64_t child : {left, right}) {
      if (child == 0) continue;
      if (node[4] == 0) node[3] = static_cast<double>(listed + 1);
      node[4] = static_cast<double>(++listed);
      list.push_back(static_cast<double>(child));
    }
    return static_cast<int64_t>(rows.size());
  }
  int64_t listed = 0;
  std::vector<double> list;
};

// "(3 (2 It) (4 works))": labels count from 1, words get numbers.
class BracketReader {
 public:
  explicit BracketReader(Trees* trees) : trees_(*trees) {}
  void Read(const std::string& line) {
    text_ = line;
    at_ = 0;
    if (line.find('(') != std::string::npos) trees_.roots.push_back(Node());
  }

 private:
  std::string Word() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '(' && text_[at_] != ')') ++at_;
    return text_.substr(begin, at_ - begin);
  }
  int64_t Node() {
    at_ = text_.find('(', at_) + 1;
    const int64_t label = 1 + std::atoi(Word().c_str());
    while (text_[at_] == ' ') ++at_;
    int64_t node = 0;
    if (text_[at_] == '(') {
      const int64_t left = Node(), right = Node();
      node = trees_.Add(left, right, 0, label);
    } else {
      const auto [word, is_new] = words_.try_emplace(Word(), static_cast<int64_t>(words_.size()) + 1);
      node = trees_.Add(0, 0, word->second, label);
    }
    at_ = text_.find(')', at_) + 1;
    return node;
  }

  Trees& trees_;
  std::string text_;
  size_t at_ = 0;
  std::map<std::string, int64_t> words_;
};

Result<Trees> ReadTrees(const std::string& path) {
  Trees trees;
  BracketReader reader(&trees);
  const std::string command = fmt::format("{} '{}'", path.ends_with(".gz") ? "zcat" : "cat", path);
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return NotFound("{} cannot be read", path);
  char* line = nullptr;
  size_t room = 0;
  while (::getline(&line, &room, pipe) > 0) reader.Read(line);
  std::free(line);
  ::pclose(pipe);
  if (trees.roots.empty()) return NotFound("{} has no trees", path);
  return trees;
}

// Binary trees of the Stanford Sentiment Treebank's sizes: 19 leaves on average, split at random.
Trees RandomTrees(int count) {
  Trees trees;
  std::mt19937 random(7);
  std::geometric_distribution<int> length(1.0 / 16);
  const auto grow = [&](const auto& self, int leaves) -> int64_t {
    if (leaves == 1) return trees.Add(0, 0, 1 + static_cast<int64_t>(random() % 5000), 3);
    const int left = 1 + static_cast<int>(random() % static_cast<unsigned>(leaves - 1));
    const int64_t l = self(self, left), r = self(self, leaves - left);
    return trees.Add(l, r, 0, 1 + l % 5);
  };
  for (int i = 0; i < count; ++i) trees.roots.push_back(grow(grow, 3 + std::min(50, length(random))));
  return trees;
}

Trees PerfectTrees(int count, int height) {
  Trees trees;
  int64_t token = 0;
  const auto grow = [&](const auto& self, int h) -> int64_t {
    if (h == 0) return trees.Add(0, 0, 1 + token++ % 5000);
    const int64_t l = self(self, h - 1), r = self(self, h - 1);
    return trees.Add(l, r, 0);
  };
  for (int i = 0; i < count; ++i) trees.roots.push_back(grow(grow, height));
  return trees;
}

Trees Grids(int count, int side) {
  Trees trees;
  for (int g = 0; g < count; ++g) {
    const auto first = static_cast<int64_t>(trees.rows.size());
    for (int i = 0; i < side; ++i)
      for (int j = 0; j < side; ++j)
        trees.Add(i == 0 ? 0 : first + (i - 1) * side + j + 1, j == 0 ? 0 : first + i * side + j, 1);
    trees.roots.push_back(static_cast<int64_t>(trees.rows.size()));
  }
  return trees;
}

Trees Chains(int count, int length) {
  Trees trees;
  for (int c = 0; c < count; ++c) {
    int64_t before = 0;
    for (int i = 0; i < length; ++i) before = trees.Add(before, 0, 1);
    trees.roots.push_back(before);
  }
  return trees;
}

void WriteTrees(const Trees& trees, int64_t batches, int64_t batch, const std::string& folder) {
  std::ofstream rows(folder + "/T.csv"), roots(folder + "/R.csv");
  // Children of node n stand in the list where it says: the list may be longer than there are nodes (grids).
  const size_t count = std::max(trees.rows.size(), trees.list.size());
  for (size_t i = 0; i < count; ++i) {
    const Row row = i < trees.rows.size() ? trees.rows[i] : Row{};
    rows << fmt::format("{},{},{},{},{},{},{}\n", row[0], row[1], row[2], row[3], row[4],
                        i < trees.list.size() ? trees.list[i] : 0.0, row[5]);
  }
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t k = 0; k < batch; ++k)
      roots << trees.roots[static_cast<size_t>(b * batch + k) % trees.roots.size()]
            << (k + 1 < batch ? ',' : '\n');
}

struct Outcome {
  double ms = 0;
  std::string sum;
};

Result<Outcome> RunModel(const std::string& model, const std::string& folder, int hidden, int rounds,
                         const BenchOptions& options, bool interprets) {
  const std::filesystem::path bin = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string script = (bin / "../../bench/scripts/recursion" / (model + ".dml")).lexically_normal();
  const std::string command = fmt::format(
      "'{}' run --precision single --threads {} {} '{}' -nvargs 'T={}/T.csv' 'R={}/R.csv' H={} rounds={} 2>&1",
      (bin / "heddle").string(), options.threads, interprets ? "--disable-pass recursion" : "", script,
      folder, folder, hidden, rounds);
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return Internal("heddle does not start");
  std::string text;
  char part[4096];
  for (size_t n; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, n);
  const int status = ::pclose(pipe);
  const size_t ms = text.find("ms "), sum = text.find("sum ");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || ms == std::string::npos || sum == std::string::npos)
    return Internal("{} failed:\n{}", model, text);
  return Outcome{std::atof(text.c_str() + ms + 3), text.substr(sum + 4, text.find('\n', sum) - sum - 4)};
}

void Print(const std::string& model, const std::string& trees, int hidden, int64_t batch, double nodes,
           const char* way, double ms, const BenchOptions& options) {
  if (options.json)
    std::printf(
        "{\"bench\":\"recursion\",\"case\":\"%s\",\"trees\":\"%s\",\"hidden\":%d,\"batch\":%ld,\"way\":\"%s\","
        "\"ms\":%.3f,\"us_per_node\":%.3f,\"threads\":%d}\n",
        model.c_str(), trees.c_str(), hidden, batch, way, ms, 1e3 * ms / nodes, options.threads);
  else
    std::printf("%-10s %-8s h %3d  batch %4ld  %-12s %9.3f ms  %8.3f us a node\n", model.c_str(),
                trees.c_str(), hidden, batch, way, ms, 1e3 * ms / nodes);
  std::fflush(stdout);
}

struct Case {
  std::string model, trees;
  std::vector<int> hidden;
};

Status RunCase(const Case& one, const Trees& trees, const std::string& folder, const BenchOptions& options) {
  for (const int hidden : one.hidden)
    for (const int64_t batch : {1, 10, 64}) {
      const auto fitting = static_cast<int64_t>(trees.roots.size()) / batch;
      const int64_t batches = std::clamp<int64_t>(fitting, 1, batch == 1 ? 100 : 20);
      const double nodes = static_cast<double>(trees.rows.size()) / static_cast<double>(trees.roots.size()) *
                           static_cast<double>(batch);
      WriteTrees(trees, batches, batch, folder);
      HEDDLE_ASSIGN_OR_RETURN(const Outcome batched,
                              RunModel(one.model, folder, hidden, options.rounds, options, false));
      Print(one.model, one.trees, hidden, batch, nodes, "batched", batched.ms, options);
      if (batch > 10) continue;
      // Without memory of nodes a grid is as many calls as ways through it.
      if (one.trees == "grids") continue;
      HEDDLE_ASSIGN_OR_RETURN(const Outcome interpreted,
                              RunModel(one.model, folder, hidden, 1, options, true));
      if (batched.sum != interpreted.sum)
        return Internal("{}: batches give {}, the interpreter {}", one.model, batched.sum, interpreted.sum);
      Print(one.model, one.trees, hidden, batch, nodes, "interpreted", interpreted.ms, options);
    }
  return OkStatus();
}

// A step for each full batch of the sentences.
Status RunTraining(const Trees& trees, const std::string& folder, const BenchOptions& options) {
  constexpr int kHidden = 128;
  for (const int64_t batch : {25, 64, 100}) {
    const auto sentences = static_cast<int64_t>(trees.roots.size());
    WriteTrees(trees, std::max<int64_t>(1, sentences / batch), batch, folder);
    HEDDLE_ASSIGN_OR_RETURN(const Outcome step, RunModel("train", folder, kHidden, 1, options, false));
    const double epoch = step.ms / 1e3 * static_cast<double>(sentences) / static_cast<double>(batch);
    if (options.json)
      std::printf(
          "{\"bench\":\"recursion\",\"case\":\"train\",\"hidden\":%d,\"batch\":%ld,\"trees\":%ld,"
          "\"ms_per_step\":%.3f,\"epoch_s\":%.3f,\"threads\":%d}\n",
          kHidden, batch, sentences, step.ms, epoch, options.threads);
    else
      std::printf("train      treelstm h %3d  batch %4ld  %9.3f ms a step, %8.3f s an epoch of %ld trees\n",
                  kHidden, batch, step.ms, epoch, sentences);
    std::fflush(stdout);
  }
  return OkStatus();
}

// if (T[n, 1] == 0) gives as.integer(T[n, 3]), else calls as.integer(T[n, 1]) and as.integer(T[n, 2]).
ops::StructureProgram TreeProgram() {
  using Code = ops::StructureProgram::Code;
  ops::StructureProgram program;
  program.matrices = {"T"};
  program.registers = 16;
  const auto add = [&](ops::StructureProgram::Step step) { program.steps.push_back(step); };
  // r[target] = T[n, column], an integer in the register behind it.
  const auto add_cell = [&](int32_t target, double column) {
    add({.code = Code::kConstant, .target = target, .constant = column});
    add({.code = Code::kCell, .target = target + 1, .a = 0, .b = target});
    add({.code = Code::kTruncate, .is_whole = true, .target = target + 2, .a = target + 1});
  };
  add_cell(1, 1);
  program.steps.pop_back();
  add({.code = Code::kConstant, .target = 3, .constant = 0});
  add({.code = Code::kEqual, .target = 4, .a = 2, .b = 3});
  add({.code = Code::kBranch, .a = 4, .index = 10});
  add_cell(5, 3);
  add({.code = Code::kGive, .a = 7});
  add({.code = Code::kJump, .index = 18});
  for (const int32_t child : {1, 2}) {
    add_cell(4 + 4 * child, child);
    add({.code = Code::kCall, .a = 6 + 4 * child});
  }
  add({.code = Code::kEnd});
  return program;
}

Status TimeLinearizer(const Trees& trees, const BenchOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix structure, Matrix::Dense(static_cast<int64_t>(trees.rows.size()), 6));
  for (size_t i = 0; i < trees.rows.size(); ++i)
    std::copy(trees.rows[i].begin(), trees.rows[i].end(), structure.mutable_data() + 6 * i);
  double visit = std::numeric_limits<double>::infinity(), arrays = visit;
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto per_node = [&](auto from, auto to) {
    return std::chrono::duration<double, std::nano>(to - from).count() /
           static_cast<double>(trees.rows.size());
  };
  const ops::StructureProgram program = TreeProgram();
  ops::StructureVisitor visitor(program, {structure}, {}, 100);
  for (int round = 0; round < std::max(5, options.rounds); ++round) {
    const auto begin = now();
    HEDDLE_ASSIGN_OR_RETURN(const ops::VisitedStructure* const visited, visitor.Visit(trees.roots, "f"));
    const auto middle = now();
    const ops::Linearized linearized = ops::Linearize(*visited);
    const auto end = now();
    visit = std::min(visit, per_node(begin, middle));
    arrays = std::min(arrays, per_node(middle, end));
  }
  if (options.json)
    std::printf(
        "{\"bench\":\"recursion\",\"case\":\"linearizer\",\"nodes\":%zu,\"visit_ns\":%.1f,\"arrays_ns\":%.1f}\n",
        trees.rows.size(), visit, arrays);
  else
    std::printf("linearizer %zu nodes: %.1f ns a node to visit, %.1f to order\n", trees.rows.size(), visit,
                arrays);
  return OkStatus();
}

Status Measure(const BenchOptions& options) {
  const Case cases[] = {{"treefc", "perfect", {256, 512}}, {"treelstm", "sst", {256, 512}},
                        {"treegru", "sst", {256, 512}},    {"mvrnn", "sst", {64, 128}},
                        {"dagrnn", "grids", {256, 512}},   {"lstm", "chains", {256, 512}}};
  Trees sentences;
  if (options.data.empty()) {
    sentences = RandomTrees(1101);
  } else {
    HEDDLE_ASSIGN_OR_RETURN(sentences, ReadTrees(options.data));
  }
  const std::string folder = MakeTemporaryFolder();
  Status status = TimeLinearizer(sentences, options);
  for (const Case& one : cases) {
    if (!status.ok() || (!options.only.empty() && one.model.find(options.only) == std::string::npos))
      continue;
    const Trees trees = one.trees == "sst"       ? sentences
                        : one.trees == "perfect" ? PerfectTrees(64, 7)
                        : one.trees == "grids"   ? Grids(64, 10)
                                                 : Chains(64, 100);
    status = RunCase(one, trees, folder, options);
  }
  if (status.ok() && (options.only.empty() || std::string("train").find(options.only) != std::string::npos))
    status = RunTraining(sentences, folder, options);
  std::filesystem::remove_all(folder);
  return status;
}

}  // namespace

int RunRecursion(const BenchOptions& options) {
  const Status status = Measure(options);
  if (!status.ok()) std::fprintf(stderr, "heddle-bench: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace heddle::bench
