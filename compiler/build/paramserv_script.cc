// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "compiler/build/paramserv.h"

namespace heddle::compiler {
namespace {

// The four words in capitals stand for what one call of paramserv() makes of them.
//
// Rounds: every worker computes what it pushes from the model that it has pulled, then the pushes are
// applied. With BSP and SBP their sum is one update, and all workers pull the new model; with ASP and SSP
// each push is an update, in the order of the workers, and a worker pulls the model that its own push has
// made.
constexpr std::string_view kScript = R"dml(
paramserv = function(list[unknown] model, matrix[double] features, matrix[double] labels, int epochs,
    list[unknown] hyperparams = list(),
    matrix[double] val_features = matrix(0, rows=0, cols=0),
    matrix[double] val_labels = matrix(0, rows=0, cols=0),
    string mode = "LOCAL", string utype = "ASP", string freq = "EPOCH", int batchsize = 64, int k = 4,
    string scheme = "DISJOINT_CONTIGUOUS", string checkpointing = "NONE", int seed = -1, int nbatches = 1,
    boolean modelAvg = FALSE, int num_backup_workers = 1,
    string runtime_balancing = "NONE", string weighting = "FALSE", string he = "FALSE")
    return (list[unknown] trained) {
  CHECK()
  if (nrow(features) == 0) stop("the argument 'features' of paramserv() has no rows")
  if (nrow(features) != nrow(labels))
    stop("the arguments 'features' and 'labels' of paramserv() have different numbers of rows: "
      + nrow(features) + " and " + nrow(labels))
  is_async = utype == "ASP" | utype == "SSP"
  if (is_async & modelAvg) stop("paramserv() averages models (modelAvg) only when utype is BSP or SBP")

  [x, y, first, size] = partition(features, labels, k, scheme, seed)
  workers = nrow(size)
  backups = 0
  if (utype == "SBP") backups = num_backup_workers
  if (backups >= workers)
    stop("the argument 'num_backup_workers' of paramserv() must be below the number of workers with rows, "
      + workers + ", not " + backups)
  batches = ceil(size / batchsize)
  batches_a_round = 1
  if (freq == "EPOCH") batches_a_round = max(batches)
  if (freq == "NBATCHES") batches_a_round = nbatches
  rounds = ceil(max(batches) / batches_a_round)

  pulled = list()  # by each worker, at last
  for (w in 1:workers) pulled = append(pulled, list(model))
  for (epoch in 1:epochs) {
    for (round in 1:rounds) {
      done = (round - 1) * batches_a_round
      takes_part = batches > done
      if (backups > 0) {
        # Those whose pushes would come too late: the last ones first, and every worker in its turn.
        turn = ((epoch - 1) * rounds + round - 1) * backups
        takes_part = takes_part * ((workers - seq(1, workers) + turn) %% workers >= backups)
      }
      pushed = pulled
      parfor (w in 1:workers) {
        if (as.scalar(takes_part[w, 1]) != 0) {
          from = as.scalar(first[w, 1]) + done * batchsize
          to = min(from + batches_a_round * batchsize, as.scalar(first[w, 1] + size[w, 1])) - 1
          pushed[w] = list(work(as.list(pulled[w]), hyperparams, x, y, from, to, batchsize, modelAvg))
        }
      }
      if (is_async) {
        for (w in 1:workers) {
          if (as.scalar(takes_part[w, 1]) != 0) {
            gradients = as.list(pushed[w])
            model = AGGREGATE()
            pulled[w] = list(model)
          }
        }
      } else if (sum(takes_part) > 0) {
        gradients = total(pushed, takes_part, modelAvg)
        if (modelAvg) {
          model = gradients
        } else {
          model = AGGREGATE()
        }
        for (w in 1:workers) pulled[w] = list(model)
      }
    }
    VALIDATE()
  }
  trained = model
}

# The rows of all workers, those of one behind those of the other, where they begin and how many they are.
partition = function(matrix[double] features, matrix[double] labels, int k, string scheme, int seed)
    return (matrix[double] x, matrix[double] y, matrix[double] first, matrix[double] size) {
  n = nrow(features)
  x = features
  y = labels
  if (scheme == "OVERLAP_RESHUFFLE") {
    size = matrix(n, rows=k, cols=1)
  } else if (scheme == "DISJOINT_ROUND_ROBIN") {
    size = floor((n - seq(1, min(k, n))) / k) + 1
  } else {
    most = ceil(n / k)
    size = min(most, n - most * (seq(1, ceil(n / most)) - 1))
  }
  first = cumsum(size) - size + 1
  if (scheme != "DISJOINT_CONTIGUOUS") {
    if (scheme == "DISJOINT_ROUND_ROBIN") {
      rows = order(target=seq(0, n - 1) %% k, by=1, index.return=TRUE)
    } else if (scheme == "DISJOINT_RANDOM") {
      rows = sample(n, n, FALSE, seed)
    } else {
      rows = matrix(0, rows=k * n, cols=1)
      for (w in 1:k) {
        seed_of_worker = seed
        if (seed != -1) seed_of_worker = seed + w - 1
        rows[((w - 1) * n + 1):(w * n), 1] = sample(n, n, FALSE, seed_of_worker)
      }
    }
    P = table(seq(1, nrow(rows)), rows, nrow(rows), n)
    x = P %*% features
    y = P %*% labels
  }
}

# What a worker pushes at the end of a round that begins with `model` and has the rows from:to.
work = function(list[unknown] model, list[unknown] hyperparams, matrix[double] x, matrix[double] y,
    int from, int to, int batchsize, boolean modelAvg) return (list[unknown] push) {
  push = list()
  for (begin in seq(from, to, batchsize)) {
    end = min(begin + batchsize - 1, to)
    features = x[begin:end,]
    labels = y[begin:end,]
    gradients = UPDATE()
    if (begin == from) {
      push = gradients
    } else {
      push = add(push, gradients)
    }
    if (modelAvg | end < to) model = AGGREGATE()
  }
  if (modelAvg) push = model
}

# The sum, or with `average` the mean, of what the workers that take part have pushed.
total = function(list[unknown] pushed, matrix[double] takes_part, boolean average)
    return (list[unknown] result) {
  result = list()
  for (w in 1:nrow(takes_part)) {
    if (as.scalar(takes_part[w, 1]) != 0) {
      push = as.list(pushed[w])
      if (average) push = scaled(push, 1 / sum(takes_part))
      if (length(result) == 0) {
        result = push
      } else {
        result = add(result, push)
      }
    }
  }
}

add = function(list[unknown] a, list[unknown] b) return (list[unknown] result) {
  result = a
  for (i in seq(1, length(a), 1)) result[i] = as.matrix(a[i]) + as.matrix(b[i])
}

scaled = function(list[unknown] a, double factor) return (list[unknown] result) {
  result = a
  for (i in seq(1, length(a), 1)) result[i] = as.matrix(a[i]) * factor
}
)dml";

void Replace(std::string_view mark, const std::string& by, std::string* script) {
  for (size_t at = script->find(mark); at != std::string::npos; at = script->find(mark, at + by.size()))
    script->replace(at, mark.size(), by);
}

std::string_view NameSpaceOf(ParamservRole role) {
  switch (role) {
    case ParamservRole::kUpdate: return "update";
    case ParamservRole::kAggregate: return "aggregate";
    case ParamservRole::kValidate: return "validate";
  }
  return "";
}

// "update::gradients(model = model, labels = labels)": the script's variables have the names of parameters.
std::string CallOf(ParamservRole role, const DmlFunction& function) {
  std::string arguments;
  for (const ParameterDefinition& parameter : function.definition->parameters) {
    if (!PassesInParamserv(role, parameter.name)) continue;
    arguments += fmt::format("{}{} = {}", arguments.empty() ? "" : ", ", parameter.name, parameter.name);
  }
  return fmt::format("{}::{}({})", NameSpaceOf(role), function.definition->name, arguments);
}

std::string Checks() {
  std::string checks;
  for (const ParamservLimit& limit : ParamservLimits()) {
    std::string condition = fmt::format("{} >= {}", limit.parameter, limit.least);
    for (size_t i = 0; i < limit.words.size(); ++i)
      condition =
          fmt::format("{}{} == \"{}\"", i == 0 ? "" : condition + " | ", limit.parameter, limit.words[i]);
    const std::string value = limit.words.empty() ? std::string(limit.parameter)
                                                  : fmt::format("\"'\" + {} + \"'\"", limit.parameter);
    checks += fmt::format("if (!({})) stop(\"{}\" + {})\n  ", condition, limit.Requirement(), value);
  }
  return checks;
}

}  // namespace

std::string ParamservScript(const ParamservFunctions& functions) {
  std::string script(kScript);
  Replace("CHECK()", Checks(), &script);
  Replace("UPDATE()", CallOf(ParamservRole::kUpdate, *functions.update), &script);
  Replace("AGGREGATE()", CallOf(ParamservRole::kAggregate, *functions.aggregate), &script);
  std::string validate;
  if (functions.validate != nullptr)
    validate = "[loss, accuracy] = " + CallOf(ParamservRole::kValidate, *functions.validate);
  Replace("VALIDATE()", validate, &script);
  return script;
}

std::vector<Import> ParamservImports(const ParamservFunctions& functions) {
  std::vector<Import> imports;
  const auto add = [&](ParamservRole role, const DmlFunction* function) {
    if (function == nullptr) return;
    Import& import = imports.emplace_back();
    import.name_space = NameSpaceOf(role);
    import.file = function->file;
  };
  add(ParamservRole::kUpdate, functions.update);
  add(ParamservRole::kAggregate, functions.aggregate);
  add(ParamservRole::kValidate, functions.validate);
  return imports;
}

}  // namespace heddle::compiler
