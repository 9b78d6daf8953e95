// `tutti verify`: a bundle is run again, or a part of it, and each of its claims is confirmed or
// not.
//
// A bundle is somebody else's. Its jobs run as any job does, but read no files but those of data
// with the fingerprint that the bundle names, resume nothing and wait for no other machines.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "jobs/progress.h"
#include "testbed/bundle.h"
#include "testbed/claim_check.h"

namespace tutti {

struct VerifyOptions {
  std::string file;
  std::vector<std::string> part;  // strategies; empty: all
  size_t first_seeds = 0;         // so many of the bundle's seeds; 0: `seeds`
  std::vector<uint64_t> seeds;    // empty: all
  double most_s = 0;              // of running; 0: until it is done
  std::string data_dir;           // where the data files lie here; empty: where the job says
  std::string out;                // folder to keep the runs in; empty: they are removed
  size_t jobs = 0;                // virtual runs at once; 0: as many as there are cores
  ProgressStyle progress = ProgressStyle::kNone;
  size_t columns = 100;
};

struct Verification {
  int64_t schema = 1;
  std::string kind = "verification";
  std::string bundle;  // the file
  std::string name;    // of the comparison
  Verdict verdict = Verdict::kNotChecked;
  int64_t confirmed = 0, not_confirmed = 0, not_checked = 0;
  bool same_arithmetic = false;  // the processor and all versions are those of the bundle
  std::optional<Versions> versions_there, versions_here;
  std::optional<Machine> machine_there, machine_here;
  std::vector<std::string> strategies;  // that were run
  std::vector<uint64_t> seeds;
  std::vector<std::string> failed;  // runs that did not end here, and why
  std::vector<CheckedClaim> claims;
};
void visit(RecordVisitor& visitor, Verification& verification);

// Throws DataError or ConfigError when nothing can be run, and InterruptedError when `stop` was
// set.
Verification verify(const VerifyOptions& options, const std::atomic<bool>& stop);

// For people: what is not confirmed in full, the others by kind, or `all` of them one by one.
std::string verification_text(const Verification& verification, bool all);

}  // namespace tutti
