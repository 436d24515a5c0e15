// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "core/status.h"
#include "ops/map/java_value.h"

// What UtilFunctions of SystemDS does with dates. Their form is that of the text where no other is given:
// yyyy-MM-dd, MM/dd/yyyy, "dd MMM yyyy HH:mm:ss" and 20 others (java_dates.cc). Times are in UTC. The
// arguments have the types that java_methods.cc says; kFailedPrecondition for what is no date.
namespace heddle::ops {

class JavaRegex;

Result<JavaValue> MillisecondsOfDate(std::span<const JavaValue> arguments, const JavaRegex*);
Result<JavaValue> RewriteDate(std::span<const JavaValue> arguments, const JavaRegex*);
Result<JavaValue> RewriteDateOfForm(std::span<const JavaValue> arguments, const JavaRegex*);
Result<JavaValue> DateOfMilliseconds(std::span<const JavaValue> arguments, const JavaRegex*);
Result<JavaValue> IsDate(std::span<const JavaValue> arguments, const JavaRegex*);
Result<JavaValue> AddTimeToDate(std::span<const JavaValue> arguments, const JavaRegex*);
/// Texts all in the form that most of them have; what is missing stays missing.
Result<JavaValue> DatesOfOneForm(std::span<const JavaValue> arguments, const JavaRegex*);
Result<JavaValue> MillisecondsOfDates(std::span<const JavaValue> arguments, const JavaRegex*);

}  // namespace heddle::ops
