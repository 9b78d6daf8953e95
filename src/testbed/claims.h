// What a comparison claims, so that somebody else can confirm it or not: in plain words, and as
// figures with the tolerance within which they must be found again.
//
// Claims follow from the figures of the comparison alone, by the rules in claims.cpp and in
// docs/compare.md. So whoever reads claims makes them again from the table that lies beside them,
// and sees when the two do not belong together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/described.h"
#include "core/schema.h"
#include "testbed/comparison.h"

namespace tutti {

// Changes with the rules and the words, so that claims of one schema can be made again.
inline constexpr int64_t kClaimsSchema = 1;

enum class ClaimKind {
  kOrder,         // one strategy is before another
  kOutcome,       // how runs end, and which seeds reach the target
  kTimeToTarget,  // and steps
  kQuality,       // at the end
  kTime,          // of the whole training
  kTraffic,       // bytes, messages and steps
  kMemory,
  kEnergy,
  kCurve,  // quality along the way
  kPlan    // roles, settings that a planner chose, bytes and memory before the run
};
constexpr auto words(ClaimKind) {
  return WordList<10>{"order",   "outcome", "time to target", "quality", "time",
                      "traffic", "memory",  "energy",         "curve",   "plan"};
}

using SeedValues = std::vector<std::optional<double>>;

// How far a figure may be from what is claimed.
struct Tolerance {
  double share = 0;     // of the value
  double absolute = 0;  // in its unit; the larger of the two counts
};
void visit(RecordVisitor& visitor, Tolerance& tolerance);

struct Claim {
  ClaimKind kind = ClaimKind::kOrder;
  std::string text, strategy;
  std::string before;                        // order: who is slower
  std::vector<uint64_t> seeds;               // of the values
  std::map<std::string, SeedValues> values;  // by figure, of `strategy`
  SeedValues values_before;                  // order: of the other
  std::vector<std::string> statuses;         // outcome: by seed
  Tolerance same;                            // on the same kind of processor with the same versions
  Tolerance elsewhere;                       // on another
};
void visit(RecordVisitor& visitor, Claim& claim);

struct Claims {
  int64_t schema = kClaimsSchema;
  std::string kind = "claims";
  std::vector<Claim> claims;
};
void visit(RecordVisitor& visitor, Claims& claims);

Claims claims_of(const Comparison& comparison);

// The figure of a claim: a name among figures_over_seeds() or "quality.final".
const OverSeeds& claimed_figure(const ComparedStrategy& row, const std::string& name);

// The largest difference of `value` and `claimed` that is tolerated.
double tolerated(const Tolerance& tolerance, double claimed);

// What in a comparison does not agree with itself: means that do not follow from the values of the
// seeds. Empty: nothing.
std::string contradiction_in(const Comparison& comparison);

}  // namespace tutti
