// Small jobs for tests: run one with some settings and look at what came of it.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/temporary_folder.h"
#include "jobs/job.h"
#include "jobs/launcher.h"

namespace tutti::testing_support {

using tutti::TemporaryFolder;
using Settings = std::vector<std::string>;

inline Settings operator+(Settings a, const Settings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// 16 features, 4 classes, 389 samples to train on: 11 steps with a smaller last batch. Converges
// enough to be sensitive.
inline Settings logistic_task() {
  return {"task.data.kind=synthetic-classes",
          "task.data.samples=480",
          "task.data.features=16",
          "task.data.classes=4",
          "task.model=logistic",
          "task.global_batch=37",
          "task.epochs=1",
          "optimizer.kind=sgd",
          "optimizer.lr=0.1",
          "cluster.timeout=60"};
}

// Layers to spread over nodes, and batches that do not divide evenly.
inline Settings small_mlp(const std::string& hidden) {
  return {"task.data.kind=synthetic-classes",
          "task.data.samples=480",
          "task.data.features=16",
          "task.data.classes=4",
          "task.model.kind=mlp",
          "task.model.hidden=" + hidden,
          "task.model.dropout=0.2",
          "task.global_batch=37",
          "cluster.timeout=60"};
}

inline RunRecord run(const Settings& settings, const std::string& out = "") {
  Job job = load_job("", settings);
  const std::atomic<bool> never{false};
  return launch(job, {.out = out, .keep_files = !out.empty(), .progress = ProgressStyle::kNone},
                never);
}

// Why a job with these settings is refused, beginning with the key; empty when it is not.
inline std::string refusal(const Settings& settings) {
  try {
    Job job = load_job("", settings);
    resolve(job);
  } catch (const ConfigError& error) {
    return error.key() + ": " + error.what();
  }
  return "";
}

// The checksum of the final parameters, which must be the same on every worker that has them all.
inline std::string checksum(const Settings& settings) {
  const RunRecord record = run(settings);
  EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
  if (record.nodes.empty()) return "no node reported";
  for (const NodeReport& node : record.nodes)
    if (node.role == "worker" && !node.parameters_sha256.empty()) {
      EXPECT_EQ(node.parameters_sha256, record.nodes.front().parameters_sha256)
          << "node " << node.rank;
    }
  EXPECT_FALSE(record.nodes.front().parameters_sha256.empty());
  return record.nodes.front().parameters_sha256;
}

}  // namespace tutti::testing_support
