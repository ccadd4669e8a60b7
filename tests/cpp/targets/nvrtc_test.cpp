// CUDA units through NVRTC, without a GPU: what is compiled, what is said, what errors say.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/diagnostic.h"
#include "core/gpu_image.h"
#include "core/library_folders.h"
#include "frontend/signature.h"
#include "sanitizers.h"
#include "targets/cuda/device_text.h"
#include "targets/cuda/nvrtc_compiler.h"
#include "targets/cuda/nvrtc_diagnostics.h"

namespace kiln {
namespace {

struct Kernel {
  std::string body;
  std::string header = {};
  Dtype in = Dtype::kFloat32;
  Dtype out = Dtype::kFloat32;
  std::vector<TemplateArgument> template_arguments = {};

  KernelUnit unit() const {
    KernelText text(header, body);
    std::vector<std::string> inputs = {"x"}, outputs = {"y"};
    std::vector<InputType> input_types(1);
    input_types[0].dtype = in;
    std::vector<Dtype> output_types = {out};
    return write_cuda({text, "kernel", inputs, input_types, outputs, output_types, template_arguments, false, {}});
  }
};

class Nvrtc : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    add_package_folder(std::filesystem::path(KILN_TEST_NVRTC_FOLDER).parent_path().parent_path());
    // A sanitizer's dlopen does not search the folder of the library that calls it.
    if (!kSanitized) return;
    for (const auto& file : std::filesystem::directory_iterator(KILN_TEST_NVRTC_FOLDER))
      if (file.path().filename().string().starts_with("libnvrtc-builtins.so")) dlopen(file.path().c_str(), RTLD_LAZY);
  }

  CompileResult compile(const KernelUnit& unit, const char* gpu = "sm_90", bool keep_stages = false) {
    return compiler_->compile({unit, {DeviceKind::kNvidia, gpu, ""}, keep_stages});
  }
  CompileResult compile(const Kernel& kernel, const char* gpu = "sm_90") { return compile(kernel.unit(), gpu); }

  // The first diagnostic as a user sees it.
  std::string message(const Kernel& kernel) {
    CompileResult result = compile(kernel);
    if (result.status != CompileStatus::kInvalid || result.report.diagnostics.empty()) return "no error";
    return render(result.report.diagnostics[0]);
  }

  std::unique_ptr<Compiler> compiler_ = make_nvrtc_compiler("");
};

std::string entry_of(const CompileResult& result) {
  GpuImageHeader header;
  std::memcpy(&header, result.binary.data(), sizeof header);
  return reinterpret_cast<const char*>(result.binary.data()) + header.entry_offset;
}

TEST_F(Nvrtc, FindsIncludedFilesAndSaysWhereTheirErrorsAre) {
  KernelUnit unit = Kernel{.body = "y[threadIdx.x] = twice(x[threadIdx.x]);", .header = "#include \"a.h\"\n"}.unit();
  auto quoted = unit.text.find("\"a.h\"");
  unit.inclusions = {{quoted, quoted + 5, 0}};
  unit.included_files = {{"folder/a.h", "#include \"b.h\"\n", {{9, 14, 1}}},
                         {"folder/b.h", "#pragma once\n__device__ float twice(float a) { return 2 * a; }\n", {}}};
  unit.source_map.included_first_lines = {1000, 2000};
  EXPECT_EQ(compile(unit).status, CompileStatus::kOk);

  unit.included_files[1].text = "\n__device__ float twice(float a) { return 2 * b; }\n";
  CompileResult result = compile(unit);
  ASSERT_EQ(result.status, CompileStatus::kInvalid);
  const Diagnostic& diagnostic = result.report.diagnostics.at(0);
  EXPECT_EQ(diagnostic.file, "folder/b.h");
  EXPECT_EQ(diagnostic.text, SourceText::kIncluded);
  EXPECT_EQ(diagnostic.line, 2);
  EXPECT_EQ(diagnostic.message, "identifier \"b\" is undefined");
  EXPECT_EQ(diagnostic.source_line, "__device__ float twice(float a) { return 2 * b; }");
}

