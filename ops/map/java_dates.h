// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/status.h"
#include "ops/map/java_methods.h"

// What UtilFunctions of SystemDS does with dates. Their form is that of the text where no other is given:
// yyyy-MM-dd, MM/dd/yyyy, "dd MMM yyyy HH:mm:ss" and 20 others (java_dates.cc). Times are in UTC. The
// arguments have the types that java_methods.cc says; kFailedPrecondition for what is no date.
namespace heddle::ops {

Result<JavaValue> MillisecondsOfDate(const JavaCall& call);
Result<JavaValue> RewriteDate(const JavaCall& call);
Result<JavaValue> RewriteDateOfForm(const JavaCall& call);
Result<JavaValue> DateOfMilliseconds(const JavaCall& call);
Result<JavaValue> IsDate(const JavaCall& call);
Result<JavaValue> AddTimeToDate(const JavaCall& call);
/// Texts all in the form that most of them have; what is missing stays missing.
Result<JavaValue> DatesOfOneForm(const JavaCall& call);
Result<JavaValue> MillisecondsOfDates(const JavaCall& call);

}  // namespace heddle::ops
