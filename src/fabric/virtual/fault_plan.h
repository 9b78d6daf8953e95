// Turns the faults of a job into entries of the world's agenda.
#pragma once

namespace tutti::simulation {

class World;

void plan_faults(World& world);

}  // namespace tutti::simulation
