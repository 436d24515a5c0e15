// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/module/compile_object.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar.h>

#include <memory>
#include <mutex>

#include "compiler/codegen/module/lower_region.h"
#include "compiler/codegen/module/place_constants.h"

namespace heddle::codegen {
namespace {

constexpr char kTriple[] = "x86_64-unknown-linux-gnu";

std::unique_ptr<llvm::TargetMachine> NewMachine(const CpuLevel& level) {
  std::string error;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(kTriple, error);
  if (target == nullptr) return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // a * b + c keeps its two roundings
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(kTriple, level.name, "", options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                  llvm::CodeGenOptLevel::Default, true));
}

// Loop strength reduction takes half of the time and makes loops of this simple form no faster; the order of
// instructions is good as it is emitted, eight lanes in turn.
void Initialize() {
  const char* const arguments[] = {"heddle", "-disable-lsr", "-enable-misched=0"};
  llvm::cl::ParseCommandLineOptions(std::size(arguments), arguments, "", &llvm::nulls());
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
}

/// Machines are made once and lent to one compilation at a time.
class Machines {
 public:
  std::unique_ptr<llvm::TargetMachine> Take(int cpu) {
    {
      const std::lock_guard lock(mutex_);
      auto& free = free_[cpu];
      if (!free.empty()) {
        auto machine = std::move(free.back());
        free.pop_back();
        return machine;
      }
      if (!initialized_) {
        Initialize();
        initialized_ = true;
      }
    }
    return NewMachine(kCpuLevels[cpu]);
  }
  void GiveBack(int cpu, std::unique_ptr<llvm::TargetMachine> machine) {
    const std::lock_guard lock(mutex_);
    free_[cpu].push_back(std::move(machine));
  }

 private:
  std::mutex mutex_;
  bool initialized_ = false;
  std::vector<std::unique_ptr<llvm::TargetMachine>> free_[2];
};

Machines& TheMachines() {
  static auto* const machines = new Machines();
  return *machines;
}

// Few and quick: the IR is good where it leaves LowerRegion; variables become registers, repeated work is
// dropped.
void Optimize(llvm::Module& module, llvm::TargetMachine& machine, int register_lanes) {
  llvm::legacy::FunctionPassManager passes(&module);
  passes.add(llvm::createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()));
  passes.add(llvm::createSROAPass());
  passes.add(llvm::createEarlyCSEPass());
  passes.doInitialization();
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) passes.run(function);
  passes.doFinalization();
  if (register_lanes == 4) PlaceConstants(*module.getFunction(kEntryPoint));
}

Result<std::string> Emit(llvm::Module& module, llvm::TargetMachine& machine, int register_lanes,
                         HeddleProduct product) {
  Optimize(module, machine, register_lanes);
  if (product == kHeddleIr) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream, nullptr);
    return text;
  }
  llvm::SmallString<8192> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  const auto type =
      product == kHeddleAssembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    return Internal("codegen: LLVM cannot write code for {}", kTriple);
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

}  // namespace

Result<std::string> CompileRegion(const ops::Region& region, int cpu, HeddleProduct product) {
  llvm::LLVMContext context;
  const int register_lanes = region.half_registers ? 4 : kCpuLevels[cpu].register_lanes;
  const std::unique_ptr<llvm::Module> module = LowerRegion(region, register_lanes, context);
  std::string fault;
  llvm::raw_string_ostream fault_stream(fault);
  if (llvm::verifyModule(*module, &fault_stream)) return Internal("codegen: wrong IR: {}", fault);
  std::unique_ptr<llvm::TargetMachine> machine = TheMachines().Take(cpu);
  if (machine == nullptr) return Internal("codegen: LLVM knows no {}", kTriple);
  module->setTargetTriple(kTriple);
  module->setDataLayout(machine->createDataLayout());
  Result<std::string> result = Emit(*module, *machine, register_lanes, product);
  TheMachines().GiveBack(cpu, std::move(machine));
  return result;
}

}  // namespace heddle::codegen