TEST_F(Nvrtc, MakesAnImageOfMachineCode) {
  Kernel kernel{"y[threadIdx.x] = exp(x[threadIdx.x]) + x_shape[0] + x_strides[1] + x_ndim;"};
  KernelUnit unit = kernel.unit();
  CompileResult result = compile(unit);
  ASSERT_EQ(result.status, CompileStatus::kOk) << result.report.log;
  EXPECT_EQ(result.engine, "nvrtc");
  ASSERT_GT(result.binary.size(), sizeof(GpuImageHeader));
  GpuImageHeader header;
  std::memcpy(&header, result.binary.data(), sizeof header);
  EXPECT_EQ(header.magic, kGpuImageMagic);
  EXPECT_EQ(header.version, kGpuImageVersion);
  EXPECT_EQ(header.total_bytes, result.binary.size());
  EXPECT_EQ(header.kind, GpuCodeKind::kCubin);
  EXPECT_EQ(header.block_bytes, gpu_block_layout(unit).bytes);
  EXPECT_EQ(header.block_bytes, 8u + 40 + 80 + 8 + 8);
  EXPECT_EQ(header.code_offset + header.code_bytes, header.total_bytes);
  EXPECT_EQ(std::memcmp(result.binary.data() + header.code_offset,
                        "\x7f"
                        "ELF",
                        4),
            0);
  std::string entry = entry_of(result);
  EXPECT_TRUE(entry.starts_with("_ZN3mlx4core2cu")) << entry;
  EXPECT_NE(entry.find("custom_kernel_kernel"), std::string::npos);
}

TEST_F(Nvrtc, GivesPtxToGpusThatItDoesNotKnow) {
  CompileResult result = compile(Kernel{"y[0] = x[0];"}, "sm_999");
  ASSERT_EQ(result.status, CompileStatus::kOk) << result.report.log;
  GpuImageHeader header;
  std::memcpy(&header, result.binary.data(), sizeof header);
  EXPECT_EQ(header.kind, GpuCodeKind::kPtx);
  std::string ptx(reinterpret_cast<const char*>(result.binary.data()) + header.code_offset);
  EXPECT_EQ(ptx.size() + 1, header.code_bytes);
  EXPECT_NE(ptx.find(".entry " + entry_of(result)), std::string::npos);
}

TEST_F(Nvrtc, RefusesGpusThatAreTooOld) {
  CompileResult result = compile(Kernel{"y[0] = x[0];"}, "sm_35");
  ASSERT_EQ(result.status, CompileStatus::kUnsupported);
  EXPECT_NE(result.report.diagnostics[0].message.find("makes no code for sm_35; the oldest GPU that it knows is sm_"),
            std::string::npos);
}

TEST_F(Nvrtc, CompilesForOneGpuAlone) {
  EXPECT_EQ(compile(Kernel{"y[0] = x[0];"}, "sm_90a").status, CompileStatus::kOk);
}

