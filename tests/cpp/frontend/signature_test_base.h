// A request for a signature, with everything that it views.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frontend/signature.h"

namespace kiln {

struct SignatureCase {
  std::string name = "k";
  std::string header;
  std::string body = "out[0] = 1;";
  std::vector<std::string> input_names;
  std::vector<InputType> inputs;
  std::vector<std::string> output_names = {"out"};
  std::vector<Dtype> outputs = {Dtype::kFloat32};
  std::vector<TemplateArgument> template_arguments;
  bool atomic_outputs = false;
  SignatureStyle style = SignatureStyle::kWhereUsed;

  KernelUnit write(KernelUnit (*writer)(const SignatureRequest&)) const {
    KernelText text(header, body);
    return writer({text, name, input_names, inputs, output_names, outputs, template_arguments, atomic_outputs, style});
  }
};

inline constexpr InputType kArray{Dtype::kFloat32, false, false};
inline constexpr InputType kSmallArray{Dtype::kFloat32, false, true};
inline constexpr InputType kScalar{Dtype::kFloat32, true, true};

}  // namespace kiln
