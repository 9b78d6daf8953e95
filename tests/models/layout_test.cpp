#include "models/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/model.h"
#include "tests/models/model_of.h"

namespace tutti {
namespace {

const Architecture& lenet() {
  static const Architecture a =
      make_architecture(model_of("lenet", {{"channels", {3, 4}}, {"hidden", {5}}}), {2, 20, 20}, 3);
  return a;
}

// Two outputs, three inputs, a kernel of 1 x 2: value "oiw" lies in memory at o, w, i.
TEST(Layout, ExportsOhwiAsOihw) {
  const Parameter weight{
      .name = "conv1.weight", .shape = {2, 3, 1, 2}, .range = {1, 13}, .channels_last = true};
  const std::vector<float> flat = {-1, 0, 10, 20, 1, 11, 21, 100, 110, 120, 101, 111, 121, -1};
  std::vector<float> out(12);
  export_parameter(weight, flat, out);
  EXPECT_EQ(out, (std::vector<float>{0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121}));
  std::vector<float> back(14, -1);
  import_parameter(weight, out, back);
  EXPECT_EQ(back, flat);
}

TEST(Layout, RoundTripsEveryParameterAndTouchesNothingElse) {
  std::vector<float> flat(lenet().parameter_count);
  std::iota(flat.begin(), flat.end(), 0.0F);
  std::vector<float> rebuilt(flat.size(), -1);
  for (const Parameter& parameter : lenet().parameters) {
    std::vector<float> values(parameter.range.size());
    export_parameter(parameter, flat, values);
    import_parameter(parameter, values, rebuilt);
    std::sort(values.begin(), values.end());  // a permutation of its range
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(values[i], static_cast<float>(parameter.range.begin + i));
  }
  EXPECT_EQ(rebuilt, flat);
}

TEST(Layout, SizesMustFit) {
  std::vector<float> flat(lenet().parameter_count), small(1);
  EXPECT_THROW(export_parameter(lenet().parameters[0], flat, small), std::logic_error);
  EXPECT_THROW(import_parameter(lenet().parameters[0], small, flat), std::logic_error);
}

TEST(Initialise, IsAFunctionOfTheSeed) {
  const size_t count = lenet().parameter_count;
  std::vector<float> a(count), b(count, 7), c(count);
  initialise(lenet(), 1, a);
  initialise(lenet(), 1, b);
  initialise(lenet(), 2, c);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

TEST(Initialise, IsUniformWithinPytorchsBound) {
  const Architecture a = make_architecture(model_of("lenet"), {1, 28, 28}, 10);
  std::vector<float> values(a.parameter_count);
  initialise(a, 3, values);
  for (const Parameter& parameter : a.parameters) {
    double sum = 0, squares = 0, largest = 0;
    for (size_t i = parameter.range.begin; i < parameter.range.end; ++i) {
      const auto value = static_cast<double>(values[i]);
      sum += value;
      squares += value * value;
      largest = std::max(largest, std::abs(value));
    }
    const auto n = static_cast<double>(parameter.range.size());
    const double bound = parameter.init_bound;
    EXPECT_LE(largest, bound * (1 + 1e-7)) << parameter.name;
    if (n < 1000) continue;
    EXPECT_NEAR(sum / n, 0, 4 * bound / std::sqrt(3 * n)) << parameter.name;
    EXPECT_NEAR(squares / n, bound * bound / 3, 0.05 * bound * bound) << parameter.name;
  }
}

// The draw for one parameter depends on nothing but its position and size.
TEST(Initialise, DoesNotDependOnTheOtherParameters) {
  const Architecture narrow = make_architecture(model_of("mlp", {{"hidden", {4}}}), {8}, 2);
  const Architecture wide = make_architecture(model_of("mlp", {{"hidden", {4}}}), {8}, 9);
  std::vector<float> a(narrow.parameter_count), b(wide.parameter_count);
  initialise(narrow, 1, a);
  initialise(wide, 1, b);
  EXPECT_TRUE(std::equal(a.begin(), a.begin() + 36, b.begin()));
}

}  // namespace
}  // namespace tutti
