// SPDX-License-Identifier: Apache-2.0
// What a driver has made of a program is there for the next process.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "opened_device.h"
#include "ops/device/opencl/opencl_programs.h"
#include "tests/support/process.h"

namespace heddle::ops::testing {
namespace {

std::string SourceOf(const std::string& name) {
  return fmt::format("__kernel void {}(__global double* a) {{ a[get_global_id(0)] += 1.0; }}\n", name);
}

class KernelsOnDiskTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Opened& opened = FirstOpened();
    if (opened.library == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
    library_ = opened.library;
    id_ = opened.id;
    context_ = opened.context;
    description_.name = "a device of a test";
    description_.driver = "version 1";
  }
  OpenClPrograms Programs() const { return {*library_, id_, context_, description_, Folder()}; }
  std::string Folder() const { return folder_.path() + "/kernels"; }
  ObjectCache Disk() const { return {Folder(), 1 << 20}; }
  // Whether the program that is built of the source has the kernel.
  bool Has(const std::string& source, const std::string& kernel) const {
    const Result<std::shared_ptr<const OpenClProgram>> program = Programs().Build(source);
    EXPECT_TRUE(program.ok()) << program.status().ToString();
    if (!program.ok()) return false;
    cl_int code = CL_SUCCESS;
    const cl_kernel made = library_->clCreateKernel((*program)->handle(), kernel.c_str(), &code);
    if (made != nullptr) library_->clReleaseKernel(made);
    return made != nullptr && code == CL_SUCCESS;
  }

  const testing_support::TemporaryFolder folder_;
  const OpenClLibrary* library_ = nullptr;
  cl_device_id id_ = nullptr;
  cl_context context_ = nullptr;
  DeviceDescription description_;
};

// Were the source compiled once more, it would have another kernel than the one on disk.
TEST_F(KernelsOnDiskTest, AProgramIsCompiledOnce) {
  EXPECT_TRUE(Has(SourceOf("one"), "one"));
  const std::optional<std::string> one = Disk().Find(Programs().KeyOf(SourceOf("one")));
  ASSERT_TRUE(one.has_value());
  Disk().Store(Programs().KeyOf(SourceOf("two")), *one);
  EXPECT_TRUE(Has(SourceOf("two"), "one"));
  description_.driver = "version 2";
  EXPECT_TRUE(Has(SourceOf("two"), "two"));
  description_.name = "another device of a test";
  EXPECT_TRUE(Has(SourceOf("two"), "two"));
}

TEST_F(KernelsOnDiskTest, WhatTheDriverDoesNotTakeIsReplaced) {
  EXPECT_TRUE(Has(SourceOf("one"), "one"));
  const std::string key = Programs().KeyOf(SourceOf("one"));
  for (const std::string& bad : {std::string("no binary"), std::string()}) {
    Disk().Store(key, bad);
    EXPECT_TRUE(Has(SourceOf("one"), "one"));
    EXPECT_GT(Disk().Find(key).value_or("").size(), 20u);
  }
}

// The kernels of a source, which are asked for one by one, share what is built.
TEST_F(KernelsOnDiskTest, OneProcessBuildsASourceOnce) {
  const OpenClPrograms programs = Programs();
  const std::shared_ptr<const OpenClProgram> one = *programs.Build(SourceOf("one"));
  EXPECT_NE(*programs.Build(SourceOf("two")), one);
  EXPECT_EQ(*programs.Build(SourceOf("one")), one);
  // Of many, those of the last few.
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(programs.Build(SourceOf(fmt::format("other{}", i))).ok());
  EXPECT_EQ(one.use_count(), 1);
  EXPECT_NE(*programs.Build(SourceOf("one")), one);
}

// What nobody keeps, the driver is not asked for: POCL compiles for it once more.
TEST_F(KernelsOnDiskTest, BinariesAreMadeWhereTheyAreKept) {
  static int asked = 0;
  OpenClLibrary library = *library_;
  library.clGetProgramInfo = [](cl_program, cl_program_info, size_t, void*, size_t*) -> cl_int {
    ++asked;
    return CL_INVALID_VALUE;
  };
  for (const bool keeps : {false, true}) {
    asked = 0;
    const OpenClPrograms programs(library, id_, context_, description_, keeps ? Folder() : "");
    EXPECT_TRUE(programs.Build(SourceOf("one")).ok());
    EXPECT_EQ(asked > 0, keeps);
  }
}

// Programs, and what somebody calls compiled that takes several of them.
TEST_F(KernelsOnDiskTest, WhatIsKeptIsKnown) {
  EXPECT_FALSE(Programs().IsKept(SourceOf("one")));
  EXPECT_TRUE(Has(SourceOf("one"), "one"));
  EXPECT_TRUE(Programs().IsKept(SourceOf("one")));
  EXPECT_FALSE(Programs().IsKept("kernels of a test"));
  Programs().Keep("kernels of a test");
  EXPECT_TRUE(Programs().IsKept("kernels of a test"));
  description_.driver = "version 2";
  EXPECT_FALSE(Programs().IsKept(SourceOf("one")));
  EXPECT_FALSE(Programs().IsKept("kernels of a test"));
}

}  // namespace
}  // namespace heddle::ops::testing
