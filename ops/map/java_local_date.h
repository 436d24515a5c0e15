// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ops/map/java_value.h"

// The texts of values of java.time; the methods are in JavaLocalDateMethods() (java_methods.h).
namespace heddle::ops {

std::u16string TextOfDate(const JavaDate& date);        ///< "2024-02-29", "-0001-01-01", "+10000-01-01".
std::u16string TextOfPeriod(const JavaPeriod& period);  ///< "P1Y2M3D", "P0D".
std::u16string NameOf(JavaDayOfWeek day);               ///< "MONDAY"
std::u16string NameOf(JavaMonth month);                 ///< "JANUARY"
std::u16string NameOf(JavaTimeUnit unit);               ///< "Days"

}  // namespace heddle::ops
