// A verification as it is shown and written.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "core/printable.h"
#include "testbed/verify.h"

namespace tutti {
namespace {

// A kind whose claims all hold is one line.
struct KindCount {
  int64_t confirmed = 0, checked = 0;
  double largest = 0;  // difference, as a share
};

std::string claim_lines(const CheckedClaim& checked) {
  return fmt::format("  {:<13}  {}\n                 {}\n", word_of(checked.verdict),
                     checked.claim.text, checked.finding);
}

std::string largest_text(double share) {
  return share == 0 ? "equal" : fmt::format("largest difference {:.3g} %", 100 * share);
}

std::string kinds_text(const Verification& v) {
  std::map<ClaimKind, KindCount> kinds;
  for (const CheckedClaim& checked : v.claims) {
    KindCount& kind = kinds[checked.claim.kind];
    if (checked.verdict == Verdict::kNotChecked) continue;
    ++kind.checked;
    kind.confirmed += checked.verdict == Verdict::kConfirmed ? 1 : 0;
    kind.largest = std::max(kind.largest, checked.difference.value_or(0));
  }
  std::string text;
  for (const auto& [kind, count] : kinds)
    text +=
        fmt::format("{:<16} {}\n", word_of(kind),
                    count.checked == 0 ? std::string("not checked")
                                       : fmt::format("{} of {} confirmed, {}", count.confirmed,
                                                     count.checked, largest_text(count.largest)));
  return text;
}

std::string where_text(const Verification& v) {
  if (v.same_arithmetic)
    return "The processor and all versions are those of the bundle, so equality is expected of "
           "what is simulated.\n";
  const auto cpu = [](const std::optional<Machine>& machine) {
    return machine ? machine->cpu : std::string("unknown");
  };
  return fmt::format(
      "Processor or versions differ ({} there, {} here): what follows from gradients has a "
      "tolerance, times and bytes of simulations have none.\n",
      cpu(v.machine_there), cpu(v.machine_here));
}

std::string verdict_text(const Verification& v) {
  std::string text =
      fmt::format("{} of {} claims are confirmed", v.confirmed, v.confirmed + v.not_confirmed);
  if (v.not_checked > 0) text += fmt::format("; {} were not checked", v.not_checked);
  if (v.verdict == Verdict::kConfirmed) return fmt::format("CONFIRMED: {}\n", text);
  if (v.verdict == Verdict::kNotConfirmed)
    return fmt::format("NOT CONFIRMED: {} of {} claims are not; {}\n", v.not_confirmed,
                       v.confirmed + v.not_confirmed, text);
  return fmt::format("NOT CHECKED: {}\n", text);
}

}  // namespace

void visit(RecordVisitor& v, Verification& r) {
  v.field("schema", r.schema, "Version of this description: 1");
  v.field("kind", r.kind, "`verification`");
  v.field("bundle", r.bundle, "The file");
  v.field("name", r.name, "Name of the comparison");
  std::string word(word_of(r.verdict));
  v.field("verdict", word, "`confirmed`, `not confirmed` or `not checked`");
  v.field("confirmed", r.confirmed, "Number of claims that are confirmed");
  v.field("not_confirmed", r.not_confirmed, "Number of claims that are not");
  v.field("not_checked", r.not_checked, "Number of claims whose runs were left out or did not end");
  v.field("same_arithmetic", r.same_arithmetic,
          "Whether processor and versions are those of the bundle: then equality is expected");
  v.field("versions_there", r.versions_there, "What the bundle was made with");
  v.field("versions_here", r.versions_here, "What it was verified with");
  v.field("machine_there", r.machine_there, "Where the bundle was made");
  v.field("machine_here", r.machine_here, "Where it was verified");
  v.field("strategies", r.strategies, "Strategies that were run again");
  v.field("seeds", r.seeds, "Seeds that were run again");
  v.field("failed", r.failed, "Runs that did not end here, and why");
  v.field("claims", r.claims, "Each claim with its verdict");
}

std::string verification_text(const Verification& verification, bool all) {
  std::string text = fmt::format(
      "{}: {}, seed{} {}\n", verification.name, fmt::join(verification.strategies, ", "),
      verification.seeds.size() == 1 ? "" : "s", fmt::join(verification.seeds, ", "));
  text += where_text(verification) + "\n";
  if (!all) text += kinds_text(verification) + "\n";
  for (const CheckedClaim& checked : verification.claims)
    if (all || checked.verdict == Verdict::kNotConfirmed) text += claim_lines(checked);
  for (const std::string& failed : verification.failed)
    text += fmt::format("  did not end here: {}\n", failed);
  return printable(text + verdict_text(verification));
}

}  // namespace tutti
