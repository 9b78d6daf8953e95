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

// Suggests what a value that is none of `allowed` probably meant: one that is spelt nearly so, or
// our name for it. Returns "" when there is no suggestion.
std::string choice_hint(const std::string& value, const std::vector<std::string_view>& allowed);

// Returns whether `name` ("optimizer.momentum") is a setting that only some choices have.
bool depends_on_choice(const std::string& name);

}  // namespace tutti
