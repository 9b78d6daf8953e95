// A computation that every machine can do, to tell how fast a node is: what makes the times of two
// machines comparable.
#pragma once

namespace tutti {

// Multiplies two matrices of 192 x 192 floats by plain loops for about 20 ms on the calling thread,
// and returns the FLOP/s of the fastest repetition.
double measure_reference_flops();

}  // namespace tutti
