// Job: what to train, on what, to which quality, on which cluster. One validated TOML file.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fabric/cluster.h"
#include "jobs/footprint.h"
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
  FootprintConfig footprint;
  std::string base_dir = ".";  // where relative paths in the job start
  // [[compare]]: this job as each entry changes it, named after the entry.
  std::vector<Job> compare;
  // Where each setting was given, "job.toml:12" or "command line"; "" is the job as a whole.
  std::map<std::string, std::string> places;
  // Messages about settings of the file that do not exist for a kind set on the command line.
  std::vector<std::string> dropped;
};

// Where `key`, or else the table around it, was given: "job.toml:12: ". Empty when nowhere.
std::string place_in(const std::map<std::string, std::string>& places, std::string key);

// `problem`, which is about the setting `name`, with where `key` was given and, where the text
// lacks it, with the name: "job.toml:12: task.data.label: there is no column ...". They differ by
// the prefix of a [[compare]] entry alone.
std::string placed(const std::map<std::string, std::string>& places, const std::string& key,
                   const std::string& name, const std::string& problem);

// Names every setting of a job to the visitor.
void visit(Visitor& visitor, Job& job);

// Reads a job file and applies `overrides` ("cluster.workers=8"). Throws ConfigError that names
// file, line, key and remedy. An empty path gives the default job. The [cluster] of the file
// `cluster_path`, if given, takes the place of the job's own.
Job load_job(const std::string& path, const std::vector<std::string>& overrides,
             const std::string& cluster_path = "");

// A copy that shares nothing with `job`, with `settings` ("task.seed=3") on top of it.
Job with_settings(const Job& job, const std::vector<std::string>& settings);

// The same of a text; errors call it `file`. Its paths must be absolute.
Job parse_job(const std::string& text, const std::string& file);

// The job with every setting written out; load_job() of it gives the same job.
std::string resolved_toml(const Job& job);
// Its [strategy] table alone, as JSON.
std::string strategy_settings(const Job& job);

// A setting as documented. `table` is empty for those outside of any.
struct Setting {
  std::string table, key, values, preset, meaning;
  std::string needs;  // the choices that it exists with: `cluster.fabric = "virtual"`; "": with all
};
std::vector<Setting> job_settings();
// All of them as Markdown: docs/job_reference.md.
std::string job_reference();

}  // namespace tutti
