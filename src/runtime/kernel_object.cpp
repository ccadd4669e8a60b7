#include "runtime/kernel_object.h"

#include <algorithm>
#include <atomic>

#include "core/attribute_table.h"
#include "core/fork_guard.h"
#include "core/log.h"
#include "core/settings.h"
#include "core/text.h"
#include "frontend/grid_part.h"
#include "kiln/error.h"

namespace kiln {
namespace {

std::atomic<uint64_t> g_next_number{0};

// What code that is made ahead is not made for.
void make_for_any_example(LaunchForm& form, const TargetSpec& target) {
  form.threadgroups_are_even = form.arrays_are_plain = false;
  form.threads = {};
  if (traits_of(target.kind).form_use == FormUse::kWholeRow) form.simdgroups_are_full = false;
}

}  // namespace

std::string verbose_text(const KernelUnit& unit) {
  return concat("Generated source code for `", unit.name, "`:\n```\n", unit.text, "\n```");
}

KernelObject::KernelObject(KernelSpec spec, Context& context)
    : number_(g_next_number++),
      spec_(std::move(spec)),
      context_(context),
      text_(spec_.header, spec_.source, spec_.files) {
  std::string_view interface = interface_name(spec_.dialect);
  if (spec_.output_names && spec_.output_names->empty())
    throw ValueError(concat("[", interface, "] Must specify at least one output."));
  if (spec_.shared_memory < 0)
    throw ValueError(
        concat("[", interface, "] Expected `shared_memory` to be at least 0 but got ", spec_.shared_memory, "."));
  check_text(spec_.name, "name");
  check_text(spec_.source, "source");
  check_text(spec_.header, "header");
  if (spec_.input_names)
    for (const std::string& name : *spec_.input_names) check_name(name, "Input name");
  if (spec_.output_names)
    for (const std::string& name : *spec_.output_names) check_name(name, "Output name");
  if (spec_.input_names && spec_.output_names) check_distinct(*spec_.input_names, *spec_.output_names, {});
  std::vector<std::string> writable = spec_.compile_options.writable_inputs;
  std::ranges::sort(writable);
  if (auto twice = std::ranges::adjacent_find(writable); twice != writable.end())
    throw ValueError(concat(message_prefix(spec_.dialect), "`writable_inputs` names `", printable(*twice), "` twice."));
  if (spec_.input_names) check_writable_names(*spec_.input_names);
  if (!spec_.part.is_whole()) check_part(spec_.dialect, text_, printable(spec_.name));

  if (spec_.input_names)
    for (const std::string& name : *spec_.input_names) uses_shape_.push_back(body_uses_shape_of(name));
  auto ends_like_a_shape = [](const std::string& name) {
    return std::any_of(std::begin(kShapeSuffixes), std::end(kShapeSuffixes),
                       [&](std::string_view suffix) { return name.ends_with(suffix); });
  };
  cooperation_ = cooperation_of(spec_.dialect, text_);
  sees_threadgroups_ = !spec_.part.is_whole() || spec_.atomic_outputs || sees_threadgroups(spec_.dialect, text_);
  may_specialize_ = spec_.compile_options.specialize.value_or(settings().specialize);
  specializes_ = may_specialize_ && std::ranges::any_of(text_.identifiers(), ends_like_a_shape);
  knows_threadgroups_ = may_specialize_ && spec_.dialect == Dialect::kMetal &&
                        std::ranges::any_of(kAttributes, [&](const AttributeRow& attribute) {
                          return attribute.knows_threadgroups && text_.body_uses(attribute.name);
                        });
}

std::span<const std::string> KernelObject::input_names(const Call& call) const {
  return spec_.input_names ? std::span<const std::string>(*spec_.input_names) : call.input_names;
}

std::span<const std::string> KernelObject::output_names(const Call& call) const {
  return spec_.output_names ? std::span<const std::string>(*spec_.output_names) : call.output_names;
}

MadeCode KernelObject::compile_ahead(const Call& any_call, const TargetSpec& target, bool specialized) const {
  Call call = any_call;
  call.device.kind = target.kind;
  check(call);
  check_guards(call);
  KernelUnit unit = unit_for(call);
  // The call is an example: its arrays are not there, and other launches of its form are not as even.
  make_for_any_example(unit.form, target);
  // NVRTC makes nothing of known shapes.
  if (specialized && may_specialize(call) && !is_for_nvrtc(call)) set_known_shapes(unit, call);
  return context_.compile_ahead(unit, target);
}

bool FirstFew::admit(std::string_view group, std::string_view member, bool& is_new) {
  ForkGuard guard;
  std::lock_guard lock(mutex_);
  auto& members = members_.try_emplace(std::string(group)).first->second;
  if (members.contains(member)) return true;
  if (members.size() == most_) return false;
  is_new = members.emplace(member).second;
  return true;
}

void FirstFew::give_back(std::string_view group, std::string_view member) {
  ForkGuard guard;
  std::lock_guard lock(mutex_);
  auto found = members_.find(group);
  if (found == members_.end()) return;
  if (auto same = found->second.find(member); same != found->second.end()) found->second.erase(same);
}

std::string KernelObject::CallKey::with(bool has_threads, bool has_shapes, bool has_sizes) const {
  return concat(general(), has_threads ? threads() : "", has_shapes ? shapes() : "", has_sizes ? sizes() : "");
}

SingleFlight<Binary>::Found KernelObject::find_or_make_binary(KernelUnit& unit, Target& target) const {
  try {
    return context_.binary_for(unit, target);
  } catch (const MissingCompilerError&) {
    // A bundle may have the code that serves any form of launch.
    if (unit.form.is_general() && !unit.has_known_sizes()) throw;
  }
  if (unit.has_known_sizes()) {
    unit.drop_known_sizes();
    return find_or_make_binary(unit, target);
  }
  if (unit.form.threadgroups_are_even || unit.form.arrays_are_plain || unit.form.has_known_threads()) {
    make_for_any_example(unit.form, target.spec());
    return find_or_make_binary(unit, target);
  }
  unit.form = {};
  return context_.binary_for(unit, target);
}

KernelObject::Found KernelObject::find_or_compile(const Call& call) {
  const CallKey key = call_key(call);
  auto found_before = [&](std::shared_ptr<const Variant> variant) -> Found {
    log(LogCategory::kCache, spec_.name, ": memory hit");
    return {std::move(variant), CodeSource::kMemory};
  };
  if (std::shared_ptr<const Variant> variant = variants_.find(key.all)) return found_before(std::move(variant));
  bool knows_threads = !key.threads().empty(), knows_shapes = !key.shapes().empty(), knows_sizes = !key.sizes().empty();
  // Less special code is there when there were enough others before.
  if (knows_sizes)
    if (auto variant = variants_.find(key.without_sizes())) return found_before(std::move(variant));
  if (knows_shapes)
    if (auto variant = variants_.find(key.general_with_threads())) return found_before(std::move(variant));
  if (knows_threads && knows_shapes)
    if (auto variant = variants_.find(key.with(/*threads=*/false, /*shapes=*/true, /*sizes=*/false)))
      return found_before(std::move(variant));
  if (knows_threads)
    if (auto variant = variants_.find(key.general())) return found_before(std::move(variant));
  Target& target = context_.target(call.device);
  check_types(call);
  check_guards(call);
  const std::string general(key.general());
  // However threadgroups are shaped.
  const std::string_view group = std::string_view(general).substr(0, general.size() - kFormBytes);
  const std::string own_shapes(key.shapes()), own_threads(key.threads()), own_sizes(key.sizes());
  if (variants_.has_failed(general)) knows_threads = knows_shapes = knows_sizes = false;
  bool has_new_shapes = false, has_new_threads = false, has_new_sizes = false;
  knows_shapes = knows_shapes && shapes_.admit(group, own_shapes, has_new_shapes);
  knows_threads = knows_threads && threadgroups_.admit(group, own_threads, has_new_threads);
  knows_sizes = knows_sizes && sizes_.admit(group, own_sizes, has_new_sizes);
  const bool specialize = knows_threads || knows_shapes || knows_sizes;
  log(LogCategory::kCache, spec_.name, ": memory miss, ", knows_shapes ? "known shapes" : "any shapes",
      knows_threads ? ", known threads" : "", knows_sizes ? ", known sizes" : "");
  CodeSource source = CodeSource::kMemory;
  auto make = [&] {
    KernelUnit unit = unit_for(call);
    if (knows_shapes) set_known_shapes(unit, call);
    if (knows_sizes) set_known_sizes(unit, call);
    if (knows_threads) unit.form.threads = known_threads(call);
    auto binary = find_or_make_binary(unit, target);
    if (binary.made_now)
      source = binary.value->source;
    else
      log(LogCategory::kCache, spec_.name, ": memory hit, by another kernel with the same text");
    if (Recording* recording = context_.recording())
      recording->add(spec_, call, knows_shapes, threadgroup_of_launch(call));
    size_t bytes = binary.value->code->threadgroup_memory_bytes(), limit = target.threadgroup_memory_limit();
    if (bytes > limit)
      throw UnsupportedError(concat(message_prefix(spec_.dialect), "`", printable(spec_.name), "` needs ", bytes,
                                    " bytes of threadgroup memory, and the ", target.name(), " target has ", limit,
                                    "."));
    for (KernelParameter& parameter : unit.parameters)
      if (parameter.role == ParameterRole::kInput &&
          std::ranges::find(binary.value->written_inputs, parameter.argument) != binary.value->written_inputs.end())
        parameter.is_writable_input = true;
    std::vector<Dtype> inputs, outputs;
    for (const InputArray& input : call.inputs) inputs.push_back(input.dtype);
    for (const OutputArray& output : call.outputs) outputs.push_back(output.dtype);
    return std::make_shared<const Variant>(
        Variant{std::move(unit), binary.value, &target, std::move(inputs), std::move(outputs)});
  };
  if (!specialize) return {variants_.get(general, make).value, source};
  const std::string own = key.with(knows_threads, knows_shapes, knows_sizes);
  try {
    return {variants_.get(own, make).value, source};
  } catch (...) {
    if (has_new_shapes) shapes_.give_back(group, own_shapes);
    if (has_new_threads) threadgroups_.give_back(group, own_threads);
    if (has_new_sizes) sizes_.give_back(group, own_sizes);
    try {
      throw;
    } catch (const MissingCompilerError& error) {
      // A bundle may have the code that serves any shape.
      knows_shapes = knows_threads = knows_sizes = false;
      try {
        return {variants_.get(general, make).value, source};
      } catch (const MissingCompilerError&) {
      }
      throw error;
    } catch (const CompileError&) {
      // Shapes become constants only behind the front end: no other shape makes this text valid.
      auto rethrow = []() -> std::shared_ptr<const Variant> { throw; };
      return {variants_.get(general, rethrow).value, source};
    }
  }
}

}  // namespace kiln
