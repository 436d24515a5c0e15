// SPDX-License-Identifier: Apache-2.0
#include "scheduler/choice/choose.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "core/status.h"

namespace heddle::scheduler {
namespace {

constexpr int64_t kMostCosts = 100'000;
constexpr int kSweeps = 8;

// A cost for every combination of choices of some variables; that of the last one varies fastest.
struct Table {
  std::vector<int> variables;  // Ascending.
  std::vector<double> costs;
};

}  // namespace

// Min-sum variable elimination (Dechter, "Bucket elimination", 1999).
class ChoiceProblem::Elimination {
 public:
  explicit Elimination(const ChoiceProblem& problem) : choices_(problem.variables_.size(), 0) {
    for (const std::vector<double>& costs : problem.variables_)
      sizes_.push_back(static_cast<int>(costs.size()));
    tables_of_.resize(sizes_.size());
    for (size_t v = 0; v < sizes_.size(); ++v) Add({{static_cast<int>(v)}, problem.variables_[v]});
    for (const Pair& pair : problem.pairs_) Add(Ordered(pair));
  }

  std::vector<int> Run(bool* is_exact) {
    std::set<std::pair<int64_t, int>> open;  // (size of the table that eliminating it makes, variable)
    std::vector<int64_t> size_of(sizes_.size());
    for (int v = 0; v < static_cast<int>(sizes_.size()); ++v) {
      size_of[static_cast<size_t>(v)] = SizeWithout(v);
      open.emplace(size_of[static_cast<size_t>(v)], v);
    }
    while (!open.empty() && open.begin()->first <= kMostCosts) {
      const int v = open.begin()->second;
      open.erase(open.begin());
      const std::vector<int> changed = Eliminate(v);
      for (const int neighbor : changed) {
        int64_t& size = size_of[static_cast<size_t>(neighbor)];
        open.erase({size, neighbor});
        size = SizeWithout(neighbor);
        open.emplace(size, neighbor);
      }
    }
    std::vector<int> rest;
    for (const auto& [size, v] : open) rest.push_back(v);
    if (is_exact != nullptr) *is_exact = rest.empty();
    std::sort(rest.begin(), rest.end());
    Descend(rest);
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) Decide(*step);
    return std::move(choices_);
  }

 private:
  // What was joined when a variable was eliminated: the variable stands last.
  struct Step {
    int variable = 0;
    Table joined;
  };

