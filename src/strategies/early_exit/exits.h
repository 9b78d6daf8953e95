// Which exit a sample leaves by: normalised entropy against thresholds, what that gives, and how
// thresholds are chosen. Pure functions.
//
// Teerapittayanon, McDanel, Kung, "Distributed Deep Neural Networks over the Cloud, the Edge and
// End Devices", ICDCS 2017.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tutti {

// What one exit says about a sample, and how right that is.
struct ExitVerdict {
  float entropy = 0;  // of the softmax, 0 (certain) to 1 (any class as likely)
  float loss = 0;     // cross-entropy
  float correct = 0;  // 1 or 0
};

// -sum p log p / log(classes) of softmax(scores).
double normalised_entropy(std::span<const float> scores);
// Of each sample, one row of scores for each label.
void judge(std::span<const float> scores, std::span<const int32_t> labels,
           std::span<ExitVerdict> verdicts);
// The one rule: below, so that nobody leaves at a threshold of 0.
inline bool leaves(double entropy, double threshold) { return entropy < threshold; }

// What a sample costs: bytes that an exit sends for each sample that reaches it (the answer, or
// that there is none) and for each that goes on.
struct ExitCosts {
  std::vector<double> answer_bytes;   // of each exit but the last
  std::vector<double> forward_bytes;  // of each exit but the last
};

struct ExitTally {
  std::vector<double> left, correct;  // samples, by exit
  double samples = 0, loss = 0, bytes = 0;
  double accuracy() const;
  double bytes_per_sample() const { return samples > 0 ? bytes / samples : 0; }
};

// verdicts[exit][sample], the last exit's included; one threshold for each exit but the last.
using Verdicts = std::vector<std::vector<ExitVerdict>>;
ExitTally tally(const Verdicts& verdicts, std::span<const double> thresholds,
                const ExitCosts& costs);

// The thresholds with the fewest bytes among those whose accuracy is at most `tolerance` below that
// of sending every sample to the last exit; of equal ones the most accurate.
std::vector<double> choose_thresholds(const Verdicts& verdicts, double tolerance,
                                      const ExitCosts& costs);

}  // namespace tutti
