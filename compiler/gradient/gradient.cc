// SPDX-License-Identifier: Apache-2.0
#include "compiler/gradient/gradient.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "compiler/blocks/block_builder.h"
#include "compiler/gradient/adjoint_body.h"
#include "compiler/gradient/expand_calls.h"
#include "compiler/gradient/pass_elements.h"

namespace heddle::compiler {
namespace {

std::string Joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

const Parameter* FindParameter(const std::vector<Parameter>& parameters, const std::string& name) {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const Parameter& parameter) { return parameter.name == name; });
  return found == parameters.end() ? nullptr : &*found;
}

Parameter ParameterOf(const std::string& name, const ValueInfo& type) {
  return {name, type.data_type, type.IsScalar() ? ValueType::kUnknown : type.value_type, {}};
}

class Gradients {
 public:
  Gradients(Program* program, int32_t* next_block_id) : program_(*program), next_block_id_(*next_block_id) {}

  Status Make(const GradientRequest& request) {
    if (program_.functions.contains(request.name)) return OkStatus();
    const Function function =
        ExpandCalls(program_, PassElements(request.function, &program_, &next_block_id_, &copies_));
    HEDDLE_ASSIGN_OR_RETURN(SingleAssignment code, InSingleAssignment(function, program_, &next_block_id_));
    const std::set<std::string> parameters(request.parameters.begin(), request.parameters.end());
    const std::string loss = code.function.results[0].name;
    const Activity activity(code, parameters, {loss});
    AdjointBody body = BodyOf(&code, activity);
    const bool is_active = activity.IsActive(loss);
    HEDDLE_ASSIGN_OR_RETURN(std::vector<Block> backward,
                            body.Write(is_active ? std::set{loss} : std::set<std::string>()));
    Function made = std::move(code.function);
    made.name = fmt::format("gradient of {}", function.name);
    if (request.takes_adjoint) {
      const Parameter& result = function.results[0];
      const ValueInfo type = ValueInfo::OfDeclared(result.data_type, result.value_type);
      made.parameters.push_back({kGivenAdjoint, result.data_type, result.value_type, {}});
      made.body.push_back(Copy(body, AdjointName(loss), kGivenAdjoint, type));
      made.results.clear();
    } else if (is_active) {
      made.body.push_back(Seed(body, loss));
    }
    std::vector<Block> zeros;
    for (const std::string& parameter : request.parameters) {
      if (!body.present().contains(parameter)) body.AddZeros(parameter, &made.body, &zeros);
      made.results.push_back(ParameterOf(AdjointName(parameter), body.TypeOf(parameter)));
    }
    std::move(backward.begin(), backward.end(), std::back_inserter(made.body));
    std::move(zeros.begin(), zeros.end(), std::back_inserter(made.body));
    program_.functions[request.name] = std::move(made);
    return OkStatus();
  }

  // Only calls without a derivative call a copy itself.
  void DropCopies(const std::vector<GradientRequest>& requests) {
    for (const std::string& copy : copies_)
      if (std::none_of(requests.begin(), requests.end(),
                       [&](const GradientRequest& request) { return Reaches(program_, request.name, copy); }))
        program_.functions.erase(copy);
  }

 private:
  AdjointBody BodyOf(SingleAssignment* code, const Activity& activity) {
    return AdjointBody(
        program_, code, activity,
        [this](const Block& call, const std::set<std::string>& results,
               const std::set<std::string>& parameters) { return FindPair(call, results, parameters); },
        [this](const Block& call, const AdjointPair& pair, const std::set<std::string>& varying) {
          return FindRounds(call.function, pair, varying);
        },
        &next_block_id_, &next_name_);
  }

  static Block Seed(const AdjointBody& body, const std::string& loss) {
    Block seed = body.NewBlock(Block::Kind::kBasic);
    BlockBuilder builder;
    builder.Assign(AdjointName(loss), builder.Literal(Scalar(1.0), seed.position), seed.position);
    seed.graph = builder.Finish();
    return seed;
  }