  Table Ordered(const Pair& pair) const {
    if (pair.a < pair.b) return {{pair.a, pair.b}, pair.costs};
    const auto rows = static_cast<size_t>(sizes_[static_cast<size_t>(pair.a)]);
    const auto columns = static_cast<size_t>(sizes_[static_cast<size_t>(pair.b)]);
    Table table{{pair.b, pair.a}, std::vector<double>(pair.costs.size())};
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < columns; ++j) table.costs[j * rows + i] = pair.costs[i * columns + j];
    return table;
  }

  void Add(Table table) {
    for (const int v : table.variables) tables_of_[static_cast<size_t>(v)].insert(tables_.size());
    tables_.push_back(std::move(table));
  }

  std::set<int> NeighborsOf(int v) const {
    std::set<int> neighbors;
    for (const size_t t : tables_of_[static_cast<size_t>(v)])
      neighbors.insert(tables_[t].variables.begin(), tables_[t].variables.end());
    neighbors.erase(v);
    return neighbors;
  }

  // Of the table with `v` in it.
  int64_t SizeWithout(int v) const {
    int64_t size = sizes_[static_cast<size_t>(v)];
    for (const int neighbor : NeighborsOf(v))
      size = std::min(kMostCosts + 1, size * sizes_[static_cast<size_t>(neighbor)]);
    return size;
  }

  // The sum of all tables of `v`, and from then on its minimum in their place.
  std::vector<int> Eliminate(int v) {
    const std::set<int> neighbors = NeighborsOf(v);
    Step step{.variable = v, .joined = {{neighbors.begin(), neighbors.end()}, {}}};
    std::vector<int>& variables = step.joined.variables;
    variables.push_back(v);
    int64_t size = 1;
    for (const int variable : variables) size *= sizes_[static_cast<size_t>(variable)];
    step.joined.costs.assign(static_cast<size_t>(size), 0);
    const std::set<size_t> tables = tables_of_[static_cast<size_t>(v)];
    for (size_t place = 0; place < step.joined.costs.size(); ++place) {
      SetChoices(variables, place);
      for (const size_t t : tables) step.joined.costs[place] += CostOf(tables_[t]);
    }
    for (const size_t t : tables)
      for (const int variable : tables_[t].variables) tables_of_[static_cast<size_t>(variable)].erase(t);
    const auto choices = static_cast<size_t>(sizes_[static_cast<size_t>(v)]);
    Table rest{{neighbors.begin(), neighbors.end()}, {}};
    for (size_t place = 0; place < step.joined.costs.size(); place += choices)
      rest.costs.push_back(*std::min_element(&step.joined.costs[place], &step.joined.costs[place] + choices));
    if (!rest.variables.empty()) Add(std::move(rest));
    steps_.push_back(std::move(step));
    return {neighbors.begin(), neighbors.end()};
  }

  void SetChoices(const std::vector<int>& variables, size_t place) {
    for (size_t i = variables.size(); i-- > 0;) {
      const auto size = static_cast<size_t>(sizes_[static_cast<size_t>(variables[i])]);
      choices_[static_cast<size_t>(variables[i])] = static_cast<int>(place % size);
      place /= size;
    }
  }

  double CostOf(const Table& table) const {
    size_t place = 0;
    for (const int v : table.variables)
      place = place * static_cast<size_t>(sizes_[static_cast<size_t>(v)]) +
              static_cast<size_t>(choices_[static_cast<size_t>(v)]);
    return table.costs[place];
  }

  // The best choice of `v`, all its neighbours decided.
  void Decide(const Step& step) {
    double best = std::numeric_limits<double>::infinity();
    int found = 0;
    for (int choice = 0; choice < sizes_[static_cast<size_t>(step.variable)]; ++choice) {
      choices_[static_cast<size_t>(step.variable)] = choice;
      const double cost = CostOf(step.joined);
      if (cost < best) {
        best = cost;
        found = choice;
      }
    }
    choices_[static_cast<size_t>(step.variable)] = found;
  }

  void Descend(const std::vector<int>& rest) {
    for (const int v : rest) choices_[static_cast<size_t>(v)] = 0;
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      bool has_changed = false;
      for (const int v : rest) {
        int& choice = choices_[static_cast<size_t>(v)];
        const int before = choice;
        int found = 0;
        double best = std::numeric_limits<double>::infinity();
        for (choice = 0; choice < sizes_[static_cast<size_t>(v)]; ++choice) {
          double cost = 0;
          // In the first sweep only what is decided before counts: a choice that excludes another that was
          // never made is none to be avoided.
          for (const size_t t : tables_of_[static_cast<size_t>(v)])
            if (sweep > 0 || tables_[t].variables.back() <= v) cost += CostOf(tables_[t]);
          if (cost < best) {
            best = cost;
            found = choice;
          }
        }
        choice = found;
        has_changed |= found != before;
      }
      if (!has_changed && sweep > 0) return;
    }
  }

  std::vector<int> sizes_;
  std::vector<Table> tables_;
  std::vector<std::set<size_t>> tables_of_;  // By variable: those of tables_ that still count.
  std::vector<Step> steps_;
  std::vector<int> choices_;
};

int ChoiceProblem::Add(std::vector<double> costs) {
  HEDDLE_CHECK(!costs.empty(), "a variable has a choice");
  variables_.push_back(std::move(costs));
  return static_cast<int>(variables_.size()) - 1;
}

void ChoiceProblem::AddCosts(int variable, const std::vector<double>& costs) {
  std::vector<double>& sum = variables_[static_cast<size_t>(variable)];
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += costs[i];
}

void ChoiceProblem::AddPair(int a, int b, std::vector<double> costs) {
  HEDDLE_CHECK(a != b, "a pair is of two variables");
  pairs_.push_back({a, b, std::move(costs)});
}

std::vector<int> ChoiceProblem::Solve(bool* is_exact) const { return Elimination(*this).Run(is_exact); }

double ChoiceProblem::CostOf(const std::vector<int>& choices) const {
  double sum = 0;
  for (size_t v = 0; v < variables_.size(); ++v) sum += variables_[v][static_cast<size_t>(choices[v])];
  for (const Pair& pair : pairs_) {
    const size_t columns = variables_[static_cast<size_t>(pair.b)].size();
    sum += pair.costs[static_cast<size_t>(choices[static_cast<size_t>(pair.a)]) * columns +
                      static_cast<size_t>(choices[static_cast<size_t>(pair.b)])];
  }
  return sum;
}

std::vector<double> ChoiceProblem::CostsOf(int a, const std::vector<int>& choices) const {
  std::vector<double> costs = variables_[static_cast<size_t>(a)];
  for (const Pair& pair : pairs_) {
    if (pair.a != a && pair.b != a) continue;
    const size_t columns = variables_[static_cast<size_t>(pair.b)].size();
    for (size_t choice = 0; choice < costs.size(); ++choice) {
      const size_t i = pair.a == a ? choice : static_cast<size_t>(choices[static_cast<size_t>(pair.a)]);
      const size_t j = pair.b == a ? choice : static_cast<size_t>(choices[static_cast<size_t>(pair.b)]);
      costs[choice] += pair.costs[i * columns + j];
    }
  }
  return costs;
}

}  // namespace heddle::scheduler
