// The recipes that come with the program: found beside it, wherever it was built or installed.
#pragma once

#include <string>
#include <vector>

namespace tutti {

// Where the recipes are: in the tree that the program was built from or installed into. Empty when
// there are none.
std::string recipes_folder();

// `name_or_file` if there is such a file, else the recipe of that name in `group` ("clusters",
// "tasks"). Throws ConfigError naming those that there are.
std::string find_recipe(const std::string& group, const std::string& name_or_file);

// The names of the recipes in a group, sorted.
std::vector<std::string> recipe_names(const std::string& group);

}  // namespace tutti