  Result<AdjointPair> FindPair(const Block& call, std::set<std::string> results,
                               const std::set<std::string>& parameters) {
    const bool is_recursive = IsRecursive(program_, call.function);
    // Its own calls of itself need the same pair.
    if (is_recursive)
      for (const Parameter& result : program_.functions.at(call.function).results)
        if (CanVary(ValueInfo::OfDeclared(result.data_type, result.value_type))) results.insert(result.name);
    const std::string suffix =
        fmt::format("{} of {} by {}", call.function, Joined(results), Joined(parameters));
    if (const auto known = pairs_.find(suffix); known != pairs_.end()) return known->second;
    AdjointPair pair;
    pair.forward = "forward " + suffix;
    pair.backward = "backward " + suffix;
    pair.of_results.assign(results.begin(), results.end());
    pair.of_parameters.assign(parameters.begin(), parameters.end());
    pair.is_recursive = is_recursive;
    if (is_recursive) {
      // What a call of itself keeps is not known yet: it is one list.
      pair.saved.push_back({kSaved, DataType::kList, ValueType::kUnknown, {}});
      for (const Parameter& parameter : program_.functions.at(call.function).parameters)
        pair.passed.push_back(parameter.name);
      pairs_[suffix] = pair;
    }
    HEDDLE_RETURN_IF_ERROR(MakePair(call.function, is_recursive, &pair));
    return pairs_[suffix] = pair;
  }

  Status MakePair(const std::string& name, bool is_recursive, AdjointPair* pair) {
    const Function function = ExpandCalls(program_, name);
    HEDDLE_ASSIGN_OR_RETURN(SingleAssignment code, InSingleAssignment(function, program_, &next_block_id_));
    std::map<std::string, std::string> final_names;
    std::set<std::string> seeds;
    for (size_t i = 0; i < function.results.size(); ++i)
      final_names[function.results[i].name] = code.function.results[i].name;
    for (const std::string& result : pair->of_results) seeds.insert(final_names[result]);
    const std::set<std::string> parameters(pair->of_parameters.begin(), pair->of_parameters.end());
    const Activity activity(code, parameters, seeds);
    AdjointBody body = BodyOf(&code, activity);
    HEDDLE_ASSIGN_OR_RETURN(std::vector<Block> backward, body.Write(seeds));
    std::vector<Block> begin, zeros;
    for (const std::string& parameter : pair->of_parameters)
      if (!body.present().contains(parameter)) body.AddZeros(parameter, &code.function.body, &zeros);
    std::move(zeros.begin(), zeros.end(), std::back_inserter(backward));

    const std::set<std::string> made_forward = AssignedIn(code.function.body);
    std::vector<std::string> saved, passed;
    for (const std::string& variable : ReadIn(backward)) {
      if (FindParameter(function.parameters, variable) != nullptr)
        passed.push_back(variable);
      else if (made_forward.contains(variable))
        saved.push_back(variable);
    }
    HEDDLE_RETURN_IF_ERROR(body.MakeDefinite(saved, &code.function.body));
    if (is_recursive) {
      body.Pack(kSaved, saved, &code.function.body);
      HEDDLE_RETURN_IF_ERROR(body.Unpack(kSaved, saved, &begin));
    } else {
      pair->passed = passed;
      for (const std::string& variable : saved) {
        const ValueInfo type = body.TypeOf(variable);
        pair->saved.push_back(ParameterOf(variable, type));
        if (FindParameter(code.function.results, variable) == nullptr) continue;
        // Each result has a name of its own.
        std::string& name = pair->saved.back().name = body.NewName(type);
        code.function.body.push_back(Copy(body, name, variable, type));
        begin.push_back(Copy(body, variable, name, type));
      }
    }

    Function forward = std::move(code.function), adjoint;
    forward.name = function.name;
    adjoint.name = fmt::format("gradient of {}", function.name);
    adjoint.position = function.position;
    for (const Parameter& parameter : pair->saved) {
      forward.results.push_back(parameter);
      adjoint.parameters.push_back(parameter);
    }
    for (const std::string& parameter : pair->passed)
      adjoint.parameters.push_back(*FindParameter(function.parameters, parameter));
    for (const std::string& result : pair->of_results) {
      const Parameter& declared = *FindParameter(function.results, result);
      adjoint.parameters.push_back({AdjointName(result), declared.data_type, declared.value_type, {}});
      if (final_names[result] != result)
        begin.push_back(Copy(body, AdjointName(final_names[result]), AdjointName(result),
                             ValueInfo::OfDeclared(declared.data_type, declared.value_type)));
    }
    for (const std::string& parameter : pair->of_parameters)
      adjoint.results.push_back(ParameterOf(AdjointName(parameter), body.TypeOf(parameter)));
    std::move(backward.begin(), backward.end(), std::back_inserter(begin));
    adjoint.body = std::move(begin);
    if (is_recursive) {
      CallForward(name, *pair, function.results.size(), &forward.body);
      forward.derivative = {DerivativeRole::Kind::kForward, pair->backward, {}};
      adjoint.derivative = {DerivativeRole::Kind::kBackward, pair->forward, {}};
      for (const Parameter& result : function.results) {
        const bool has_adjoint = std::find(pair->of_results.begin(), pair->of_results.end(), result.name) !=
                                 pair->of_results.end();
        adjoint.derivative.adjoints.push_back(has_adjoint ? AdjointName(result.name) : "");
      }
    }
    program_.functions[pair->forward] = std::move(forward);
    program_.functions[pair->backward] = std::move(adjoint);
    return OkStatus();
  }

