"""Help for tests of numerics: a pytest plugin with an emulated device, a dump directory and faults for each test."""
