// Documents every key of the files that runs, comparisons, surveys and bundles leave behind, from
// the descriptions that they are written and read by.
#pragma once

#include <string>
#include <vector>

#include "core/described_reference.h"

namespace tutti {

struct DescribedFile {
  std::string name;     // "run.json"
  std::string summary;  // in a sentence
  std::vector<DescribedKey> keys;
};
std::vector<DescribedFile> described_files();

// The contents of docs/record_reference.md.
std::string record_reference();

}  // namespace tutti
