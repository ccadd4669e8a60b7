__KILN_EXACT_BEGIN
namespace metal {
__KILN_UNPACK_10A2(float, snorm)
}
__KILN_EXACT_END
