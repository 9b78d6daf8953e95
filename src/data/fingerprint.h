// Fingerprints of data: equal for equal samples, answers and splits, however they were read. A run
// keeps them so that figures of different tasks are never taken for those of one.
#pragma once

#include <string>
#include <string_view>

#include "data/dataset.h"

namespace tutti {

// 32 hexadecimal digits each (BLAKE2b). The first reads all samples once, which for Fashion-MNIST
// takes a twentieth of a second.
std::string contents_fingerprint(const Dataset& dataset);
std::string split_fingerprint(const Splits& splits);
std::string text_fingerprint(std::string_view text);
// Of both, for who asks whether two machines read the same.
std::string fingerprint(const Data& data);

}  // namespace tutti
