// Linked into every test program. The user's cache is never touched, and what is compiled does not depend on what ran
// before: tests of the cache make their own. The IR is verified after each pass.
#include <cstdlib>

// Before the objects of any file are made, some of which are kernels.
[[gnu::constructor(101)]] static void set() {
  setenv("KILN_CACHE", "off", 1);
  unsetenv("KILN_BUNDLE");
  setenv("KILN_VERIFY_PASSES", "on", 1);
}
