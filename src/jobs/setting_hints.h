// What was probably meant by a key that is not a setting where it stands.
#pragma once

#include <set>
#include <string>

namespace tutti {

// `prefix` is the table it stands in ("cluster."), `known` what that table has: "did you mean
// 'task.epochs'?", "it needs cluster.fabric = \"virtual\"", or all that there is.
std::string hint_for(const std::string& prefix, const std::string& key,
                     const std::set<std::string>& known);

}  // namespace tutti
