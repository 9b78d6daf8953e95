// Words of records. They are kept as they were read, because another version may have words that
// this one does not know; what is asked of them is asked by the values of an enum.
#pragma once

#include <string_view>

#include "core/schema.h"

namespace tutti {

// Whether `word` names `value`. A word that is not known names none.
template <Worded Enum>
constexpr bool says(std::string_view word, Enum value) {
  return word == word_of(value);
}

}  // namespace tutti
