#include "testbed/record_reference.h"

#include <fmt/format.h>

#include "testbed/advice.h"
#include "testbed/bundle_file.h"
#include "testbed/claims.h"
#include "testbed/survey.h"
#include "testbed/verify.h"

namespace tutti {

std::vector<DescribedFile> described_files() {
  DocumentedTypes documented;
  const auto file = [&](const char* name, const char* summary, auto contents) {
    return DescribedFile{name, summary,
                         described_keys(
                             name, [&](RecordVisitor& v) { visit(v, contents); }, documented)};
  };
  return {
      file("run.json", "What a run leaves when it has ended, and what `tutti train --json` prints.",
           RecordedRun{}),
      file("compare.json", "What `tutti compare` makes of its runs, and prints with `--json`.",
           Comparison{}),
      file("survey.json", "What `tutti survey` makes of its comparisons, and prints with `--json`.",
           Survey{}),
      file("manifest.json", "What the bundles of `tutti compare --bundle` consist of.",
           BundleManifest{}),
      file("claims.json", "What a bundle claims, for `tutti verify` to confirm.", Claims{}),
      file("verification", "What `tutti verify` prints with `--json`.", Verification{}),
      file("advice", "What `tutti advise` prints with `--json`.", Advice{})};
}

std::string record_reference() {
  std::string text =
      "# Record reference\n\nEvery key of the files that runs, comparisons, surveys and bundles "
      "leave, and of an advice. "
      "Written by `tutti list records`; a test keeps it current.\nA value that is not known is "
      "null, or absent where the type says so. docs/definitions.md and docs/compare.md define the "
      "figures.\n";
  for (const DescribedFile& file : described_files())
    text += fmt::format("\n## {}\n\n{}\n\n{}", file.name, file.summary, key_table(file.keys));
  return text;
}

}  // namespace tutti
