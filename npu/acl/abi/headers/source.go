package headers

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/npu/acl/abi"
)

// prelude turns a function's type into a list of numbers, one for each class.
const prelude = `#include <cstddef>
#include <cstdint>
#include <type_traits>
namespace gotrain {
template <class T, class = void> struct code { static constexpr unsigned v = 0x30000u + sizeof(T); }; // structure by value
template <class T> struct code<T, std::enable_if_t<std::is_pointer<T>::value>> { static constexpr unsigned v = 1; };
template <class T> struct code<T, std::enable_if_t<std::is_floating_point<T>::value>> { static constexpr unsigned v = 0x10000u + sizeof(T); };
template <class T> struct code<T, std::enable_if_t<std::is_same<T, bool>::value>> { static constexpr unsigned v = 2; };
template <class T> struct code<T, std::enable_if_t<std::is_enum<T>::value>> { static constexpr unsigned v = 0x20000u + sizeof(T); };
template <class T> struct code<T, std::enable_if_t<std::is_integral<T>::value && !std::is_same<T, bool>::value>> {
    static constexpr unsigned v = (std::is_signed<T>::value ? 0x20000u : 0x40000u) + sizeof(T);
};
template <> struct code<void, void> { static constexpr unsigned v = 3; };
template <unsigned... V> struct list {};
template <class F> struct signature;
template <class R, class... A> struct signature<R (*)(A...)> { using t = list<code<std::decay_t<R>>::v, code<std::decay_t<A>>::v...>; };
template <class R, class... A> struct signature<R (*)(A...) noexcept> { using t = list<code<std::decay_t<R>>::v, code<std::decay_t<A>>::v...>; };
}
#define GT_CHECK(f, ...) \
    static_assert(std::is_same<gotrain::signature<decltype(&f)>::t, gotrain::list<__VA_ARGS__>>::value, "signature of " #f " differs");
#define GT_VALUE(a, b) static_assert((long long)(a) == (long long)(b), "value of " #a " differs");
`

// class is the number of a class of arguments.
func class(c string) (string, error) {
	switch c {
	case "p":
		return "1", nil
	case "b":
		return "2", nil
	case "", "v":
		return "3", nil
	}
	n, err := strconv.Atoi(c[1:])
	base, ok := map[byte]string{'f': "0x10000u", 'i': "0x20000u", 's': "0x30000u", 'u': "0x40000u"}[c[0]]
	if err != nil || !ok {
		return "", fmt.Errorf("headers: class %q", c)
	}
	return fmt.Sprintf("%s + %d", base, n), nil
}

// Source is a C++ file that compiles if the headers declare the functions as the table has them.
func Source(include []string, functions []abi.Function) (string, error) {
	var b strings.Builder
	b.WriteString(prelude)
	for _, h := range include {
		fmt.Fprintf(&b, "#include %q\n", h)
	}
	for _, f := range functions {
		fmt.Fprintf(&b, "GT_CHECK(%s", f.Name)
		for _, c := range append([]string{f.Result}, f.Args...) {
			n, err := class(c)
			if err != nil {
				return "", fmt.Errorf("%w of %s", err, f.Name)
			}
			b.WriteString(", " + n)
		}
		b.WriteString(")\n")
	}
	return b.String(), nil
}

// operatorClasses are the classes of an operator's codes. All else is a pointer.
var operatorClasses = map[string]string{"dt": "i4", "int": "i4", "i8": "i1", "i64": "i8", "u64": "u8", "f32": "f4", "f64": "f8", "bool": "b"}

// Phases are the two C functions of each operator.
func Phases(ops []abi.Op) []abi.Function {
	var l []abi.Function
	for _, o := range ops {
		f := abi.Function{Name: "aclnn" + o.Name + "GetWorkspaceSize", Result: "i4"}
		for _, a := range o.Args {
			c, ok := operatorClasses[a.Code]
			if !ok {
				c = "p"
			}
			f.Args = append(f.Args, c)
		}
		f.Args = append(f.Args, "p", "p")
		l = append(l, f, abi.Function{Name: "aclnn" + o.Name, Result: "i4", Args: []string{"p", "u8", "p", "p"}})
	}
	return l
}

// Value is a number that the headers must agree with.
type Value struct {
	Expression string
	Number     int64
}

