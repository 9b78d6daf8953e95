// Who leaves where, what it costs, and how thresholds are chosen; what travels in few bits.
#include "strategies/early_exit/exits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "strategies/early_exit/activation_code.h"

namespace tutti {
namespace {

TEST(NormalisedEntropy, IsOneForEqualScoresAndZeroForCertainOnes) {
  EXPECT_DOUBLE_EQ(normalised_entropy(std::vector<float>{3, 3, 3, 3}), 1);
  EXPECT_DOUBLE_EQ(normalised_entropy(std::vector<float>{0, 1000, 0}), 0);
  // Two of four are as likely, the others out of the question: log 2 / log 4.
  EXPECT_NEAR(normalised_entropy(std::vector<float>{0, 0, -500, -500}), 0.5, 1e-12);
  // p = (3/4, 1/4).
  const float log3 = std::log(3.0F);
  const double expected = (0.75 * std::log(4.0 / 3) + 0.25 * std::log(4.0)) / std::log(2.0);
  EXPECT_NEAR(normalised_entropy(std::vector<float>{log3, 0}), expected, 1e-7);
}

TEST(NormalisedEntropy, NobodyLeavesAtAThresholdOfZero) {
  EXPECT_FALSE(leaves(0, 0));
  EXPECT_TRUE(leaves(0, 1e-9));
  EXPECT_FALSE(leaves(1, 1));
}

const ExitCosts kCosts{.answer_bytes = {1}, .forward_bytes = {100}};

TEST(Tally, CountsWhoLeavesAndWhatIsSent) {
  const Verdicts verdicts = {{{0.1F, 1, 1}, {0.5F, 2, 0}, {0.9F, 3, 0}},
                             {{0.2F, 4, 0}, {0.2F, 5, 1}, {0.2F, 6, 1}}};
  const ExitTally result = tally(verdicts, std::vector<double>{0.5}, kCosts);
  EXPECT_EQ(result.left, (std::vector<double>{1, 2}));
  EXPECT_EQ(result.correct, (std::vector<double>{1, 2}));
  EXPECT_DOUBLE_EQ(result.accuracy(), 1);
  EXPECT_DOUBLE_EQ(result.bytes, 3 * 1 + 2 * 100);
  EXPECT_DOUBLE_EQ(result.loss, 1 + 5 + 6);
}

Verdicts random_verdicts(size_t exits, size_t samples, uint64_t seed) {
  Random random(seed, Stream::kTest);
  Verdicts verdicts(exits);
  for (size_t exit = 0; exit < exits; ++exit)
    for (size_t i = 0; i < samples; ++i) {
      const double entropy = random.uniform();
      const double right = 0.6 + 0.1 * static_cast<double>(exit) - 0.4 * entropy;
      verdicts[exit].push_back(
          {static_cast<float>(entropy), 1.0F, random.uniform() < right ? 1.0F : 0.0F});
    }
  return verdicts;
}

// With at most as many samples as candidates, every threshold that makes a difference is tried.
TEST(ChooseThresholds, IsTheBestOfAllForOneExit) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Verdicts verdicts = random_verdicts(2, 60, seed);
    const double tolerance = 0.05;
    const double least = tally(verdicts, std::vector<double>{0}, kCosts).accuracy() - tolerance;
    double fewest = INFINITY;
    std::vector<double> trials = {0, 1};
    for (const ExitVerdict& verdict : verdicts[0]) trials.push_back(double{verdict.entropy});
    for (const double trial : trials) {
      const ExitTally result = tally(verdicts, std::vector<double>{trial}, kCosts);
      if (result.accuracy() >= least - 1e-12) fewest = std::min(fewest, result.bytes);
    }
    const ExitTally chosen =
        tally(verdicts, choose_thresholds(verdicts, tolerance, kCosts), kCosts);
    EXPECT_GE(chosen.accuracy(), least - 1e-12);
    // The last sample can only leave at a threshold above its entropy: one more may be sent.
    EXPECT_LE(chosen.bytes, fewest + 100) << seed;
  }
}

TEST(ChooseThresholds, KeepsToTheToleranceWithTwoExits) {
  const ExitCosts costs{.answer_bytes = {1, 1}, .forward_bytes = {100, 50}};
  const Verdicts verdicts = random_verdicts(3, 200, 7);
  const double all = tally(verdicts, std::vector<double>{0, 0}, costs).accuracy();
  double before = INFINITY;
  for (const double tolerance : {0.0, 0.05, 0.2, 1.0}) {
    const auto thresholds = choose_thresholds(verdicts, tolerance, costs);
    ASSERT_EQ(thresholds.size(), 2u);
    const ExitTally result = tally(verdicts, thresholds, costs);
    EXPECT_GE(result.accuracy(), all - tolerance - 1e-12);
    EXPECT_LE(result.bytes, before) << "more tolerance costs no more bytes";
    before = result.bytes;
  }
}

std::vector<float> some_values(size_t count, bool negative) {
  Random random(3, Stream::kTest);
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(random.normal());
    if (!negative) value = std::max(0.0F, value);
  }
  return values;
}

TEST(ActivationCode, KeepsTheNearestLevelInSoManyBits) {
  for (const bool negative : {false, true})
    for (const int64_t bits : {1, 2, 4, 8}) {
      const ActivationCode code(13, bits, negative);
      EXPECT_EQ(code.sample_bytes(), static_cast<size_t>((13 * bits + 7) / 8));
      const std::vector<float> values = some_values(3 * 13, negative);
      std::vector<std::byte> wire(3 * code.sample_bytes());
      std::vector<float> back(values.size());
      code.encode(values, wire);
      code.decode(wire, back);
      const float least = negative ? -1.0F : 0.0F;
      const float step = (1 - least) / static_cast<float>((1 << bits) - 1);
      for (size_t i = 0; i < values.size(); ++i) {
        const float clipped = std::clamp(values[i], least, 1.0F);
        EXPECT_LE(std::abs(back[i] - clipped), step / 2 + 1e-6F) << bits << " bits, " << values[i];
      }
      std::vector<std::byte> again(wire.size());
      code.encode(back, again);
      EXPECT_EQ(again, wire) << "levels keep their place";
    }
}

TEST(ActivationCode, FloatsTravelAsTheyAre) {
  const ActivationCode code(5, 32, false);
  const std::vector<float> values = {0.0F, -3.5F, 1e30F, -0.0F, 0.1F};
  std::vector<std::byte> wire(code.sample_bytes());
  std::vector<float> back(5), slope = {1, 2, 3, 4, 5};
  code.encode(values, wire);
  code.decode(wire, back);
  EXPECT_EQ(back, values);
  code.pass_back(values, slope);
  EXPECT_EQ(slope, (std::vector<float>{1, 2, 3, 4, 5}));
}

TEST(ActivationCode, GradientsPassWhereTheValueWasInRange) {
  const ActivationCode code(4, 1, false);
  std::vector<float> slope = {1, 2, 3, 4};
  code.pass_back(std::vector<float>{-0.1F, 0.0F, 1.0F, 1.1F}, slope);
  EXPECT_EQ(slope, (std::vector<float>{0, 2, 3, 0}));
}

}  // namespace
}  // namespace tutti
