// Job: what to train, on what, to which quality, on which cluster. One validated TOML file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric/cluster.h"
#include "optimizers/optimizer.h"
#include "strategies/strategy.h"
#include "strategies/task.h"

namespace tutti {

struct Job {
  std::string name = "job";
  TaskConfig task;
  OptimizerConfig optimizer;
  std::string strategy_kind = "allreduce";
  std::shared_ptr<Strategy> strategy;  // never null once visited
  ClusterConfig cluster;
  std::string base_dir = ".";  // where relative paths in the job start
};

// Names every setting of a job to the visitor.
void visit(Visitor& visitor, Job& job);

// Reads a job file and applies `overrides` ("cluster.workers=8"). Throws ConfigError that names
// file, line, key and remedy. An empty path gives the default job.
Job load_job(const std::string& path, const std::vector<std::string>& overrides);

// The job with every setting written out; load_job() of it gives the same job.
std::string resolved_toml(Job& job);

// Checks everything that can be known without starting anything: each part for itself, then every
// pair of settings that could contradict each other.
void validate(const Job& job, const Data& data);

// All settings with types, defaults and meanings, as Markdown: docs/job_reference.md.
std::string job_reference();

}  // namespace tutti
