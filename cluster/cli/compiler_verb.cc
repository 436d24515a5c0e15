// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "cluster/compiling/compile_script.h"

namespace heddle::cluster::cli {
namespace {

constexpr Option kOptions[] = {{"control-fd", Option::Kind::kValue, "N", ""}};

int Run(const Arguments& arguments) {
  const Result<int64_t> fd = arguments.Integer("control-fd", -1, 3, 1 << 20);
  if (!fd.ok()) return Report(fd.status());
  if (*fd < 0) return Report(Usage("'heddle compiler' is started by 'heddle master', not by hand"));
  return RunCompiler(static_cast<int>(*fd));
}

}  // namespace

const Verb kCompilerVerb = {"compiler",
                            "compiles one script for a master",
                            "compiler --control-fd N",
                            JoinOptions({kOptions}),
                            "",
                            Run,
                            /*takes_words=*/false,
                            /*hidden=*/true};

}  // namespace heddle::cluster::cli
