// Small jobs with sparse models.
#pragma once

#include "tests/strategies/parameter_server/runs.h"

namespace tutti::testing_support {

// 90 rows of which a step of 37 ratings touches most but not all.
inline Settings ratings_task() {
  return {"task.data={kind=\"synthetic-ratings\", samples=600, users=50, items=40, rank=2}",
          "task.model={kind=\"factorization\", rank=3}",
          "task.global_batch=37",
          "task.epochs=2",
          "optimizer.kind=sgd",
          "optimizer.lr=0.05",
          "cluster.timeout=60"};
}

inline Settings solo() { return {"strategy.kind=solo", "cluster.workers=1"}; }

}  // namespace tutti::testing_support
