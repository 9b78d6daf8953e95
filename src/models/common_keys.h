// Keys that several kinds of models have, and their bounds.
#pragma once

#include <string_view>
#include <vector>

#include "core/schema.h"

namespace tutti {

inline constexpr Bounds kWidth{1, 1 << 24};
inline constexpr Bounds kDropoutShare{0, 0.999};
inline constexpr Bounds kBlockCount{1, 1000};

// Jobs are read within bounds. These hold for settings that come from elsewhere: they throw
// ConfigError.
void require_within(const char* key, double value, Bounds bounds);
void require_within(const char* key, int64_t value, Bounds bounds);
void require_within(const char* key, const std::vector<int64_t>& values, Bounds bounds);

// Throws ConfigError when there are none.
void visit_channels(Visitor& visitor, std::vector<int64_t>& channels, const char* help);
void visit_hidden(Visitor& visitor, std::vector<int64_t>& hidden, std::string_view kind);
void visit_dropout(Visitor& visitor, double& dropout);
void visit_l2(Visitor& visitor, double& l2);

}  // namespace tutti
