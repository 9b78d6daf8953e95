// What was probably meant by a key that is not a setting where it stands.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

// `prefix` is the table it stands in ("cluster."), `known` what that table has: "did you mean
// 'task.epochs'?", "it needs cluster.fabric = \"virtual\"", or all that there is.
std::string hint_for(const std::string& prefix, const std::string& key,
                     const std::set<std::string>& known);

// What was probably meant by a value that is none of `allowed`: one that is spelt nearly so, or
// what this program calls it. "": nobody knows.
std::string choice_hint(const std::string& value, const std::vector<std::string_view>& allowed);

// Whether `name` ("optimizer.momentum") is a setting that exists with some choices only.
bool depends_on_choice(const std::string& name);

}  // namespace tutti