// Values are the sizes, offsets and numbers of enums that gotrain relies on. HcclCommConfig grows with versions; gotrain sends its fifth version,
// whose fields keep their places.
func Values() (runtime, hccl []Value) {
	runtime = []Value{
		{"ACL_FLOAT", 0}, {"ACL_FLOAT16", 1}, {"ACL_INT8", 2}, {"ACL_INT32", 3}, {"ACL_UINT8", 4}, {"ACL_INT64", 9}, {"ACL_DOUBLE", 11}, {"ACL_BOOL", 12},
		{"ACL_BF16", 27}, {"ACL_FORMAT_NCHW", 0}, {"ACL_FORMAT_ND", 2}, {"ACL_FORMAT_NCL", 47},
		{"ACL_MEMCPY_HOST_TO_DEVICE", 1}, {"ACL_MEMCPY_DEVICE_TO_HOST", 2}, {"ACL_MEMCPY_DEVICE_TO_DEVICE", 3}, {"ACL_MEM_MALLOC_HUGE_FIRST", 0},
		{"ACL_EVENT_SYNC", 1}, {"ACL_EVENT_TIME_LINE", 8}, {"ACL_STREAM_FAST_LAUNCH", 1}, {"ACL_STREAM_FAST_SYNC", 2},
		{"ACL_EVENT_RECORDED_STATUS_NOT_READY", 0}, {"ACL_EVENT_RECORDED_STATUS_COMPLETE", 1}, {"ACL_HBM_MEM", 1}, {"ACL_OPT_DETERMINISTIC", 0},
		{"ACL_ERROR_RT_AICORE_EXCEPTION", 507015}, {"ACL_ERROR_RT_STREAM_SYNC_TIMEOUT", 507046}, {"ACL_ERROR_RT_CONTEXT_NULL", 107002},
		{"ACL_ERROR_RT_MEMORY_ALLOCATION", 207001}, {"sizeof(aclrtUtilizationInfo)", 24},
	}
	hccl = []Value{
		{"sizeof(HcclRootInfo)", 4108}, {"sizeof(HcclSendRecvItem)", 32}, {"offsetof(HcclSendRecvItem, buf)", 8}, {"offsetof(HcclSendRecvItem, count)", 16},
		{"offsetof(HcclSendRecvItem, dataType)", 24}, {"offsetof(HcclSendRecvItem, remoteRank)", 28},
		{"offsetof(HcclCommConfig, hcclBufferSize)", 24}, {"offsetof(HcclCommConfig, hcclDeterministic)", 28}, {"offsetof(HcclCommConfig, hcclCommName)", 32},
		{"offsetof(HcclCommConfig, hcclUdi)", 160}, {"offsetof(HcclCommConfig, hcclOpExpansionMode)", 288},
		{"offsetof(HcclCommConfig, hcclRdmaTrafficClass)", 292}, {"offsetof(HcclCommConfig, hcclRdmaServiceLevel)", 296},
		{"sizeof(HcclCommConfig) >= 300", 1}, {"HCCL_COMM_CONFIG_VERSION >= 5", 1}, {"HCCL_COMM_CONFIG_MAGIC_WORD", 0xf0f0f0f0},
		{"HCCL_DATA_TYPE_INT8", 0}, {"HCCL_DATA_TYPE_INT32", 2}, {"HCCL_DATA_TYPE_FP16", 3}, {"HCCL_DATA_TYPE_FP32", 4}, {"HCCL_DATA_TYPE_INT64", 5},
		{"HCCL_DATA_TYPE_UINT8", 7}, {"HCCL_DATA_TYPE_FP64", 10}, {"HCCL_DATA_TYPE_BFP16", 11},
		{"HCCL_REDUCE_SUM", 0}, {"HCCL_REDUCE_MAX", 2}, {"HCCL_REDUCE_MIN", 3}, {"HCCL_E_TIMEOUT", 9}, {"HCCL_E_REMOTE", 21},
	}
	return runtime, hccl
}

// ValueSource is a C++ file that compiles if the values agree.
func ValueSource(include []string, values []Value) string {
	var b strings.Builder
	b.WriteString(prelude)
	for _, h := range include {
		fmt.Fprintf(&b, "#include %q\n", h)
	}
	for _, v := range values {
		fmt.Fprintf(&b, "GT_VALUE((%s), %dLL)\n", v.Expression, v.Number)
	}
	return b.String()
}
