// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "bench/actors.h"
#include "bench/compression.h"
#include "bench/control.h"
#include "bench/convolution.h"
#include "bench/devices.h"
#include "bench/distributed.h"
#include "bench/files.h"
#include "bench/fusion.h"
#include "bench/library.h"
#include "bench/links/all_reduce.h"
#include "bench/links/transport.h"
#include "bench/memory/memory.h"
#include "bench/operators.h"
#include "bench/pipeline_stages.h"
#include "bench/precision.h"
#include "bench/recursion.h"
#include "bench/scripts.h"
#include "bench/stitch.h"
#include "bench/transforms.h"
#include "compiler/fuse/fuse.h"
#include "core/memory/counted_heap.h"

int main(int argc, char** argv) {
  heddle::PrepareHeap();  // As the program itself does.
  using heddle::bench::BenchOptions;
  BenchOptions options;
  options.threads = static_cast<int>(std::thread::hardware_concurrency());
  std::string name;
  bool has_cells = false, is_full = false;
  heddle::bench::MemoryBenchOptions memory;
  std::vector<std::string> files;
  // What another process of this program is to do.
  if (argc > 1 && std::strcmp(argv[1], "memory-stage") == 0)
    return heddle::bench::RunMemoryStage({argv + 2, argv + argc});
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json")
      options.json = true;
    else if (word == "--full")
      is_full = true;
    else if (word == "--rounds" && i + 1 < argc)
      options.rounds = std::max(1, std::atoi(argv[++i]));
    else if (word == "--threads" && i + 1 < argc)
      options.threads = std::max(1, std::atoi(argv[++i]));
    else if (word == "--cells" && i + 1 < argc)
      options.cells = std::atoll(argv[++i]), has_cells = true;
    else if (word == "--gigabytes" && i + 1 < argc)
      memory.gigabytes = std::atof(argv[++i]);
    else if (word == "--csv-gigabytes" && i + 1 < argc)
      memory.csv_gigabytes = std::atof(argv[++i]);
    else if (word == "--memory" && i + 1 < argc)
      memory.memory = argv[++i];
    else if (word == "--peers" && i + 1 < argc)
      memory.peers = argv[++i];
    else if (word == "--only" && i + 1 < argc)
      options.only = argv[++i];
    else if (word == "--plan" && i + 1 < argc && heddle::compiler::ParseFusionMode(argv[i + 1]))
      options.plan = argv[++i];
    else if (word[0] != '-' && name.empty())
      name = word;
    else if (word == "--data" && i + 1 < argc)
      options.data = argv[++i];
    else if (word[0] != '-' && (name == "compression" || name == "scripts" || name == "optimizer" ||
                                name == "library" || name == "distributed"))
      files.push_back(word);
    else
      name = "?";
  }
  if (name == "operators") return heddle::bench::RunOperators(options);
  if (name == "compression") return heddle::bench::RunCompression(options, is_full, files);
  if (name == "control") return heddle::bench::RunControl(options);
  if (name == "devices") {
    if (!has_cells) options.cells = 10'000'000;
    return heddle::bench::RunDevices(options);
  }
  if (name == "distributed") return heddle::bench::RunDistributed(options, files);
  if (name == "actors") return heddle::bench::RunActors(options);
  if (name == "transport") return heddle::bench::RunTransport(options);
  if (name == "transport-peer") return heddle::bench::RunTransportPeer(0);
  if (name == "all-reduce-peer") return heddle::bench::RunAllReducePeer(0);
  if (name == "transforms") {
    if (!has_cells) options.cells = 10'000'000;
    return heddle::bench::RunTransforms(options);
  }
  if (name == "files") {
    if (!has_cells) options.cells = 20'000'000;
    return heddle::bench::RunFiles(options);
  }
  if (name == "memory") return heddle::bench::RunMemory(options, memory);
  if (name == "fusion") return heddle::bench::RunFusion(options);
  if (name == "precision") return heddle::bench::RunPrecision(options);
  if (name == "recursion") return heddle::bench::RunRecursion(options);
  if (name == "convolution") return heddle::bench::RunConvolution(options);
  if (name == "stitch") return heddle::bench::RunStitch(options);
  if (name == "library" && !files.empty()) return heddle::bench::RunLibrary(options, files);
  if (name == "scripts" && !files.empty()) return heddle::bench::RunScripts(options, files);
  if (name == "optimizer" && !files.empty()) return heddle::bench::RunOptimizer(options, files);
  std::fputs(
      "usage: heddle-bench operators|fusion|precision|transforms [--json] [--threads N] [--cells N] [--only TEXT]\n"
      "       heddle-bench compression [--full] [--json] [--threads N] [--rounds N] [--only TEXT] [--data FOLDER]\n"
      "                    [FILE...]\n"
      "       heddle-bench control [--json] [--threads N] [--rounds N] [--only TEXT]\n"
      "       heddle-bench devices [--json] [--threads N] [--rounds N] [--cells N] [--only TEXT]\n"
      "       heddle-bench distributed [--json] [--rounds N] [--only TEXT] [FILE.dml...]\n"
      "       heddle-bench transport [--json] [--rounds N] [--only BYTES|messages|all-reduce]\n"
      "       heddle-bench actors [--json] [--rounds N] [--only TEXT]\n"
      "       heddle-bench files [--json] [--threads N] [--rounds N] [--cells N] [--only TEXT] [--data FOLDER]\n"
      "       heddle-bench memory [--json] [--threads N] [--rounds N] [--only TEXT] [--data FOLDER] [--gigabytes G]\n"
      "                    [--csv-gigabytes G] [--memory SIZE] [--peers COMMAND]\n"
      "       heddle-bench recursion [--json] [--threads N] [--rounds N] [--only MODEL] [--data TREES]\n"
      "       heddle-bench convolution [--json] [--threads N] [--only TEXT]\n"
      "       heddle-bench stitch [--json] [--threads N] [--only TEXT]\n"
      "       fusion, precision, stitch: [--plan off|all|no-redundancy|cost]\n"
      "       heddle-bench library [--json] [--threads N] [--rounds N] [--only TEXT] [--data FOLDER] CASES...\n"
      "       heddle-bench scripts [--json] [--threads N] [--rounds N] FILE.dml...\n"
      "       heddle-bench optimizer [--json] [--threads N] [--rounds N] [--data FILE] FILE.dml...\n",
      stderr);
  return 2;
}
