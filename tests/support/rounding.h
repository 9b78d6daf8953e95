// How far two runs of one task may end up apart when they add the same terms in another order.
#pragma once

#include <algorithm>
#include <cmath>

#include "tests/support/parameters.h"

namespace tutti::testing_support {

// A gradient is a chain of sums of `terms` terms, off by about 4 sqrt(terms) u of its size for each
// layer (tests/models/shard_test.cpp), and every update rounds the parameters once more. Over a few
// steps nothing amplifies that: the bound is on how far the values of a parameter moved, and on
// their size.
class RoundingBound {
 public:
  RoundingBound(const Settings& task, const Settings& reference, double terms)
      : run_(trained(task + reference)), terms_(terms) {
    Job job = load_job("", task);
    const Data data = load_data(job.task.data, job.task.seed, job.base_dir);
    architecture_ = architecture_of(job, data);
    begin_.resize(architecture_.parameter_count);
    initialise(architecture_, job.task.seed, begin_);
  }

  void expect_close(const std::vector<float>& actual, const std::string& what) const {
    const std::vector<float>& expected = run_.parameters;
    ASSERT_EQ(actual.size(), expected.size());
    const auto layers = static_cast<double>(architecture_.layers.size());
    const double u = std::ldexp(1.0, -24), steps = static_cast<double>(run_.steps());
    for (const Parameter& parameter : architecture_.parameters) {
      double moved = 0, largest = 0;
      for (size_t i = parameter.range.begin; i < parameter.range.end; ++i) {
        moved = std::max(moved, std::abs(double{expected[i]} - double{begin_[i]}));
        largest = std::max(largest, std::abs(double{expected[i]}));
      }
      ASSERT_GT(moved, 0) << "there is something to compare";
      const double most = 4 * layers * std::sqrt(terms_) * u * moved + 2 * steps * u * largest;
      for (size_t i = parameter.range.begin; i < parameter.range.end; ++i)
        ASSERT_NEAR(actual[i], expected[i], most)
            << architecture_.kind << " on " << what << ", " << parameter.name << ", value " << i;
    }
  }

 private:
  Trained run_;
  double terms_;
  Architecture architecture_;
  std::vector<float> begin_;
};

}  // namespace tutti::testing_support
