// The commands of the program: one file each. main.cpp fills these options from the command line.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jobs/training_footprint.h"

namespace tutti {

struct CommonOptions {
  bool json = false;   // print one JSON object (or list) on standard output
  bool quiet = false;  // no progress
};

struct JobOptions : CommonOptions {
  std::string job;                // path of the job file
  std::vector<std::string> sets;  // key=value
  std::string cluster;            // a file or a recipe's name; empty: the job's own
  std::string out;
};

struct TrainOptions : JobOptions {
  std::string progress;  // live | lines | json; empty: what suits standard error
};

struct CheckOptions : JobOptions {
  std::string before;  // another job file: only what changes from it to the job is printed
  // The next plan is checked: without these ranks, and with so many more workers.
  std::vector<int> without;
  int64_t with = 0;
};

struct CompareCommandOptions : JobOptions {
  std::vector<std::string> strategies;  // names, or all; empty: all
  std::vector<std::string> seeds;       // a list, or how many; empty: that of the job
  std::vector<std::string> tune;        // KEY=RANGE, at most one
  std::optional<int64_t> budget;        // trials of each strategy
  int jobs = 0;                         // virtual runs at once; 0: as many as cores
  bool no_sharing = false;              // every run computes its own gradients
  bool strict = false;                  // refuse damaged run folders
  bool verbose = false;                 // reasons in full, and definitions
  std::string group;                    // of the taxonomy
  std::string bundle;                   // file for others to verify; empty: none
};

struct PredictOptions : CommonOptions {
  std::string run;     // folder of a finished run
  std::string data;    // file to predict; empty: the test samples of the run's own data
  std::string labels;  // idx: file of labels
  std::string output;  // where the CSV goes; empty: standard output
};

struct ShowOptions : CommonOptions {
  std::vector<std::string> runs;  // folders of finished runs
};

struct AdviseCliOptions : CommonOptions {
  std::string job;
  std::vector<std::string> sets;
  std::string cluster;
  std::vector<std::string> strategies;
  int seeds = 0;
  bool quick = false;
  bool declared = false;
  std::string write;   // where to write the recommended job
  std::string budget;  // with a unit
  bool complete = false;
  bool no_cache = false;
  bool verbose = false;  // reasons in full
};

struct ReportOptions : CommonOptions {
  std::vector<std::string> paths;  // comparisons or folders of runs
  std::string out;                 // the page; empty: beside the comparison
  std::string tensorboard, trace, csv;
};

struct SurveyCommandOptions : CommonOptions {
  std::vector<std::string> tasks, strategies, seeds;
  std::string cluster = "rack-1g";
  std::string out;
};

struct JoinCommand : CommonOptions {
  std::string address;   // of the launcher
  std::string token;     // empty: from the environment
  std::string data_dir;  // where data files lie here
};

struct BenchOptions : CommonOptions {
  std::string what;  // allreduce | train | deterministic | ps | virtual | network | federated | ...
  std::vector<int> processes;     // allreduce, network; empty: 2 and 4, or 2, 4 and 8 hosts
  int rounds = 5;                 // interleaved repetitions
  std::vector<std::string> only;  // of its parts: these alone; empty: all
  std::string out;                // also write the JSON here
};

struct DoctorOptions : CommonOptions {
  std::string write_cluster;  // where to write this machine as a cluster; empty: nowhere
};

struct FootprintOptions : CommonOptions {
  TrainingDescription training;
  std::string country = "world";
  std::string intensity;  // with its unit; empty: that of the country
  double price = FootprintConfig{}.price;
  std::string currency = FootprintConfig{}.currency;
};

struct VerifyCommandOptions : CommonOptions {
  std::string file;
  std::vector<std::string> part, seeds;  // strategies; a list of seeds, or how many
  std::string max_time;                  // with its unit; empty: no limit
  std::string data_dir;
  std::string out;  // empty: the runs are removed
  int jobs = 0;
  bool all = false;  // print every claim
};

// Each returns the exit code of the program (see fabric/outcome.h) or throws.
int run_train(const TrainOptions& options, const std::atomic<bool>& stop);
int run_compare(const CompareCommandOptions& options, const std::atomic<bool>& stop);
int run_join(const JoinCommand& options, const std::atomic<bool>& stop);
int run_check(const CheckOptions& options);
int run_predict(const PredictOptions& options);
int run_show(const ShowOptions& options);
int run_advise(const AdviseCliOptions& options, const std::atomic<bool>& stop);
int run_report(const ReportOptions& options);
int run_survey(const SurveyCommandOptions& options, const std::atomic<bool>& stop);
int run_verify(const VerifyCommandOptions& options, const std::atomic<bool>& stop);
int run_list(const std::string& kind, const CommonOptions& options);
int run_footprint(const FootprintOptions& options);
int run_doctor(const DoctorOptions& options, const std::atomic<bool>& stop);
int run_bench(const BenchOptions& options, const std::atomic<bool>& stop);

}  // namespace tutti
