// Quantities with units, as people write them in a job: "1 Gbit/s", "50 us", "16 GiB", "20
// GFLOP/s".
#pragma once

#include <string>
#include <string_view>

namespace tutti {

// The base unit is the one that a number without a suffix is in.
enum class Unit { kSeconds, kBytes, kBytesPerSecond, kFlopsPerSecond, kWatts, kJoules };

// Throws ConfigError (with an empty key: the caller knows it) on an unknown suffix or a bad number.
// Rates of data may be written in bits or in bytes; the result is always in bytes per second.
double parse_quantity(std::string_view text, Unit unit);

// The shortest text that parses back to the same value within 1e-9, e.g. "125 MB/s".
std::string format_quantity(double value, Unit unit);

// For people: three significant digits. 1234567 bytes -> "1.23 MB", 0.00042 s -> "420 us".
std::string human_quantity(double value, Unit unit);
// An accuracy or an error, with four digits that say something: 0.9000, 3.142e-05, 9.332e+15.
std::string human_quality(double quality);

}  // namespace tutti