TEST_F(Nvrtc, DeclaresWhatABodyMentions) {
  struct Case {
    Kernel kernel;
    std::vector<const char*> has, has_not;
  };
  const Case cases[] = {
      {{"y[0] = x[0];"}, {"WARP_SIZE"}, {"struct __align__(2) __half", "namespace cooperative_groups", "elem_to_loc"}},
      {{"y[0] = x[0];", "", Dtype::kFloat16}, {"struct __align__(2) __half"}, {"__hadd2", "__nv_bfloat16"}},
      {{"half2 h = __float2half2_rn(x[0]); y[0] = h.x;"}, {"__hadd2"}, {"__nv_bfloat16"}},
      // What only a functions' part declares brings the type's.
      {{"auto h = __halves2half2(x[0], x[1]); y[0] = h.y;"},
       {"struct __align__(2) __half", "__hadd2"},
       {"__nv_bfloat16"}},
      {{"auto h = __float22bfloat162_rn(make_float2(x[0], x[1])); y[0] = h.y;"},
       {"__hadd2"},
       {"struct __align__(2) __half"}},
      {{"y[0] = __nv_half(x[0]);"}, {"struct __align__(2) __half"}, {"__hadd2"}},
      {{"y[0] = __float2half_rn(x[0]);"}, {"struct __align__(2) __half"}, {"__hadd2"}},
      {{"y[0] = __float2half_rz(x[0]);"}, {"__hadd2"}, {"__nv_bfloat16"}},
      {{"y[0] = __float2bfloat16_rn(x[0]);"}, {"__nv_bfloat16"}, {"__hadd2"}},
      {{"y[0] = __float2bfloat16_rz(x[0]);"}, {"__nv_bfloat16", "__hadd2"}, {}},
      {{"half a = x[0]; nv_bfloat16 b = x[1]; y[0] = float(__hmax(a, a)) + float(__hmax(b, b));"},
       {"__half2half2", "__bfloat162bfloat162"},
       {}},
      {{"T v = x[0]; y[0] = v;", "", Dtype::kFloat32, Dtype::kFloat32, {{"T", Dtype::kBFloat16}}},
       {"__nv_bfloat16"},
       {"struct __align__(2) __half"}},
      {{"cg::this_grid(); y[0] = x[0];"},
       {"namespace cooperative_groups"},
       {"__half", "#include <cooperative_groups.h>"}},
      {{"y[0] = x[x_strides[0]];"}, {"using Strides"}, {"namespace cooperative_groups"}},
      {{"y[0] = x[0]; // cooperative_groups, half, cuda"}, {}, {"namespace cooperative_groups", "__half", "#include"}},
  };
  for (const Case& item : cases) {
    KernelUnit unit = item.kernel.unit();
    EXPECT_FALSE(asks_for_cuda_headers(unit));
    NvrtcPrefix prefix = nvrtc_prefix(unit, false);
    for (const char* text : item.has) EXPECT_NE(prefix.text.find(text), std::string::npos) << item.kernel.body << text;
    for (const char* text : item.has_not)
      EXPECT_EQ(prefix.text.find(text), std::string::npos) << item.kernel.body << text;
    CompileResult result = compile(unit);
    EXPECT_EQ(result.status, CompileStatus::kOk) << result.report.log;
    EXPECT_TRUE(result.report.diagnostics.empty()) << result.report.log;
  }
}

TEST_F(Nvrtc, TakesCudasHeadersWhereTheTextAsksForThem) {
  EXPECT_TRUE(asks_for_cuda_headers(Kernel{"y[0] = x[0];", "#include <cuda_fp16.h>"}.unit()));
  EXPECT_TRUE(asks_for_cuda_headers(Kernel{"y[0] = cuda::std::abs(x[0]);"}.unit()));
  KernelUnit unit = Kernel{"y[0] = x[0];", "#include <cuda_fp16.h>", Dtype::kFloat16}.unit();
  NvrtcPrefix prefix = nvrtc_prefix(unit, true);
  EXPECT_NE(prefix.text.find("#include <cuda_fp16.h>"), std::string::npos);
  EXPECT_EQ(prefix.text.find("struct __align__(2) __half"), std::string::npos);
  EXPECT_FALSE(prefix.is_lean);
}

TEST_F(Nvrtc, ShowsErrorsInTheCallersLines) {
  EXPECT_EQ(message({"int i = threadIdx.x;\n  y[i] = x[j];\n"}),
            "source:2:12: error: identifier \"j\" is undefined\n"
            "    y[i] = x[j];\n"
            "             ^");
  EXPECT_EQ(message({"y[0] = f(x[0]);", "// helper\n__device__ float f(float v) { return v + w; }"}),
            "header:2:42: error: identifier \"w\" is undefined\n"
            "  __device__ float f(float v) { return v + w; }\n"
            "                                           ^");
  // Bytes that are no column of their own, and tabs.
  EXPECT_EQ(message({"/* \xc3\xa4 */\ty[0] = q;"}),
            "source:1:17: error: identifier \"q\" is undefined\n"
            "  /* \xc3\xa4 */\ty[0] = q;\n"
            "         \t       ^");
  // What is missing at the end.
  EXPECT_EQ(message({"y[0] = x[0]"}),
            "source:1:12: error: expected a \";\"\n"
            "  y[0] = x[0]\n"
            "             ^");
  EXPECT_EQ(message({"if (x[0] > 0) { y[0] = x[0];\n\n"}).substr(0, 34), "source:1:29: error: expected a \"}\"");
}

TEST_F(Nvrtc, ShowsErrorsInDeclarationsWhereTheTextAskedForThem) {
  EXPECT_EQ(message({"\nauto t = cg::tiled_partition<33>(cg::this_thread_block());\ny[0] = t.size();"}).substr(0, 88),
            "source:2:1: error: static assertion failed with \"a tile has 1, 2, 4, 8, 16 or 32 threads");
}

