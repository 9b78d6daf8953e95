// Whether a claim is found again: the figures of the comparison that claims it beside those of the
// one that was run again.
#pragma once

#include <optional>
#include <string>

#include "testbed/claims.h"

namespace tutti {

enum class Verdict { kConfirmed, kNotConfirmed, kNotChecked };
constexpr auto words(Verdict) { return WordList<3>{"confirmed", "not confirmed", "not checked"}; }

struct CheckedClaim {
  Claim claim;
  Verdict verdict = Verdict::kNotChecked;
  std::string finding;               // in words: what is here, what was there, by how much
  std::optional<double> difference;  // the largest that was found, as a share of what is claimed
  double tolerated = 0;              // likewise
};
void visit(RecordVisitor& visitor, CheckedClaim& checked);

struct ClaimContext {
  const Comparison& there;  // that makes the claims
  const Comparison& here;   // that was run again
  bool same_arithmetic;     // the processor and all versions are the same
};

// Checks what figures say; the plan (ClaimKind::kPlan) is left to who knows both plans.
CheckedClaim check_claim(const Claim& claim, const ClaimContext& context);

// Returns whether arithmetic gives the same bits here: as far as names and versions tell.
bool same_arithmetic(const Comparison& there, const Comparison& here);

}  // namespace tutti
