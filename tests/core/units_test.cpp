#include "core/units.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/random.h"

namespace tutti {
namespace {

constexpr Unit kAll[] = {Unit::kSeconds,        Unit::kBytes, Unit::kBytesPerSecond,
                         Unit::kFlopsPerSecond, Unit::kWatts, Unit::kJoules};

TEST(Units, ReadsWhatPeopleWrite) {
  EXPECT_DOUBLE_EQ(parse_quantity("1 Gbit/s", Unit::kBytesPerSecond), 125e6);
  EXPECT_DOUBLE_EQ(parse_quantity("10 GB/s", Unit::kBytesPerSecond), 10e9);
  EXPECT_DOUBLE_EQ(parse_quantity("50 us", Unit::kSeconds), 50e-6);
  EXPECT_DOUBLE_EQ(parse_quantity("50us", Unit::kSeconds), 50e-6);
  EXPECT_DOUBLE_EQ(parse_quantity("  2.5  h ", Unit::kSeconds), 9000);
  EXPECT_DOUBLE_EQ(parse_quantity("16 GiB", Unit::kBytes), 16.0 * (1 << 30));
  EXPECT_DOUBLE_EQ(parse_quantity("20 GFLOP/s", Unit::kFlopsPerSecond), 20e9);
  EXPECT_DOUBLE_EQ(parse_quantity("1e3", Unit::kSeconds), 1000);
  EXPECT_DOUBLE_EQ(parse_quantity("65 W", Unit::kWatts), 65);
}

TEST(Units, RefusesWhatItCannotRead) {
  for (const Unit unit : kAll)
    for (const char* text :
         {"", " ", "fast", "nan", "inf", "-", "1 furlong", "1e999", "1 2", ". s"})
      EXPECT_THROW(parse_quantity(text, unit), ConfigError) << '"' << text << '"';
  EXPECT_THROW(parse_quantity("1 GB", Unit::kSeconds), ConfigError);
  EXPECT_THROW(parse_quantity("1 s", Unit::kBytes), ConfigError);
}

TEST(Units, AMessageNamesTheTextAndTheKnownUnits) {
  try {
    parse_quantity("3 parsec", Unit::kSeconds);
    FAIL();
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("3 parsec"), std::string::npos);
    EXPECT_NE(message.find("ms"), std::string::npos);
  }
}

TEST(Units, FormattedTextParsesBack) {
  Random random(1, Stream::kTest);
  for (const Unit unit : kAll)
    for (int i = 0; i < 2000; ++i) {
      const double value = std::exp(random.normal() * 12);
      const double back = parse_quantity(format_quantity(value, unit), unit);
      EXPECT_NEAR(back, value, std::abs(value) * 1e-9) << format_quantity(value, unit);
    }
}

TEST(Units, ZeroIsInTheBaseUnit) {
  EXPECT_EQ(format_quantity(0, Unit::kSeconds), "0 s");
  EXPECT_EQ(format_quantity(0, Unit::kBytes), "0 B");
  EXPECT_EQ(parse_quantity("0 s", Unit::kSeconds), 0);
}

TEST(Units, PeopleGetThreeDigits) {
  EXPECT_EQ(human_quantity(1234567, Unit::kBytes), "1.23 MB");
  EXPECT_EQ(human_quantity(0.00042, Unit::kSeconds), "420 us");
  EXPECT_EQ(human_quantity(125e6, Unit::kBytesPerSecond), "125 MB/s");
  EXPECT_EQ(human_quantity(59.5, Unit::kSeconds), "59.5 s");
  EXPECT_EQ(human_quantity(0.2291, Unit::kJoules), "229 mJ");
}

// What rounds up to the next unit is written in it.
TEST(Units, RoundingDoesNotWriteAThousandOfAUnit) {
  EXPECT_EQ(human_quantity(999999, Unit::kBytes), "1 MB");
  EXPECT_EQ(human_quantity(0.9999999, Unit::kSeconds), "1 s");
  EXPECT_EQ(human_quantity(999500, Unit::kBytes), "1 MB");
}

TEST(Units, TheLargestUnitIsWrittenWithoutAnExponent) {
  EXPECT_EQ(human_quantity(7200, Unit::kSeconds), "7200 s");
  EXPECT_EQ(human_quantity(123456, Unit::kWatts), "123 kW");
  EXPECT_EQ(human_quantity(-0.00042, Unit::kSeconds), "-420 us");
}

TEST(Units, ASmallErrorIsNotNought) {
  EXPECT_EQ(human_quality(0.9), "0.9000");
  EXPECT_EQ(human_quality(0.05), "0.0500");
  EXPECT_EQ(human_quality(0), "0.0000");
  EXPECT_EQ(human_quality(0.0062041), "0.006204");
  EXPECT_EQ(human_quality(9331700028486172.0), "9.332e+15");
  EXPECT_EQ(human_quality(0.0000314159), "3.142e-05");
  EXPECT_EQ(human_quality(NAN), "nan");
}

}  // namespace
}  // namespace tutti
