// Documents a description (core/described.h): one line for each key.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <typeindex>
#include <vector>

#include "core/described.h"

namespace tutti {

struct DescribedKey {
  std::string key;   // "nodes[].rank"
  std::string type;  // "whole number"
  Presence presence = Presence::kNeeded;
  std::string meaning;
};

// Where each type was documented first: what has been said of one file is not said again.
struct DocumentedType {
  std::string file, path;
};
using DocumentedTypes = std::map<std::type_index, DocumentedType>;

// Calls `visit` with a visitor that notes the keys of what it visits. This should be a fresh value,
// because its lists get one element. `file` is named where a later one refers back.
std::vector<DescribedKey> described_keys(const std::string& file,
                                         const std::function<void(RecordVisitor&)>& visit,
                                         DocumentedTypes& documented);

// As a table in Markdown.
std::string key_table(const std::vector<DescribedKey>& keys);

}  // namespace tutti
