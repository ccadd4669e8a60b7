__KILN_EXACT_BEGIN
namespace metal {
__KILN_PACK_10A2(half, snorm)
}
__KILN_EXACT_END
