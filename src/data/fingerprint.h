// Fingerprints of data, equal for equal samples, answers and splits in whatever way they were read.
// A run keeps them so that figures of different tasks are never mixed up.
#pragma once

#include <string>
#include <string_view>

#include "data/dataset.h"

namespace tutti {

// Each fingerprint is 32 hexadecimal digits (BLAKE2b). The first one reads all samples once, which
// takes a twentieth of a second for Fashion-MNIST.
std::string contents_fingerprint(const Dataset& dataset);
std::string split_fingerprint(const Splits& splits);
std::string text_fingerprint(std::string_view text);
// Covers contents and split, to tell whether two machines read the same data.
std::string fingerprint(const Data& data);

}  // namespace tutti