TEST_F(Nvrtc, KeepsMoreLinesOfAMessageAndTheLog) {
  CompileResult result = compile({"y[0] = f<int>(\"s\");", "template <class T> __device__ T f(T x) { return x; }"});
  ASSERT_EQ(result.status, CompileStatus::kInvalid);
  EXPECT_EQ(result.report.diagnostics[0].message,
            "no instance of function template \"f\" matches the argument list; argument types are: (const char [2])");
  EXPECT_NE(result.report.log.find("kernel.cu("), std::string::npos);
  EXPECT_EQ(result.report.generated_source,
            Kernel({"y[0] = f<int>(\"s\");", "template <class T> __device__ T f(T x) { return x; }"}).unit().text);
}

TEST_F(Nvrtc, KeepsWarnings) {
  CompileResult result = compile({"int unused;\ny[0] = x[0];"});
  ASSERT_EQ(result.status, CompileStatus::kOk);
  ASSERT_EQ(result.report.diagnostics.size(), 1u);
  EXPECT_EQ(render(result.report.diagnostics[0]),
            "source:1:5: warning: variable \"unused\" was declared but never referenced\n"
            "  int unused;\n"
            "      ^");
}

TEST_F(Nvrtc, TellsOfWhatTheAssemblerRefuses) {
  EXPECT_EQ(message({"__shared__ float t[100000]; t[threadIdx.x] = x[0]; __syncthreads(); y[0] = t[5];"}).substr(0, 35),
            "error: ptxas: Entry function '_ZN3m");
  EXPECT_EQ(message({"asm(\"no.such\");"}).substr(0, 13), "error: ptxas:");
}

TEST_F(Nvrtc, TakesFastMath) {
  KernelUnit unit = Kernel{"y[0] = expf(x[0]) / x[1];"}.unit();
  std::string safe = compile(unit, "sm_90", true).stages[1].text;
  unit.math_mode = MathMode::kFast;
  std::string fast = compile(unit, "sm_90", true).stages[1].text;
  EXPECT_EQ(safe.find("div.approx"), std::string::npos);
  EXPECT_NE(fast.find("div.approx"), std::string::npos);
}

TEST_F(Nvrtc, IsIdentifiedAlikeBeforeAndAfterItIsOpened) {
  std::string before = compiler_->identity();
  EXPECT_TRUE(before.starts_with(kNvrtcIdentity));
  static_cast<void>(compile(Kernel{"y[0] = x[0];"}));
  EXPECT_EQ(compiler_->identity(), before);
  EXPECT_EQ(make_nvrtc_compiler("")->identity(), before);
}

// Machine code on disk is found by it.
TEST_F(Nvrtc, IdentityHasKilnsVersionAndADigestOfOptionsAndDeclarations) {
  EXPECT_NE(compiler_->identity().find(", Kiln "), std::string::npos);
  EXPECT_NE(nvrtc_device_digest({"--a"}), nvrtc_device_digest({"--b"}));
  EXPECT_NE(nvrtc_device_digest({"--a", "--b"}), nvrtc_device_digest({"--a--b"}));
  EXPECT_EQ(nvrtc_device_digest({"--a"}), nvrtc_device_digest({"--a"}));
}

TEST_F(Nvrtc, CompilesInSeveralThreads) {
  std::vector<std::thread> threads;
  std::vector<std::vector<std::byte>> code(4);
  for (size_t t = 0; t < code.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3; ++i) code[t] = compile(Kernel{"y[threadIdx.x] = 2 * x[threadIdx.x];"}).binary;
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& one : code) {
    EXPECT_FALSE(one.empty());
    EXPECT_EQ(one, code[0]);
  }
}

TEST(NvrtcLog, IsReadToItsEndWhateverItHas) {
  KernelUnit unit = Kernel{"y[0] = x[0];"}.unit();
  EXPECT_TRUE(read_nvrtc_log(unit, "").empty());
  EXPECT_TRUE(read_nvrtc_log(unit, "Remark: nothing\n  text\n  ^\nx(: error\n(1): ):\n").empty());
  auto read = read_nvrtc_log(unit, "kernel.cu(99999999999): error: a\nkernel.cu(7000): error: b\n");
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].message, "b");
  EXPECT_EQ(read[0].line, 0);
}

}  // namespace
}  // namespace kiln
