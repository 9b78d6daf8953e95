// What changes between two plans, in words: `tutti check --diff` prints it.
#pragma once

#include <string>
#include <vector>

#include "jobs/resolve.h"

namespace tutti {

struct PlanChange {
  std::string about;  // "roles", "memory"
  std::string text;   // "4 workers -> 4 workers, 1 server"
};

// Returns nothing for plans that are alike in what matters to their users.
std::vector<PlanChange> plan_changes(const Resolved& before, const Resolved& after);

// Which nodes have other ranks in the next plan, and whether hosts and racks are dealt anew.
std::vector<PlanChange> membership_changes(const Plan& before, const MembershipChange& change,
                                           const Plan& after);

}  // namespace tutti
