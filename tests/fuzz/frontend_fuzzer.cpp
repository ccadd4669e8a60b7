// libFuzzer on the lexer and the front end of both dialects.
#include "generated_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (kiln::Dialect dialect : {kiln::Dialect::kMetal, kiln::Dialect::kCuda}) {
    kiln::Choices choices({data, size});
    kiln::generate_unit(kiln::generate_text(choices), dialect);
  }
  return 0;
}