  // Calls of itself whose results have no adjoint, a count perhaps, are calls of the same function as the
  // others: that is the recursion that batches run. What they keep nobody reads.
  static void CallForward(const std::string& name, const AdjointPair& pair, size_t results,
                          std::vector<Block>* blocks) {
    for (Block& block : *blocks) {
      if (block.kind == Block::Kind::kCall && block.candidates.empty() && block.function == name) {
        block.function = pair.forward;
        block.results.resize(results + pair.saved.size());
      }
      CallForward(name, pair, results, &block.body);
      CallForward(name, pair, results, &block.otherwise);
    }
  }

  Result<std::string> FindRounds(const std::string& name, const AdjointPair& pair,
                                 const std::set<std::string>& varying) {
    const std::string key = fmt::format("rounds by {} of {}", Joined(varying), pair.backward);
    if (program_.functions.contains(key)) return key;
    SingleAssignment code;
    const Activity activity(code, {}, {});
    HEDDLE_ASSIGN_OR_RETURN(program_.functions[key],
                            BodyOf(&code, activity).WriteRounds(program_.functions.at(name), pair, varying));
    return key;
  }

  static Block Copy(const AdjointBody& body, const std::string& to, const std::string& from,
                    const ValueInfo& type) {
    const Block block = body.NewBlock(Block::Kind::kBasic);
    return CopyBlock(to, from, type, block.id, block.position);
  }

  Program& program_;
  int32_t& next_block_id_;
  int next_name_ = 0;
  std::map<std::string, AdjointPair> pairs_;
  std::set<std::string> copies_;  // of functions, which take elements of lists
};

}  // namespace

std::string GradientName(const std::string& function, const std::vector<std::string>& parameters,
                         bool takes_adjoint) {
  std::string names;
  for (const std::string& parameter : parameters) names += (names.empty() ? "" : ", ") + parameter;
  return fmt::format("{} of {} by {}", takes_adjoint ? "adjoint" : "gradient", function, names);
}

std::vector<Status> AddGradients(const std::vector<GradientRequest>& requests, Program* program,
                                 int32_t* next_block_id) {
  Gradients gradients(program, next_block_id);
  std::vector<Status> errors;
  for (const GradientRequest& request : requests)
    if (Status status = gradients.Make(request); !status.ok())
      errors.push_back(
          status.WithNote(fmt::format("gradient() is called at {}", request.position.ToString())));
  gradients.DropCopies(requests);
  return errors;
}

}  // namespace heddle::compiler
