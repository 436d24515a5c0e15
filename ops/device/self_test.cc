// SPDX-License-Identifier: Apache-2.0
#include "ops/device/self_test.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ops/device/print/prelude.h"

namespace heddle::ops {
namespace {

constexpr int64_t kNumbers = 4096;
constexpr int64_t kGroup = 64;

// What the kernel computes of number triples (a, b, c), one array behind the other.
constexpr std::array kDoubleOperations = {
    "a + b", "a - b", "a * b", "a / b",           "sqrt(fabs(a))",  "fma",    "a * b + c", "double to float",
    "floor", "rint",  "ceil",  "ulong to double", "long to double", "mul_hi", "clz",       "fma of double8"};
constexpr std::array kFloatOperations = {"a + b (float)",         "a * b (float)", "a / b (float)",
                                         "sqrt(fabs(a)) (float)", "fma (float)",   "a * b + c (float)"};

constexpr std::string_view kKernel = R"(
__kernel void heddle_check(const long count, __global const double* a, __global const double* b,
                           __global const double* c, __global double* out) {
  const long i = (long)get_global_id(0);
  if (i >= count) return;
  const double x = a[i], y = b[i], z = c[i];
  out[i] = x + y;
  out[count + i] = x - y;
  out[2 * count + i] = x * y;
  out[3 * count + i] = x / y;
  out[4 * count + i] = sqrt(fabs(x));
  out[5 * count + i] = fma(x, y, z);
  out[6 * count + i] = x * y + z;
  out[7 * count + i] = (double)convert_float_rte(x);
  out[8 * count + i] = floor(x);
  out[9 * count + i] = rint(x);
  out[10 * count + i] = ceil(x);
  out[11 * count + i] = convert_double_rte(as_ulong(x));
  out[12 * count + i] = convert_double_rte(as_long(x));
  out[13 * count + i] = as_double(mul_hi(as_ulong(x), as_ulong(y)));
  out[14 * count + i] = (double)clz(as_ulong(x));
  const double8 eight = fma((double8)(x, y, z, x, y, z, x, y), (double8)(z), (double8)(y));
  out[15 * count + i] = eight.s0 + eight.s4;
  const float u = convert_float_rte(x), v = convert_float_rte(y), w = convert_float_rte(z);
  out[16 * count + i] = (double)(u + v);
  out[17 * count + i] = (double)(u * v);
  out[18 * count + i] = (double)(u / v);
  out[19 * count + i] = (double)sqrt(fabs(u));
  out[20 * count + i] = (double)fma(u, v, w);
  out[21 * count + i] = (double)(u * v + w);
}
)";

// Of all exponents, every fourth of a size at which products and sums of three lose digits to each other,
// some denormals and special ones.
std::vector<double> Numbers(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> numbers(kNumbers);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const uint64_t bits = random();
    numbers[i] = std::bit_cast<double>(bits);
    if (i % 4 == 1)
      numbers[i] =
          std::ldexp(1.0 + static_cast<double>(bits >> 12) * 0x1p-52, static_cast<int>(bits % 7) - 3);
    if (i % 4 == 2)
      numbers[i] =
          std::ldexp(1.0 + static_cast<double>(bits >> 41) * 0x1p-23, static_cast<int>(bits % 5) - 2);
    if (i % 64 == 3) numbers[i] = std::bit_cast<double>(bits >> (12 + bits % 52));
    if (i % 64 == 7) numbers[i] = std::ldexp(static_cast<double>(bits >> 40), -160);
  }
  const double specials[] = {0.0,
                             -0.0,
                             1.0,
                             -1.0,
                             0.1,
                             0x1p-1074,
                             0x1p-1022,
                             0x1.fffffffffffffp1023,
                             0x1p-149,
                             0x1p-126,
                             0x1.fffffep127,
                             0.5,
                             1.5,
                             2.5,
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};
  for (size_t i = 0; i < std::size(specials); ++i)
    for (size_t k = 0; k < 8; ++k)
      numbers[(i * 8 + k) * 3 % kNumbers] = specials[(i + k * (seed + 1)) % std::size(specials)];
  return numbers;
}

