// Linked into every test program: the user's cache is never touched, and what is compiled does not depend on what ran
// before. Tests of the cache make their own.
#include <cstdlib>

namespace {
[[maybe_unused]] const int g_off = setenv("KILN_CACHE", "off", 1) + unsetenv("KILN_BUNDLE");
}
