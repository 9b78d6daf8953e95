#include <gtest/gtest.h>
#include <sys/mman.h>

#include "models/model.h"
#include "tests/models/model_of.h"

namespace tutti {
namespace {

TEST(CostModel, ReportsRangesAndNeverTouchesItsMemory) {
  const Architecture a = make_architecture(model_of("lenet"), {1, 28, 28}, 10);
  const size_t bytes = a.parameter_count * sizeof(float);
  void* forbidden = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(forbidden, MAP_FAILED);
  const std::span<float> span(static_cast<float*>(forbidden), a.parameter_count);

  const auto model = kCostModels.whole(a, {span, span}, {});
  Batch batch;
  batch.samples.resize(3);
  std::vector<Range> ranges;
  EXPECT_EQ(model->gradient(batch, 1, [&](Range range) { ranges.push_back(range); }), 0);
  EXPECT_EQ(ranges, ready_ranges(a));
  EXPECT_EQ(model->gradient(batch, 1, {}), 0);
  EXPECT_EQ(model->evaluate(batch).count, 3U);
  EXPECT_EQ(model->evaluate(batch).loss, 0);
  std::vector<float> scores(30, 1);
  model->predict(batch, scores);
  EXPECT_EQ(scores, std::vector<float>(30, 0));
  EXPECT_EQ(model->parameters().data(), span.data());
  EXPECT_EQ(model->gradients().size(), a.parameter_count);
  munmap(forbidden, bytes);
}

}  // namespace
}  // namespace tutti