bool Same(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

__extension__ using Wide = unsigned __int128;

// Of the product of 128 bits.
uint64_t HighHalf(uint64_t a, uint64_t b) { return static_cast<uint64_t>(static_cast<Wide>(a) * b >> 64); }

// Results of the host, in the order of the kernel. Compiled without contraction.
std::vector<double> OnHost(size_t i, const std::vector<double>& a, const std::vector<double>& b,
                           const std::vector<double>& c) {
  const double x = a[i], y = b[i], z = c[i];
  const float u = static_cast<float>(x), v = static_cast<float>(y), w = static_cast<float>(z);
  return {x + y,
          x - y,
          x * y,
          x / y,
          std::sqrt(std::fabs(x)),
          std::fma(x, y, z),
          x * y + z,
          static_cast<double>(u),
          std::floor(x),
          std::nearbyint(x),
          std::ceil(x),
          static_cast<double>(std::bit_cast<uint64_t>(x)),
          static_cast<double>(std::bit_cast<int64_t>(x)),
          std::bit_cast<double>(HighHalf(std::bit_cast<uint64_t>(x), std::bit_cast<uint64_t>(y))),
          static_cast<double>(std::countl_zero(std::bit_cast<uint64_t>(x))),
          std::fma(x, z, y) + std::fma(y, z, y),
          static_cast<double>(u + v),
          static_cast<double>(u * v),
          static_cast<double>(u / v),
          static_cast<double>(std::sqrt(std::fabs(u))),
          static_cast<double>(std::fma(u, v, w)),
          static_cast<double>(u * v + w)};
}

}  // namespace

Status CheckArithmetic(ComputeDevice& device) {
  const DeviceDescription& description = device.description();
  if (!description.has_doubles) return Unimplemented("{} has no doubles", description.name);
  const std::vector<double> a = Numbers(1), b = Numbers(2), c = Numbers(3);
  HEDDLE_ASSIGN_OR_RETURN(
      const std::shared_ptr<DeviceKernel> kernel,
      device.Compile(std::string(printed::Prelude()) + std::string(kKernel), "heddle_check"));
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceQueue> queue, device.MakeQueue());
  constexpr size_t kOperations = kDoubleOperations.size() + kFloatOperations.size();
  std::vector<double> results(kOperations * kNumbers);
  std::vector<DeviceArgument> arguments = {kNumbers};
  for (const std::vector<double>* numbers : {&a, &b, &c}) {
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<DeviceMemory> memory, device.Allocate(kNumbers * 8));
    HEDDLE_RETURN_IF_ERROR(queue->Write(numbers->data(), kNumbers * 8, *memory, 0));
    arguments.emplace_back(std::move(memory));
  }
  const auto bytes = static_cast<int64_t>(results.size() * sizeof(double));
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceMemory> out, device.Allocate(bytes));
  arguments.emplace_back(out);
  HEDDLE_RETURN_IF_ERROR(
      queue->Launch(kernel, arguments, {.groups = kNumbers / kGroup, .group_size = kGroup}));
  HEDDLE_RETURN_IF_ERROR(queue->Read(*out, 0, bytes, results.data()));
  HEDDLE_RETURN_IF_ERROR(queue->Finish());
  for (size_t i = 0; i < kNumbers; ++i) {
    const std::vector<double> expected = OnHost(i, a, b, c);
    for (size_t operation = 0; operation < kOperations; ++operation) {
      const double actual = results[operation * kNumbers + i];
      if (Same(expected[operation], actual)) continue;
      const std::string name = operation < kDoubleOperations.size()
                                   ? kDoubleOperations[operation]
                                   : kFloatOperations[operation - kDoubleOperations.size()];
      return Unimplemented(
          "{} does not compute as IEEE 754 has it: {} of a = {:a}, b = {:a}, c = {:a} is {:a}, not {:a}",
          description.name, name, a[i], b[i], c[i], actual, expected[operation]);
    }
  }
  return OkStatus();
}

}  // namespace heddle::ops
